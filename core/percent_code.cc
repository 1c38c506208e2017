#include "core/percent_code.h"

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace terse {

absl::optional<std::string> PercentDecode(absl::string_view text) {
  std::string bytes;
  while (!text.empty()) {
    if (text[0] != '%') {
      bytes.push_back(text[0]);
      text.remove_prefix(1);
      continue;
    }
    if (text.size() < 3 || !absl::ascii_isxdigit(text[1]) || !absl::ascii_isxdigit(text[2])) return absl::nullopt;
    absl::StrAppend(&bytes, absl::HexStringToBytes(text.substr(1, 2)));
    text.remove_prefix(3);
  }
  return bytes;
}

}  // namespace terse
