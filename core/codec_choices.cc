#include "core/codec_choices.h"

#include <algorithm>

#include "core/epochs.h"

namespace terse {
namespace {

struct SparseRow {
  const char* name;
  int64_t (*value_bits)(const CodecSpec& codec);
};

constexpr int64_t kFloatBits = 32;

constexpr SparseRow kSparse[] = {
    {"sbc", [](const CodecSpec& codec) -> int64_t { return 0; }},
    {"stc", [](const CodecSpec& codec) -> int64_t { return 1; }},
    {"sbc_or_stc", [](const CodecSpec& codec) -> int64_t { return 1; }},
    {"top_k", [](const CodecSpec& codec) -> int64_t { return kFloatBits; }},
    {"dgc", [](const CodecSpec& codec) -> int64_t { return kFloatBits; }},
    {"sparseloco", [](const CodecSpec& codec) -> int64_t { return codec.bits; }},
    {"random_sparse", [](const CodecSpec& codec) -> int64_t { return kFloatBits; }},
    {"low_precision_sparse", [](const CodecSpec& codec) -> int64_t { return codec.bits; }},
};

std::vector<CodecSpec> StageChoices(const ControlSpec& control, const CodecSpec& codec) {
  if (control.density.empty() && control.bits.empty()) return {codec};
  std::vector<CodecSpec> choices(StagesOf(control), codec);
  for (size_t i = 0; i < choices.size(); ++i) {
    if (!control.density.empty()) choices[i].density = control.density[i];
    if (!control.bits.empty()) choices[i].bits = control.bits[i];
  }
  return choices;
}

std::vector<CodecSpec> BitChoices(const CodecSpec& codec, int64_t fewest, int64_t most) {
  std::vector<CodecSpec> choices;
  for (int64_t bits = fewest; bits <= most; ++bits) {
    choices.push_back(codec);
    choices.back().bits = bits;
  }
  return choices;
}

std::vector<CodecSpec> DensityChoices(const CodecSpec& codec, const std::vector<double>& densities) {
  std::vector<CodecSpec> choices(densities.size(), codec);
  for (size_t i = 0; i < choices.size(); ++i) choices[i].density = densities[i];
  return choices;
}

}  // namespace

int64_t StagesOf(const ControlSpec& control) {
  const size_t stages = std::max({control.local_steps.size(), control.density.size(), control.bits.size()});
  return std::max<int64_t>(1, static_cast<int64_t>(stages));
}

std::vector<CodecSpec> UpdateChoices(const RunConfig& config) {
  if (HasEpochs(config)) {
    CodecSpec dense;
    dense.name = "dense";
    return {dense, config.codec};
  }
  if (config.control.name == "schedule") return StageChoices(config.control, config.codec);
  if (config.control.name == "mqgrad") return BitChoices(config.codec, kMqgradFewestBits, kMqgradMostBits);
  if (config.control.name == "joint") return DensityChoices(config.codec, config.control.density);
  return {config.codec};
}

std::vector<CodecSpec> DownstreamChoices(const RunConfig& config) {
  const CodecSpec& codec = config.downstream_codec;
  if (HasEpochs(config) && config.server.precision_loss > 0) {
    return BitChoices(codec, kLowPrecisionFewestBits, codec.bits);
  }
  if (config.control.name == "mqgrad") return BitChoices(codec, kMqgradFewestBits, kMqgradMostBits);
  return {codec};
}

absl::optional<int64_t> SentValueBits(const CodecSpec& codec) {
  for (const SparseRow& row : kSparse) {
    if (codec.name == row.name) return row.value_bits(codec);
  }
  return absl::nullopt;
}

std::vector<std::string> CodecsWithDensity() {
  std::vector<std::string> names;
  for (const SparseRow& row : kSparse) names.push_back(row.name);
  return names;
}

}  // namespace terse
