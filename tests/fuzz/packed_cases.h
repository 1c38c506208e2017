// The codecs whose messages can be packed (Codec::Pack), on layouts with matrices, and what an input makes of them.
#ifndef TERSE_TESTS_FUZZ_PACKED_CASES_H_
#define TERSE_TESTS_FUZZ_PACKED_CASES_H_

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "compression/choice_codec.h"
#include "compression/update_history.h"
#include "tests/compression/updates.h"
#include "tests/fuzz/input.h"

namespace terse {

// The layouts are as small as they can be: they have enough positions for the shared coder when 1 in 10 elements is
// sent, and in a row when 4 in 10 are. One tensor of the first layout has rows and columns that count, its others have
// not. The tensor of the last takes two lanes when 4 in 10 elements are sent; it is slow.
inline const std::vector<Layout>& PackedLayouts() {
  static const auto* const layouts = new std::vector<Layout>{
      *Layout::Create({{"conv", {12, 5, 6}}, {"bias", {7}}, {"gain", {}}}),
      *Layout::Create({{"row", {90}}}),
      *Layout::Create({{"conv", {8, 10}}, {"fc", {9, 40}}, {"mean", {3}, TensorKind::kBuffer}}),
      *Layout::Create({{"fc", {64, 161}}}),
  };
  return *layouts;
}

inline constexpr size_t kQuickLayouts = 3;
// Inputs of so many bytes, the short ones of a campaign, have the first layout for the slow one: else most of its time
// would go into that.
inline constexpr size_t kShortPacked = 250;

struct PackedCase {
  const Codec* codec;
  bool rice;  // whether its messages have their positions in Rice's code
};

// Makes codecs when they are first asked for, and keeps them. Not thread-safe.
class PackedCases {
 public:
  PackedCases() {
    for (CodecCase& codec_case : AllCodecCases()) {
      const auto codec = MakeCodec(codec_case.spec, PackedLayouts()[0]);
      Require(codec.ok(), codec.status().ToString());
      if ((*codec)->PackedLayout() != nullptr) cases_.push_back(std::move(codec_case));
    }
    Require(!cases_.empty(), "some codecs send positions");
  }

  const std::vector<CodecCase>& cases() const { return cases_; }

  // Any numbers choose one. The case after the last is a choice of two codecs.
  PackedCase Pick(size_t codec_case, size_t layout) {
    codec_case %= cases_.size() + 1;
    layout %= PackedLayouts().size();
    std::unique_ptr<const Codec>& codec = codecs_[{codec_case, layout}];
    if (codec == nullptr) codec = Make(codec_case, PackedLayouts()[layout]);
    return {codec.get(), codec_case == cases_.size() || cases_[codec_case].spec.positions == "rice"};
  }

 private:
  std::unique_ptr<const Codec> Make(size_t codec_case, const Layout& layout) const {
    const std::vector<CodecSpec> choices = {SparseSpec("sbc", 0.1), SparseSpec("top_k", 0.4)};
    auto made =
        codec_case < cases_.size() ? MakeCodec(cases_[codec_case].spec, layout) : ChoiceCodec::Create(choices, layout);
    Require(made.ok(), made.status().ToString());
    return *std::move(made);
  }

  std::vector<CodecCase> cases_;
  std::map<std::pair<size_t, size_t>, std::unique_ptr<const Codec>> codecs_;
};

// Messages of one codec, from a number pattern that moves on from message to message.
class PackedMessages {
 public:
  // The numbers of message i begin `step` * i elements later, and those of every second one are negated if `signs`.
  PackedMessages(const Codec& codec, absl::string_view pattern, size_t step, bool signs)
      : codec_(codec),
        numbers_(Numbers(pattern, static_cast<size_t>(codec.layout().size()), /*finite=*/true)),
        step_(step % numbers_.size()),
        signs_(signs) {}

  std::string Next() {
    EncodeOptions options;
    options.key = {1, ++made_, 3};
    options.choice = dynamic_cast<const ChoiceCodec*>(&codec_) == nullptr ? 0 : static_cast<int64_t>(made_ % 2);
    absl::StatusOr<std::string> message = codec_.Encode(numbers_, options);
    Require(message.ok(), "every finite update is coded");
    std::rotate(numbers_.begin(), numbers_.begin() + static_cast<int64_t>(step_), numbers_.end());
    if (!signs_) return *std::move(message);
    for (float& number : numbers_) number = -number;
    return *std::move(message);
  }

  // The history of so many messages.
  UpdateHistory History(int messages) {
    UpdateHistory history(*codec_.PackedLayout());
    for (int i = 0; i < messages; ++i) {
      Require(codec_.AddToHistory(Next(), &history).ok(), "every message can be added to a history");
    }
    return history;
  }

 private:
  const Codec& codec_;
  std::vector<float> numbers_;
  const size_t step_;
  const bool signs_;
  uint64_t made_ = 0;
};

// Changes bytes as the rest of the input says, three bytes a change: place (2 bytes; any number) and value. A value is
// what is flipped there, or appended where the place lies behind the end; 0 cuts the bytes off at the place.
inline void Edit(Input* input, std::string* bytes) {
  constexpr size_t kPlacesBehind = 4;
  while (!input->empty()) {
    const size_t place = input->Word16() % (bytes->size() + kPlacesBehind);
    const char value = static_cast<char>(input->Byte());
    if (place >= bytes->size()) {
      bytes->push_back(value);
    } else if (value == 0) {
      bytes->resize(place);
    } else {
      (*bytes)[place] = static_cast<char>((*bytes)[place] ^ value);
    }
  }
}

inline void RequireRefusal(const absl::Status& status) {
  Require(status.code() == absl::StatusCode::kInvalidArgument, "bytes that nobody made are an INVALID_ARGUMENT");
  Require(!status.message().empty(), "the status says what is wrong");
}

}  // namespace terse

#endif  // TERSE_TESTS_FUZZ_PACKED_CASES_H_
