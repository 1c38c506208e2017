#include "compression/choice_codec.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compression/codec_table.h"
#include "core/codec_choices.h"
#include "core/status.h"

namespace terse {
namespace {

constexpr char kFormat = 0x1a;
constexpr size_t kHeader = 2;

// The scratch of the choice that encoded last; the scratch of the other choices is not kept.
struct ChoiceScratch : EncodeScratch {
  int64_t choice = -1;
  std::unique_ptr<EncodeScratch> of_choice;
};

EncodeScratch* ScratchOf(const Codec& codec, int64_t choice, EncodeScratch* scratch) {
  if (scratch == nullptr) return nullptr;
  auto& kept = static_cast<ChoiceScratch&>(*scratch);
  if (kept.choice != choice) kept.of_choice = codec.NewScratch();
  kept.choice = choice;
  kept.of_choice->spent = std::move(kept.spent);
  return kept.of_choice.get();
}

std::string WithHeader(int64_t choice, std::string message) {
  const char header[kHeader] = {kFormat, static_cast<char>(static_cast<uint8_t>(choice))};
  return std::move(message.insert(0, header, kHeader));
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Codec>> ChoiceCodec::Create(absl::Span<const CodecSpec> choices,
                                                                 const Layout& layout) {
  if (choices.empty() || choices.size() > kMostCodecChoices) {
    return absl::InvalidArgumentError(
        absl::StrCat("a run has 1 to ", kMostCodecChoices, " codings to choose from, not ", choices.size()));
  }
  std::vector<std::unique_ptr<const Codec>> codecs;
  for (const CodecSpec& spec : choices) {
    TERSE_ASSIGN_OR_RETURN(std::unique_ptr<const Codec> codec, MakeCodec(spec, layout));
    codecs.push_back(std::move(codec));
  }
  if (codecs.size() == 1) return std::move(codecs[0]);
  return std::unique_ptr<const Codec>(new ChoiceCodec(std::move(codecs)));
}

CodecTraits ChoiceCodec::traits() const {
  CodecTraits all = choices_[0]->traits();
  for (const auto& codec : choices_) {
    const CodecTraits one = codec->traits();
    all.lossless = all.lossless && one.lossless;
    all.unbiased = all.unbiased && one.unbiased;
    all.carries_all = all.carries_all && one.carries_all;
    all.stochastic = all.stochastic || one.stochastic;
    all.uses_latest = all.uses_latest || one.uses_latest;
  }
  return all;
}

int64_t ChoiceCodec::MaxMessageBytes() const {
  int64_t most = 0;
  for (const auto& codec : choices_) most = std::max(most, codec->MaxMessageBytes());
  return most + static_cast<int64_t>(kHeader);
}

std::unique_ptr<EncodeScratch> ChoiceCodec::NewScratch() const { return std::make_unique<ChoiceScratch>(); }

absl::StatusOr<ChoiceCodec::Picked> ChoiceCodec::Pick(const EncodeOptions& options) const {
  if (options.choice < 0 || options.choice >= static_cast<int64_t>(choices_.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no choice ", options.choice, " among the ", choices_.size(), " codings of the run"));
  }
  Picked picked = {choices_[options.choice].get(), options};
  picked.options.choice = 0;
  picked.options.scratch = ScratchOf(*picked.codec, options.choice, options.scratch);
  return picked;
}

absl::StatusOr<std::string> ChoiceCodec::Encode(absl::Span<const float> update, const EncodeOptions& options) const {
  TERSE_ASSIGN_OR_RETURN(const Picked picked, Pick(options));
  TERSE_ASSIGN_OR_RETURN(std::string message, picked.codec->Encode(update, picked.options));
  return WithHeader(options.choice, std::move(message));
}

absl::StatusOr<std::string> ChoiceCodec::AddAndEncode(absl::Span<const float> residual, absl::Span<float> delta,
                                                      const EncodeOptions& options) const {
  TERSE_ASSIGN_OR_RETURN(const Picked picked, Pick(options));
  TERSE_ASSIGN_OR_RETURN(std::string message, picked.codec->AddAndEncode(residual, delta, picked.options));
  return WithHeader(options.choice, std::move(message));
}

absl::StatusOr<int64_t> ChoiceCodec::CostBits(absl::Span<const float> update, const EncodeOptions& options) const {
  TERSE_ASSIGN_OR_RETURN(const Picked picked, Pick(options));
  TERSE_ASSIGN_OR_RETURN(const int64_t bits, picked.codec->CostBits(update, picked.options));
  return bits + 16;  // the choice, and the chosen codec's format byte
}

bool ChoiceCodec::AddEncoded(const EncodeScratch& scratch, float sign, absl::Span<float> accumulator) const {
  const auto& kept = static_cast<const ChoiceScratch&>(scratch);
  return kept.choice >= 0 && choices_[kept.choice]->AddEncoded(*kept.of_choice, sign, accumulator);
}

absl::StatusOr<const Codec*> ChoiceCodec::Named(absl::string_view message) const {
  if (message.size() < kHeader || message[0] != kFormat) {
    return absl::InvalidArgumentError(absl::StrCat(name(),
                                                   " message without the format byte 0x1a and a choice; this run ",
                                                   "has ", choices_.size(), " codings to choose from"));
  }
  EncodeOptions options;
  options.choice = ChoiceOf(message);
  TERSE_ASSIGN_OR_RETURN(const Picked picked, Pick(options));
  return picked.codec;
}

absl::StatusOr<std::unique_ptr<UpdateCursor>> ChoiceCodec::Open(absl::string_view message) const {
  TERSE_ASSIGN_OR_RETURN(const Codec* const codec, Named(message));
  return codec->Open(message.substr(kHeader));
}

absl::StatusOr<absl::optional<std::vector<int64_t>>> ChoiceCodec::SentPositions(absl::string_view message) const {
  TERSE_ASSIGN_OR_RETURN(const Codec* const codec, Named(message));
  return codec->SentPositions(message.substr(kHeader));
}

const Layout* ChoiceCodec::PackedLayout() const {
  const Layout* const first = choices_[0]->PackedLayout();
  for (const auto& codec : choices_) {
    const Layout* const layout = codec->PackedLayout();
    if (first == nullptr || layout == nullptr || layout->Hash() != first->Hash()) return nullptr;
  }
  return first;
}

absl::StatusOr<const Codec*> ChoiceCodec::NamedForPacking(absl::string_view message) const {
  if (PackedLayout() != nullptr) return Named(message);
  return absl::FailedPreconditionError(absl::StrCat("the ", choices_.size(), " codings that the run chooses from, ",
                                                    name(), " first, have no tensors in common whose positions a ",
                                                    "history could pack; use one grouping and sparse codecs only"));
}

absl::StatusOr<std::string> ChoiceCodec::Pack(absl::string_view message, const UpdateHistory& history) const {
  TERSE_ASSIGN_OR_RETURN(const Codec* const codec, NamedForPacking(message));
  TERSE_ASSIGN_OR_RETURN(std::string packed, codec->Pack(message.substr(kHeader), history));
  return WithHeader(ChoiceOf(message), std::move(packed));
}

absl::StatusOr<std::string> ChoiceCodec::Unpack(absl::string_view packed, const UpdateHistory& history) const {
  TERSE_ASSIGN_OR_RETURN(const Codec* const codec, NamedForPacking(packed));
  TERSE_ASSIGN_OR_RETURN(std::string message, codec->Unpack(packed.substr(kHeader), history));
  return WithHeader(ChoiceOf(packed), std::move(message));
}

absl::Status ChoiceCodec::AddToHistory(absl::string_view message, UpdateHistory* history) const {
  TERSE_ASSIGN_OR_RETURN(const Codec* const codec, NamedForPacking(message));
  return codec->AddToHistory(message.substr(kHeader), history);
}

int64_t ChoiceOf(absl::string_view message) {
  return message.size() >= kHeader && message[0] == kFormat ? static_cast<uint8_t>(message[1]) : 0;
}

}  // namespace terse
