#include "learning/datasets/symbols.h"

#include <utf8.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace terse {
namespace {

constexpr absl::string_view kSpaces = " \t\r\v\f";
constexpr absl::string_view kLineEnd = "<eos>";
constexpr absl::string_view kOthers = "<unk>";

absl::Status CheckUtf8(const FileBytes& file) {
  const char* const begin = file.bytes().data();
  const char* const end = begin + file.bytes().size();
  const char* const bad = utf8::find_invalid(begin, end);
  if (bad == end) return absl::OkStatus();
  return file.Malformed(bad - begin, "the text is not UTF-8 here");
}

// Bytes of the character that starts with `first`, in valid UTF-8.
size_t CharacterSize(char first) {
  const auto byte = static_cast<unsigned char>(first);
  return byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

// Calls take(symbol, offset in `text`) until it returns false.
template <typename Take>
void ForEachCharacter(absl::string_view text, const Take& take) {
  for (size_t at = 0; at < text.size();) {
    const size_t size = CharacterSize(text[at]);
    if (!take(text.substr(at, size), at)) return;
    at += size;
  }
}

template <typename Take>
void ForEachWord(absl::string_view text, const Take& take) {
  size_t at = 0;
  while (at < text.size()) {
    if (kSpaces.find(text[at]) != absl::string_view::npos) {
      ++at;
    } else if (text[at] == '\n') {
      if (!take(kLineEnd, at)) return;
      ++at;
    } else {
      const size_t end = std::min(text.size(), text.find_first_of(" \t\r\v\f\n", at));
      if (!take(text.substr(at, end - at), at)) return;
      at = end;
    }
  }
  // The last line may lack its end.
  if (!text.empty() && text.back() != '\n') take(kLineEnd, at);
}

template <typename Take>
absl::Status ForEachSymbol(const FileBytes& file, TextLevel level, const Take& take) {
  TERSE_RETURN_IF_ERROR(CheckUtf8(file));
  if (level == TextLevel::kChar) {
    ForEachCharacter(file.text(), take);
  } else {
    ForEachWord(file.text(), take);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status SymbolCounter::Add(const FileBytes& file, std::vector<int32_t>* symbols) {
  return ForEachSymbol(file, level_, [&](absl::string_view symbol, size_t) {
    auto found = numbers_.find(symbol);
    if (found == numbers_.end()) {
      found = numbers_.emplace(std::string(symbol), static_cast<int32_t>(counts_.size())).first;
      counts_.push_back(0);
    }
    ++counts_[found->second];
    symbols->push_back(found->second);
    return true;
  });
}

void SymbolCounter::Finish(int64_t limit, std::vector<int32_t>* symbols) {
  std::vector<std::pair<std::string, int32_t>> order(numbers_.begin(), numbers_.end());
  std::sort(order.begin(), order.end(), [this](const auto& a, const auto& b) {
    const int64_t first = counts_[a.second], second = counts_[b.second];
    return first != second ? first > second : a.first < b.first;
  });
  if (limit > 0 && static_cast<int64_t>(order.size()) > limit) order.resize(limit);
  numbers_.clear();
  std::vector<int32_t> renumbered(counts_.size(), -1);
  for (const auto& [symbol, number] : order) {
    renumbered[number] = static_cast<int32_t>(vocabulary_.size());
    numbers_.emplace(symbol, renumbered[number]);
    vocabulary_.push_back(symbol);
  }
  if (limit > 0 && numbers_.emplace(kOthers, static_cast<int32_t>(vocabulary_.size())).second) {
    vocabulary_.emplace_back(kOthers);
  }
  for (int32_t& symbol : *symbols) {
    symbol = renumbered[symbol] >= 0 ? renumbered[symbol] : numbers_.at(kOthers);
  }
}

absl::Status SymbolCounter::Number(const FileBytes& file, std::vector<int32_t>* symbols) const {
  const auto others = numbers_.find(kOthers);
  absl::Status unknown;
  TERSE_RETURN_IF_ERROR(ForEachSymbol(file, level_, [&](absl::string_view symbol, size_t offset) {
    auto found = numbers_.find(symbol);
    if (found == numbers_.end()) found = others;
    if (found != numbers_.end()) {
      symbols->push_back(found->second);
      return true;
    }
    unknown = absl::InvalidArgumentError(
        absl::StrCat(file.name(), ", offset ", file.size() - file.text().size() + offset, ": '", symbol.substr(0, 40),
                     "' is not in the training text; set data.vocabulary, so that such symbols become <unk>"));
    return false;
  }));
  return unknown;
}

}  // namespace terse
