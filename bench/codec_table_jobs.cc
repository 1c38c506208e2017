#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "bench/job.h"
#include "bench/measure.h"
#include "compression/codec_table.h"

namespace terse {
namespace {

constexpr double kThreshold = 2.5;  // a hundredth of the elements is larger

// The most memcpys of the tensor that one thread may take.
struct Limits {
  const char* codec;
  double encode;
  double decode;
};

constexpr Limits kLimits[] = {
    {"dense", 1.2, 1.2},      {"fp16", 1.2, 1.2},     {"bf16", 1.2, 1.2},
    {"signsgd", 2.0, 1.2},    {"signum", 2.0, 1.2},   {"one_bit", 2.0, 1.2},
    {"ef_signsgd", 2.0, 1.2}, {"top_k", 2.0, 0.5},    {"dgc", 2.0, 0.5},
    {"strom", 2.0, 0.5},      {"stc", 2.0, 0.5},      {"sbc_or_stc", 2.0, 0.5},
    {"qsgd", 4.0, 2.0},       {"terngrad", 4.0, 2.0}, {"low_precision", 4.0, 2.0},
    {"mcgq", 5.0, 2.0},       {"adacomp", 5.0, 2.0},  {"low_precision_sparse", 5.0, 2.0},
};

struct CodecTargets {
  Target encode;
  Target decode;
};

CodecTargets TargetsOf(const std::string& codec) {
  const auto* const limits = absl::c_find_if(kLimits, [&](const Limits& one) { return one.codec == codec; });
  if (limits == std::end(kLimits)) return {};
  return {AtMost(limits->encode), AtMost(limits->decode)};
}

// As a client does it, which gives the memory of a message back once it was sent.
std::vector<Metric> MeasureCodec(const std::string& name, const std::vector<float>& update, int repetitions) {
  CodecSpec spec;
  spec.name = name;
  spec.threshold = kThreshold;
  const int64_t size = static_cast<int64_t>(update.size());
  const std::string table = absl::StrCat("codecs, Gaussian n=", size, ", default settings, tau of strom ", kThreshold);
  const auto nothing = [] {};
  const std::unique_ptr<const Codec> codec = Must(MakeCodec(spec, OneTensor(size)));
  const std::unique_ptr<EncodeScratch> scratch = codec->NewScratch();
  EncodeOptions options;
  options.scratch = scratch.get();
  std::string message = Must(codec->Encode(update, options));
  const Ratio encode = OverMemcpy(repetitions, update, nothing, [&] {
    scratch->spent = std::move(message);
    message = Must(codec->Encode(update, options));
  });
  std::vector<float> sum(update.size());
  const Ratio decode =
      OverMemcpy(repetitions, update, nothing, [&] { Must(codec->AddDecoded(message, 1.0f, absl::MakeSpan(sum))); });
  const double megabytes = 1e-6 * sizeof(float) * static_cast<double>(size);
  const CodecTargets targets = TargetsOf(name);
  return {{"bits_per_parameter", name, 8 * static_cast<double>(message.size()) / static_cast<double>(size), {}, table},
          {"encode_over_memcpy", name, encode.ratio, targets.encode, table},
          {"encode_mb_s", name, megabytes / encode.seconds, {}, table},
          {"decode_over_memcpy", name, decode.ratio, targets.decode, table},
          {"decode_mb_s", name, megabytes / decode.seconds, {}, table}};
}

std::vector<Metric> MeasureCodecs(const JobSetting& setting) {
  const std::vector<float> update = Gaussian(setting.large, 1);
  std::vector<Metric> metrics;
  for (const std::string& name : CodecNames()) {
    for (Metric& metric : MeasureCodec(name, update, setting.Repetitions(11))) metrics.push_back(std::move(metric));
  }
  return metrics;
}

}  // namespace

std::vector<Job> CodecTableJobs() {
  return {{{"bits_per_parameter", "encode_over_memcpy", "encode_mb_s", "decode_over_memcpy", "decode_mb_s"},
           "every codec",
           40,
           MeasureCodecs}};
}

}  // namespace terse
