#include "compression/run_codecs.h"

#include "absl/strings/str_cat.h"
#include "compression/choice_codec.h"
#include "core/codec_choices.h"
#include "core/status.h"

namespace terse {

absl::StatusOr<std::unique_ptr<const Codec>> MakeUpdateCodec(const RunConfig& config, const Layout& layout) {
  TERSE_ASSIGN_OR_RETURN(std::unique_ptr<const Codec> codec, ChoiceCodec::Create(UpdateChoices(config), layout));
  if (!SharesHistory(config) || codec->PackedLayout() != nullptr) return codec;
  return absl::InvalidArgumentError(
      absl::StrCat("codec.positions = 'shared' packs the positions of updates, and codec '", config.codec.name,
                   "' sends none that could be; use 'auto', or a sparse codec such as sbc"));
}

absl::StatusOr<std::unique_ptr<const Codec>> MakeDownstreamCodec(const RunConfig& config, const Layout& layout) {
  if (config.downstream != DownstreamMode::kCoded) return nullptr;
  absl::StatusOr<std::unique_ptr<const Codec>> codec = ChoiceCodec::Create(DownstreamChoices(config), layout);
  if (!codec.ok()) return Annotate(codec.status(), "codec.downstream");
  return codec;
}

}  // namespace terse
