#include "absl/strings/str_cat.h"
#include "bench/job.h"
#include "bench/measure.h"
#include "compression/codec_table.h"

namespace terse {
namespace {

constexpr int64_t kElements = 1'000'000;
constexpr double kThreshold = 2.5;  // a hundredth of the elements is larger

std::vector<Metric> MeasureCodecs(const JobSetting& setting) {
  const std::string table =
      absl::StrCat("codecs, Gaussian n=", kElements, ", default settings, tau of strom ", kThreshold);
  const std::vector<float> update = Gaussian(kElements, 1);
  const auto nothing = [] {};
  std::vector<Metric> metrics;
  for (const std::string& name : CodecNames()) {
    CodecSpec spec;
    spec.name = name;
    spec.threshold = kThreshold;
    const std::unique_ptr<const Codec> codec = Must(MakeCodec(spec, OneTensor(kElements)));
    std::string message;
    const int repetitions = setting.Repetitions(21);
    const Ratio encode = OverMemcpy(repetitions, update, nothing, [&] { message = Must(codec->Encode(update, {})); });
    std::vector<float> sum(kElements);
    const Ratio decode =
        OverMemcpy(repetitions, update, nothing, [&] { Must(codec->AddDecoded(message, 1.0f, absl::MakeSpan(sum))); });
    const double bits = 8 * static_cast<double>(message.size()) / static_cast<double>(kElements);
    const double megabytes = 1e-6 * sizeof(float) * kElements;
    metrics.push_back({"bits_per_parameter", name, bits, {}, table});
    metrics.push_back({"encode_over_memcpy", name, encode.ratio, {}, table});
    metrics.push_back({"encode_mb_s", name, megabytes / encode.seconds, {}, table});
    metrics.push_back({"decode_over_memcpy", name, decode.ratio, {}, table});
    metrics.push_back({"decode_mb_s", name, megabytes / decode.seconds, {}, table});
  }
  return metrics;
}

}  // namespace

std::vector<Job> CodecTableJobs() {
  return {{{"bits_per_parameter", "encode_over_memcpy", "encode_mb_s", "decode_over_memcpy", "decode_mb_s"},
           "every codec",
           8,
           MeasureCodecs}};
}

}  // namespace terse
