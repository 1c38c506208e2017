#include <algorithm>

#include "absl/strings/str_cat.h"
#include "bench/job.h"
#include "bench/measure.h"
#include "compression/bit_stream.h"
#include "compression/codec.h"
#include "compression/position_coder_table.h"
#include "compression/shared_coder.h"
#include "compression/simd.h"

namespace terse {
namespace {

void Write(const PositionCoder& coder, const std::vector<uint32_t>& positions, int64_t size, std::string* out) {
  out->clear();
  BitWriter writer(out);
  coder.Put(positions, size, &writer);
  writer.Finish();
}

// Decodes as the codecs do, a run at a time into one small buffer.
void Read(const PositionCoder& coder, const std::string& bytes, int64_t count, int64_t size) {
  uint32_t buffer[kDecodedRun];
  const std::unique_ptr<PositionReader> reader = Must(coder.Open(count, size, BitReader(bytes)));
  for (int64_t left = count; left > 0;) {
    const int64_t run = std::min(left, kDecodedRun);
    Must(reader->Next(absl::MakeSpan(buffer, run)));
    left -= run;
  }
  Must(reader->Finish().status());
}

struct CoderFigures {
  double encode = 0;  // million positions a second
  double decode = 0;
  double bits = 0;  // a position
};

CoderFigures MeasurePositions(const PositionCoder& coder, const std::vector<uint32_t>& positions, int64_t size,
                              int repetitions) {
  const int64_t count = static_cast<int64_t>(positions.size());
  const auto nothing = [] {};
  const double millions = 1e-6 * static_cast<double>(count);
  std::string bytes;
  Write(coder, positions, size, &bytes);
  CoderFigures figures;
  figures.encode =
      millions / MedianSeconds(repetitions, ThreadSeconds, nothing, [&] { Write(coder, positions, size, &bytes); });
  figures.decode =
      millions / MedianSeconds(repetitions, ThreadSeconds, nothing, [&] { Read(coder, bytes, count, size); });
  figures.bits = static_cast<double>(coder.Bits(positions, size)) / static_cast<double>(count);
  return figures;
}

CoderFigures MeasureCoder(const PositionCoder& coder, double density, const JobSetting& setting) {
  const int64_t count = static_cast<int64_t>(density * static_cast<double>(setting.large));
  return MeasurePositions(coder, RandomPositions(count, setting.large, 1), setting.large, setting.Repetitions(51));
}

Target RiceDecodeTarget(const std::string& simd) {
  if (simd == "avx512") return AtLeast(1500);
  if (simd == "avx2") return AtLeast(700);
  return simd == "scalar" ? AtLeast(400) : Target();
}

// Rice on every SIMD target that this processor has.
std::vector<Metric> MeasureRice(const JobSetting& setting) {
  const PositionCoder& rice = *Must(FindPositionCoder("rice"));
  std::vector<Metric> metrics;
  for (const std::string& simd : SimdTargets()) {
    Must(UseSimdTarget(simd));
    const CoderFigures figures = MeasureCoder(rice, 0.01, setting);
    const std::string name = absl::StrCat("p=0.01 n=", setting.large, " ", simd);
    metrics.push_back({"rice_encode_mpos_s", name, figures.encode, AtLeast(600), {}});
    metrics.push_back({"rice_decode_mpos_s", name, figures.decode, RiceDecodeTarget(simd), {}});
  }
  Must(UseSimdTarget(setting.simd));
  return metrics;
}

std::vector<Metric> MeasureRiceBits(const JobSetting& setting) {
  const PositionCoder& rice = *Must(FindPositionCoder("rice"));
  const auto over_entropy = [&](const char* name, double density, double target) -> Metric {
    const int64_t count = static_cast<int64_t>(density * static_cast<double>(setting.large));
    const std::vector<uint32_t> positions = RandomPositions(count, setting.large, 1);
    const double bits = static_cast<double>(rice.Bits(positions, setting.large)) / static_cast<double>(count);
    return {name, absl::StrCat("n=", setting.large), bits / PositionEntropy(count, setting.large), AtMost(target), {}};
  };
  return {over_entropy("rice_bits_over_entropy_p01", 0.01, 1.006),
          over_entropy("rice_bits_over_entropy_p001", 0.001, 1.010)};
}

std::vector<Metric> MeasureAllCoders(double density, const JobSetting& setting) {
  const std::string table = absl::StrCat("positions, p=", density, " n=", setting.large);
  std::vector<Metric> metrics;
  for (const std::string& name : PositionCoderNames()) {
    const CoderFigures figures = MeasureCoder(*Must(FindPositionCoder(name)), density, setting);
    metrics.push_back({"encode_mpos_s", name, figures.encode, {}, table});
    metrics.push_back({"decode_mpos_s", name, figures.decode, {}, table});
    metrics.push_back({"bits_per_position", name, figures.bits, {}, table});
  }
  const int64_t count = static_cast<int64_t>(density * static_cast<double>(setting.large));
  metrics.push_back({"bits_per_position", "log2 C(n,k) / k", PositionEntropy(count, setting.large), {}, table});
  return metrics;
}

// About `count` of `size` positions: a random quarter of the elements that are ever sent.
std::vector<uint32_t> SomeOfTheLively(const std::vector<uint32_t>& lively, Random* random) {
  std::vector<uint32_t> positions;
  for (uint32_t position : lively) {
    if (random->Below(4) == 0) positions.push_back(position);
  }
  return positions;
}

// The coder "shared" on messages that send some of the same elements again and again: on random positions a history
// tells nothing, and the coder is rice. A tensor as large as LeNet5's largest, and a large one.
std::vector<Metric> MeasureShared(const JobSetting& setting) {
  constexpr double kDensity = 0.01;
  constexpr int64_t kColumns = 800;
  constexpr int kMessages = 8;
  std::vector<Metric> metrics;
  for (const int64_t wanted : {int64_t{400'000}, setting.large}) {
    PositionHistory history(wanted / kColumns, kColumns);
    const int64_t size = history.size();
    Random random(1);
    const int64_t lively_count = static_cast<int64_t>(4 * kDensity * static_cast<double>(size));
    const std::vector<uint32_t> lively = RandomPositions(lively_count, size, 1);
    for (int i = 0; i < kMessages; ++i) history.Add(SomeOfTheLively(lively, &random), i % 2);
    const std::vector<uint32_t> positions = SomeOfTheLively(lively, &random);
    const CoderFigures figures = MeasurePositions(SharedCoder(&history, 0), positions, size, setting.Repetitions(101));
    const CoderFigures rice =
        MeasurePositions(*Must(FindPositionCoder("rice")), positions, size, setting.Repetitions(101));
    const std::string name = absl::StrCat("p=", kDensity, " n=", size);
    metrics.push_back({"shared_encode_mpos_s", name, figures.encode, AtLeast(25), {}});
    metrics.push_back({"shared_decode_mpos_s", name, figures.decode, AtLeast(50), {}});
    metrics.push_back({"shared_decode_over_rice", name, figures.decode / rice.decode, {}, {}});
    metrics.push_back({"shared_bits_over_rice", name, figures.bits / rice.bits, AtMost(0.9), {}});
  }
  return metrics;
}

}  // namespace

std::vector<Job> PositionJobs() {
  std::vector<Job> jobs = {
      {{"rice_encode_mpos_s", "rice_decode_mpos_s"}, "rice on every SIMD target", 2, MeasureRice},
      {{"rice_bits_over_entropy_p01", "rice_bits_over_entropy_p001"}, "bits of rice", 1, MeasureRiceBits},
  };
  for (const double density : {0.01, 0.001}) {
    jobs.push_back({{"encode_mpos_s", "decode_mpos_s", "bits_per_position"},
                    absl::StrCat("position coders at p = ", density),
                    4,
                    [density](const JobSetting& setting) { return MeasureAllCoders(density, setting); }});
  }
  jobs.push_back({{"shared_encode_mpos_s", "shared_decode_mpos_s", "shared_decode_over_rice", "shared_bits_over_rice"},
                  "the position coder with a history",
                  6,
                  MeasureShared});
  return jobs;
}

}  // namespace terse
