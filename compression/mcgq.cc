#include "compression/mcgq.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compression/counter_random.h"
#include "compression/fetch_ahead.h"
#include "compression/position_coder_table.h"
#include "compression/quantize_kernels.h"
#include "compression/sparse_codec.h"
#include "core/status.h"

namespace terse {
namespace {

constexpr int kFormatNumber = 0x0c;

// The smallest integer that is not below `value`; |value| < 2^62.
int64_t Ceil(double value) {
  const int64_t towards_zero = static_cast<int64_t>(value);
  return towards_zero + (static_cast<double>(towards_zero) < value ? 1 : 0);
}

CodecTraits McgqTraits() {
  CodecTraits traits;
  traits.unbiased = true;
  traits.stochastic = true;
  return traits;
}

constexpr int64_t kOctet = 8;
constexpr int64_t kOctets =
    256;  // that are worked on together: all that belongs to them stays in the first-level cache

// Calls visit(first, values, octets, sums) for runs of at most kOctets octets, the last one filled up with zeros, where
// `sums` are those of their magnitudes.
template <typename Visit>
void ForEachOctetRun(absl::Span<const float> values, Visit visit) {
  const int64_t size = static_cast<int64_t>(values.size());
  const int64_t octets = size / kOctet;
  double sums[kOctets];
  for (int64_t at = 0; at < octets; at += kOctets) {
    const int64_t count = std::min(kOctets, octets - at);
    const float* const first = values.data() + at * kOctet;
    FetchAheadToRead(first, count * kOctet * static_cast<int64_t>(sizeof(float)));
    GetQuantizeKernels().octet_magnitudes(first, count, sums);
    visit(at * kOctet, first, count, sums);
  }
  if (octets * kOctet == size) return;
  float rest[kOctet] = {};
  std::copy(values.begin() + octets * kOctet, values.end(), rest);
  GetQuantizeKernels().octet_magnitudes(rest, 1, sums);
  visit(octets * kOctet, rest, int64_t{1}, sums);
}

// Finds the levels of a tensor, a run of octets at a time, in order. Without branches that depend on the numbers: they
// would often be guessed wrong.
class Sampler {
 public:
  Sampler(int64_t count, double xi, double norm) : count_(static_cast<int32_t>(count)), xi_(xi), norm_(norm) {}

  // Appends the levels of a run.
  void Add(int64_t first, const float* values, int64_t octets, const double* sums, SparseLevels* levels) {
    double begins[kOctets + 1];  // C before each octet, and behind the last
    begins[0] = sum_;
    for (int64_t i = 0; i < octets; ++i) begins[i + 1] = begins[i] + sums[i];
    sum_ = begins[octets];
    int32_t until[kOctets + 1];
    Until(begins, octets + 1, until);
    // Most octets have no sample.
    int32_t hits[kOctets];
    int64_t found = 0;
    for (int64_t i = 0; i < octets; ++i) {
      hits[found] = static_cast<int32_t>(i);
      found += static_cast<int>(until[i + 1] != until[i]);
    }
    double reached[kOctet * kOctets];
    for (int64_t i = 0; i < found; ++i) {
      Reach(values + kOctet * hits[i], begins[hits[i]], begins[hits[i] + 1], reached + kOctet * i);
    }
    int32_t within[kOctet * kOctets];
    Until(reached, kOctet * found, within);
    uint32_t positions[kOctet * (kOctets + 1)];
    uint32_t of_positions[kOctet * (kOctets + 1)];
    int64_t number = 0;
    for (int64_t i = 0; i < found; ++i) {
      number += Levels(first + kOctet * hits[i], values + kOctet * hits[i], until[hits[i]], within + kOctet * i,
                       positions + number, of_positions + number);
    }
    levels->positions.insert(levels->positions.end(), positions, positions + number);
    levels->levels.insert(levels->levels.end(), of_positions, of_positions + number);
  }

 private:
  void Until(const double* reached, int64_t size, int32_t* until) const {
    GetQuantizeKernels().samples_until(reached, size, norm_, xi_, count_, until);
  }

  // Fills `reached` with C of an octet's elements, where an element that is 0 has that of the one before or behind it.
  static void Reach(const float* octet, double begin, double end, double* reached) {
    double sum = begin;
    for (int64_t k = 0; k < kOctet; ++k) {
      sum += static_cast<double>(std::fabs(octet[k]));
      reached[k] = std::min(end, sum);
    }
    int64_t last = kOctet - 1;
    while (last > 0 && octet[last] == 0) --last;
    for (int64_t k = last; k < kOctet; ++k) reached[k] = end;
  }

  // Writes an octet's levels that are not 0, and up to eight more. `before` is T before it. Returns how many there are.
  static int64_t Levels(int64_t first, const float* octet, int32_t before, const int32_t* until, uint32_t* positions,
                        uint32_t* levels) {
    int64_t found = 0;
    for (int64_t k = 0; k < kOctet; ++k) {
      positions[found] = static_cast<uint32_t>(first + k);
      levels[found] = 2 * static_cast<uint32_t>(until[k] - before) + (FloatBits(octet[k]) >> 31);
      found += static_cast<int>(until[k] != before);
      before = until[k];
    }
    return found;
  }

  const int32_t count_;
  const double xi_;
  const double norm_;
  double sum_ = 0;  // C behind the last octet
};

// Fills `levels` with those of a tensor of finite values. Returns the scale before its rounding; a tensor of zeros has
// no levels and the scale 0.
double Quantize(const TensorInput& input, double samples, double norm, SparseLevels* levels) {
  levels->positions.clear();
  levels->levels.clear();
  if (norm == 0) return 0;
  const int64_t count = SampleCount(input.rate == 0 ? samples : input.rate, static_cast<int64_t>(input.values.size()));
  const double xi = UniformDouble(CounterRandom(input.key, input.tensor).At(0));
  SampleLevels(input.values, count, xi, norm, levels);
  return norm / static_cast<double>(count);
}

absl::Status CheckRate(const TensorInput& input, absl::string_view tensor) {
  if (input.rate == 0 || (input.rate > 0 && input.rate <= kMostSamples)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("tensor '", tensor, "': a rate of ", input.rate,
                                                 "; samples per element are above 0 and at most ", kMostSamples));
}

// The codec of spec.code = "positions".
class SparseMcgqCodec : public SparseCodec {
 public:
  SparseMcgqCodec(const Layout& layout, SparseFormat format, double samples)
      : SparseCodec(layout, std::move(format)), samples_(samples) {}

  absl::string_view name() const override { return "mcgq"; }
  CodecTraits traits() const override { return McgqTraits(); }

 private:
  absl::Status Select(const TensorInput& input, TopSelector*, SparsePart* part) const override {
    TERSE_RETURN_IF_ERROR(CheckRate(input, tensor(input.tensor).name));
    const double norm = SampleNorm(input.values);
    if (!std::isfinite(norm)) return CheckFinite(input);
    SparseLevels levels = {std::move(part->positions), std::move(part->payload)};
    const double scale = Quantize(input, samples_, norm, &levels);
    part->positions = std::move(levels.positions);
    part->payload = std::move(levels.levels);
    if (!part->positions.empty()) part->scale = RoundScale(scale);
    return absl::OkStatus();
  }

  const double samples_;
};

// The codec of spec.code = "simple".
class RleMcgqCodec : public TensorCodec {
 public:
  RleMcgqCodec(const Layout& layout, double samples) : TensorCodec(layout, kFormatNumber), samples_(samples) {
    int64_t bits = 0;
    // A level takes at most 32 bits; at most every second element, rounded up, is a run, of 32 + 31 bits.
    for (const TensorSpec& tensor : layout.tensors()) bits += 96 + tensor.size * 32 + (tensor.size + 1) / 2 * 31;
    SetMaxBits(bits);
  }

  absl::string_view name() const override { return "mcgq"; }
  CodecTraits traits() const override { return McgqTraits(); }
  std::unique_ptr<EncodeScratch> NewScratch() const override { return std::make_unique<Scratch>(); }

 private:
  class Reader;

  struct Scratch : EncodeScratch {
    SparseLevels levels;  // of one tensor
  };

  absl::Status EncodeTensors(absl::Span<const TensorInput> tensors, BitWriter* writer) const override {
    return ForEachTensor(tensors, [writer](int64_t size, float scale, const SparseLevels& levels) {
      writer->Put(FloatBits(scale), 32);
      PutRle(levels, size, writer);
    });
  }

  absl::StatusOr<int64_t> TensorsBits(absl::Span<const TensorInput> tensors) const override {
    int64_t bits = 0;
    TERSE_RETURN_IF_ERROR(ForEachTensor(
        tensors, [&bits](int64_t size, float, const SparseLevels& levels) { bits += 32 + RleBits(levels, size); }));
    return bits;
  }

  std::unique_ptr<TensorReader> NewReader() const override;

  // Calls visit(size, scale, levels) for each tensor.
  template <typename Visit>
  absl::Status ForEachTensor(absl::Span<const TensorInput> tensors, Visit visit) const {
    Scratch own;
    Scratch* const given = dynamic_cast<Scratch*>(tensors.front().scratch);
    SparseLevels& levels = (given == nullptr ? own : *given).levels;
    for (const TensorInput& input : tensors) {
      TERSE_RETURN_IF_ERROR(CheckRate(input, tensor(input.tensor).name));
      const double norm = SampleNorm(input.values);
      if (!std::isfinite(norm)) return CheckFinite(input);
      const double scale = Quantize(input, samples_, norm, &levels);
      visit(static_cast<int64_t>(input.values.size()), levels.positions.empty() ? 0.0f : RoundToFiniteFloat(scale),
            levels);
    }
    return absl::OkStatus();
  }

  const double samples_;
};

class RleMcgqCodec::Reader : public TensorReader {
 public:
  explicit Reader(const RleMcgqCodec* codec) : codec_(codec) {}

  std::unique_ptr<TensorReader> Clone() const override { return std::make_unique<Reader>(*this); }

  absl::Status StartTensor(int64_t tensor, BitReader* stream) override {
    filled_ = used_ = 0;
    any_level_ = false;
    uint32_t bits = 0;
    if (!stream->Get(32, &bits)) return TruncatedIn("its header");
    if (bits >= kInfinityBits) {
      return absl::InvalidArgumentError(
          absl::StrCat("its scale is ", FloatFromBits(bits), "; it must be finite and not negative"));
    }
    scale_ = FloatFromBits(bits);
    return rle_.Start(codec_->tensor(tensor).size, *stream);
  }

  absl::Status Next(int64_t limit, DecodedRun* run) override {
    if (used_ == filled_) TERSE_RETURN_IF_ERROR(Fill());
    const uint32_t* const from = positions_ + used_;
    run->count = CountBelow(from, filled_ - used_, limit);
    run->positions = from;
    run->begin = 0;
    run->values = values_ + used_;
    run->common = false;
    used_ += run->count;
    return absl::OkStatus();
  }

  absl::Status FinishTensor(BitReader* stream) override {
    *stream = rle_.stream();
    if (any_level_ == (scale_ > 0)) return absl::OkStatus();
    return absl::InvalidArgumentError("its scale must be 0 exactly where all levels are");
  }

 private:
  // Decodes the next elements into the buffer.
  absl::Status Fill() {
    uint32_t levels[kDecodedRun];
    used_ = 0;
    TERSE_RETURN_IF_ERROR(rle_.Next(absl::MakeSpan(positions_), absl::MakeSpan(levels), &filled_));
    any_level_ = any_level_ || filled_ > 0;
    for (int64_t i = 0; i < filled_; ++i) values_[i] = LevelValue(scale_, levels[i]);
    return absl::OkStatus();
  }

  const RleMcgqCodec* codec_;
  RleReader rle_;
  float scale_ = 0;
  bool any_level_ = false;
  int64_t filled_ = 0;  // of the buffer
  int64_t used_ = 0;
  uint32_t positions_[kDecodedRun];
  float values_[kDecodedRun];
};

std::unique_ptr<TensorReader> RleMcgqCodec::NewReader() const { return std::make_unique<Reader>(this); }

}  // namespace

int64_t SampleCount(double samples, int64_t size) {
  return std::min(int64_t{kMostLevel}, Ceil(samples * static_cast<double>(size)));
}

double SampleNorm(absl::Span<const float> values) {
  double norm = 0;
  ForEachOctetRun(values, [&norm](int64_t, const float*, int64_t octets, const double* sums) {
    for (int64_t i = 0; i < octets; ++i) norm += sums[i];
  });
  return norm;
}

void SampleLevels(absl::Span<const float> values, int64_t count, double xi, double norm, SparseLevels* levels) {
  Sampler sampler(count, xi, norm);
  ForEachOctetRun(values, [&](int64_t first, const float* run, int64_t octets, const double* sums) {
    sampler.Add(first, run, octets, sums, levels);
  });
}

absl::StatusOr<std::unique_ptr<const Codec>> CreateMcgq(const CodecSpec& spec, const Layout& layout) {
  if (!(spec.samples > 0 && spec.samples <= kMostSamples)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "codec.samples is ", spec.samples, "; mcgq needs samples per element above 0 and at most ", kMostSamples));
  }
  if (spec.code == "simple") return std::unique_ptr<const Codec>(new RleMcgqCodec(layout, spec.samples));
  if (spec.code != "positions") {
    return absl::InvalidArgumentError(
        absl::StrCat("codec.code is '", spec.code, "'; mcgq knows 'simple' and 'positions'"));
  }
  SparseFormat format;
  format.number = kFormatNumber;
  format.values = SparseValues::kLevels;
  TERSE_ASSIGN_OR_RETURN(format.coder, FindPositionCoder(spec.positions));
  return std::unique_ptr<const Codec>(new SparseMcgqCodec(layout, std::move(format), spec.samples));
}

}  // namespace terse
