// The codecs that the fuzzers run: every case of the conformance suite, on layouts of several small tensors.
#ifndef TERSE_TESTS_FUZZ_CODEC_CASES_H_
#define TERSE_TESTS_FUZZ_CODEC_CASES_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "compression/choice_codec.h"
#include "tests/compression/updates.h"
#include "tests/fuzz/input.h"

namespace terse {

// The first is that of most seeds; the tensors of the last but one take more than one run of a cursor, and the last has
// buffers.
inline const std::vector<Layout>& FuzzLayouts() {
  static const auto* const layouts =
      new std::vector<Layout>{MakeLayout({3, 40, 9}), MakeLayout({1}), MakeLayout({1, 30, 2, 300, 17}),
                              MakeLayout({600, 1, 700}), MakeLayout({20, 3, 2, 30}, /*buffers=*/2)};
  return *layouts;
}

// Makes codecs when they are first asked for, and keeps them. Not thread-safe.
class CodecCases {
 public:
  // The cases of one row of the codec table, or all of them when `codec` is empty.
  explicit CodecCases(absl::string_view codec) {
    for (CodecCase& codec_case : AllCodecCases()) {
      if (codec.empty() || codec == codec_case.spec.name) cases_.push_back(std::move(codec_case));
    }
    Require(!cases_.empty(), "the codec table has the row that this target is named after");
  }

  const std::vector<CodecCase>& cases() const { return cases_; }

  const CodecSpec& Spec(size_t codec_case) const { return cases_[codec_case % cases_.size()].spec; }

  // Any numbers choose one.
  const Codec& Pick(size_t codec_case, size_t layout) {
    codec_case %= cases_.size();
    layout %= FuzzLayouts().size();
    std::unique_ptr<const Codec>& codec = codecs_[{codec_case, layout}];
    if (codec == nullptr) {
      auto made = MakeCodec(cases_[codec_case].spec, FuzzLayouts()[layout]);
      Require(made.ok(), made.status().ToString());
      codec = *std::move(made);
    }
    return *codec;
  }

  // One that has all the cases as its choices.
  const Codec& Choice(size_t layout) {
    layout %= FuzzLayouts().size();
    std::unique_ptr<const Codec>& codec = choices_[layout];
    if (codec == nullptr) {
      std::vector<CodecSpec> specs;
      for (const CodecCase& codec_case : cases_) specs.push_back(codec_case.spec);
      auto made = ChoiceCodec::Create(specs, FuzzLayouts()[layout]);
      Require(made.ok(), made.status().ToString());
      codec = *std::move(made);
    }
    return *codec;
  }

 private:
  std::vector<CodecCase> cases_;
  std::map<size_t, std::unique_ptr<const Codec>> choices_;
  std::map<std::pair<size_t, size_t>, std::unique_ptr<const Codec>> codecs_;
};

}  // namespace terse

#endif  // TERSE_TESTS_FUZZ_CODEC_CASES_H_
