#include "bench/sweep.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "compression/codec_table.h"

namespace terse {
namespace {

// The setting that is varied along a curve.
struct Knob {
  const char* name;
  std::vector<double> values;
  void (*set)(double value, double scale, CodecSpec* spec);
};

// One curve.
struct Sweep {
  const char* codec;
  const char* code;  // nullptr: no choice of codes
  int64_t bucket;
  const Knob* knob;
};

const Knob& Density() {
  static const auto* const knob = new Knob{"density",
                                           {0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 0.5},
                                           [](double value, double scale, CodecSpec* spec) { spec->density = value; }};
  return *knob;
}

// SparseLoCo's values have 2 bits.
const Knob& DensityOfTwoBits() {
  static const auto* const knob =
      new Knob{"density", Density().values, [](double value, double scale, CodecSpec* spec) {
                 spec->density = value;
                 spec->bits = 2;
               }};
  return *knob;
}

const Knob& Samples() {
  static const auto* const knob = new Knob{"samples",
                                           {0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30},
                                           [](double value, double scale, CodecSpec* spec) { spec->samples = value; }};
  return *knob;
}

const Knob& Threshold() {
  static const auto* const knob =
      new Knob{"threshold/rms", {0.5, 1, 1.5, 2, 2.5, 3, 4, 6}, [](double value, double scale, CodecSpec* spec) {
                 spec->threshold = value * scale;
               }};
  return *knob;
}

void SetBits(double value, double scale, CodecSpec* spec) { spec->bits = static_cast<int64_t>(value); }

const Knob& FewBits() {
  static const auto* const knob = new Knob{"bits", {1, 2, 3, 4, 5, 6, 7, 8}, SetBits};
  return *knob;
}

const Knob& ManyBits() {
  static const auto* const knob = new Knob{"bits", {2, 3, 4, 6, 8, 10, 12, 16}, SetBits};
  return *knob;
}

const std::vector<Sweep>& Sweeps() {
  static const auto* const sweeps = new std::vector<Sweep>{
      {"sbc", nullptr, 0, &Density()},
      {"stc", nullptr, 0, &Density()},
      {"sbc_or_stc", nullptr, 0, &Density()},
      {"top_k", nullptr, 0, &Density()},
      {"dgc", nullptr, 0, &Density()},
      {"sparseloco", nullptr, 4096, &DensityOfTwoBits()},
      {"random_sparse", "simple", 0, &Density()},
      {"random_sparse", "unbiased", 0, &Density()},
      {"low_precision_sparse", nullptr, 0, &Density()},
      {"strom", nullptr, 0, &Threshold()},
      {"mcgq", "simple", 0, &Samples()},
      {"mcgq", "positions", 0, &Samples()},
      // QSGD, section 4: a norm for each bucket of 512.
      {"qsgd", "simple", 512, &FewBits()},
      {"qsgd", "elias", 512, &FewBits()},
      {"low_precision", nullptr, 512, &ManyBits()},
  };
  return *sweeps;
}

void AddCurve(const Sweep& sweep, double scale, std::vector<SweepPoint>* points) {
  for (const double value : sweep.knob->values) {
    SweepPoint point;
    point.curve = sweep.codec;
    if (sweep.code != nullptr) absl::StrAppend(&point.curve, " ", sweep.code);
    point.setting = absl::StrCat(sweep.knob->name, "=", value);
    point.spec.name = sweep.codec;
    point.spec.bucket = sweep.bucket;
    if (sweep.code != nullptr) point.spec.code = sweep.code;
    sweep.knob->set(value, scale, &point.spec);
    points->push_back(std::move(point));
  }
}

}  // namespace

std::vector<SweepPoint> CodecSweep(double scale) {
  std::vector<SweepPoint> points;
  for (const std::string& name : CodecNames()) {
    bool swept = false;
    for (const Sweep& sweep : Sweeps()) {
      if (name != sweep.codec) continue;
      swept = true;
      AddCurve(sweep, scale, &points);
    }
    if (swept) continue;
    CodecSpec spec;
    spec.name = name;
    points.push_back({name, "", spec});
  }
  return points;
}

}  // namespace terse
