#include "tests/fuzz/session_language.h"

#include <utility>

#include "core/random.h"
#include "tests/compression/updates.h"
#include "tests/fuzz/input.h"

namespace terse {
namespace {

constexpr int kMessages = 6;

// Rows of so many elements; of a shared language's, every fourth is much larger than the others in all messages.
constexpr int64_t kRow = 24;

Language MakeLanguage(CodecSpec spec, const Layout& layout) {
  Language language;
  language.codec = *MakeCodec(spec, layout);
  language.spec = std::move(spec);
  for (const char* name : {"sbc", "qsgd"}) language.downstream_codecs[name] = NewCodec(name, 0.1, "fp32", layout);
  language.initial_weights.assign(static_cast<size_t>(layout.size()), 0.25f);
  Random random(6);
  for (int i = 0; i < kMessages; ++i) {
    std::vector<float> update = RandomUpdate(layout.size(), &random, i + 1 == kMessages ? 1e38 : 1);
    for (size_t j = 0; language.shared() && j < update.size(); ++j) {
      if (j / kRow % 4 != 0) update[j] /= 16;
    }
    language.messages.push_back(*language.codec->Encode(update, {CodecKey{1, 1, 1}}));
  }
  return language;
}

std::vector<Language> MakeLanguages() {
  std::vector<Language> made;
  const Layout small = MakeLayout({3, 20, 9});
  for (const char* name : {"sbc", "top_k", "dense", "qsgd"}) made.push_back(MakeLanguage(SparseSpec(name, 0.1), small));
  const Layout matrix = *Layout::Create({{"w", {8, kRow}}});
  made.push_back(MakeLanguage(SparseSpec("top_k", 0.25, "fp32", std::string(kSharedPositions)), matrix));
  return made;
}

}  // namespace

const Language& LanguageOf(size_t choice) {
  static const auto& languages = *new std::vector<Language>(MakeLanguages());
  return languages[choice % languages.size()];
}

}  // namespace terse
