#include "compression/run_codecs.h"

#include "compression/choice_codec.h"
#include "core/codec_choices.h"
#include "core/status.h"

namespace terse {

absl::StatusOr<std::unique_ptr<const Codec>> MakeUpdateCodec(const RunConfig& config, const Layout& layout) {
  return ChoiceCodec::Create(UpdateChoices(config), layout);
}

absl::StatusOr<std::unique_ptr<const Codec>> MakeDownstreamCodec(const RunConfig& config, const Layout& layout) {
  if (config.downstream != DownstreamMode::kCoded) return nullptr;
  absl::StatusOr<std::unique_ptr<const Codec>> codec = ChoiceCodec::Create(DownstreamChoices(config), layout);
  if (!codec.ok()) return Annotate(codec.status(), "codec.downstream");
  return codec;
}

}  // namespace terse
