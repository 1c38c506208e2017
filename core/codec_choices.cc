#include "core/codec_choices.h"

#include <algorithm>

namespace terse {
namespace {

std::vector<CodecSpec> StageChoices(const ControlSpec& control, const CodecSpec& codec) {
  if (control.density.empty() && control.bits.empty()) return {codec};
  std::vector<CodecSpec> choices(StagesOf(control), codec);
  for (size_t i = 0; i < choices.size(); ++i) {
    if (!control.density.empty()) choices[i].density = control.density[i];
    if (!control.bits.empty()) choices[i].bits = control.bits[i];
  }
  return choices;
}

std::vector<CodecSpec> BitChoices(const CodecSpec& codec) {
  std::vector<CodecSpec> choices;
  for (int64_t bits = kMqgradFewestBits; bits <= kMqgradMostBits; ++bits) {
    choices.push_back(codec);
    choices.back().bits = bits;
  }
  return choices;
}

}  // namespace

int64_t StagesOf(const ControlSpec& control) {
  const size_t stages = std::max({control.local_steps.size(), control.density.size(), control.bits.size()});
  return std::max<int64_t>(1, static_cast<int64_t>(stages));
}

std::vector<CodecSpec> UpdateChoices(const RunConfig& config) {
  if (config.control.name == "schedule") return StageChoices(config.control, config.codec);
  return config.control.name == "mqgrad" ? BitChoices(config.codec) : std::vector<CodecSpec>{config.codec};
}

std::vector<CodecSpec> DownstreamChoices(const RunConfig& config) {
  const CodecSpec& codec = config.downstream_codec;
  return config.control.name == "mqgrad" ? BitChoices(codec) : std::vector<CodecSpec>{codec};
}

}  // namespace terse
