#include "core/cli/checks.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/closest_word.h"
#include "core/host_port.h"

namespace terse {
namespace {

// "from 1 to 10000", "0 or more".
template <typename Value>
std::string RangeText(Value least, Value most) {
  if (most == std::numeric_limits<Value>::max()) return absl::StrCat(least, " or more");
  return absl::StrCat("from ", least, " to ", most);
}

// "a", "a or b", "a, b or c".
std::string AlternativesText(const std::vector<std::string>& words) {
  if (words.size() < 2) return absl::StrJoin(words, "");
  return absl::StrCat(absl::StrJoin(words.begin(), words.end() - 1, ", "), " or ", words.back());
}

CLI::Validator AddressCheck(absl::Status (*check)(absl::string_view), UnixSockets unix_sockets) {
  const bool unix_too = unix_sockets == UnixSockets::kAllowed;
  return CLI::Validator(
      [check, unix_too](std::string& address) {
        return unix_too && IsUnixSocket(address) ? std::string() : std::string(check(address).message());
      },
      unix_too ? "HOST:PORT or unix:PATH" : "HOST:PORT");
}

CLI::Validator PathCheck(std::filesystem::file_type type, const std::string& kind) {
  return CLI::Validator(
      [type, kind](std::string& path) {
        std::error_code error;
        const std::filesystem::file_type found = std::filesystem::status(path, error).type();
        const bool is_folder = found == std::filesystem::file_type::directory;
        const bool exists = found != std::filesystem::file_type::not_found && !error;
        if (exists && is_folder == (type == std::filesystem::file_type::directory)) return std::string();
        if (found == std::filesystem::file_type::none) {
          return absl::StrCat("'", path, "' cannot be looked at: ", error.message());
        }
        if (exists) return absl::StrCat("'", path, "' is ", is_folder ? "a folder" : "no folder", "; give a ", kind);
        return absl::StrCat("there is no ", kind, " '", path, "'; give one that exists");
      },
      kind == "file" ? "FILE" : "DIR");
}

}  // namespace

CLI::Validator WholeNumber(uint64_t least, uint64_t most) {
  return CLI::Validator(
      [least, most](std::string& text) {
        const std::string remedy = absl::StrCat("; give a whole number, ", RangeText(least, most));
        uint64_t value = 0;
        int64_t negative = 0;
        const bool is_negative = absl::SimpleAtoi(text, &negative) && negative < 0;
        // CLI11 would read 010 as an octal number.
        const bool is_plain = absl::SimpleAtoi(text, &value) && absl::StrCat(value) == text;
        if (!is_negative && !is_plain) return absl::StrCat("'", text, "' is no whole number up to 2^64", remedy);
        if (is_negative || value < least) return absl::StrCat(text, " is too small", remedy);
        return value > most ? absl::StrCat(text, " is too large", remedy) : std::string();
      },
      RangeText(least, most));
}

CLI::Validator Number(double least, double most) {
  return CLI::Validator(
      [least, most](std::string& text) {
        const std::string remedy = absl::StrCat("; give a number, ", RangeText(least, most));
        double value = 0;
        if (!absl::SimpleAtod(text, &value) || !std::isfinite(value)) {
          return absl::StrCat("'", text, "' is no number", remedy);
        }
        if (value < least) return absl::StrCat(text, " is too small", remedy);
        return value > most ? absl::StrCat(text, " is too large", remedy) : std::string();
      },
      RangeText(least, most));
}

CLI::Validator NumberAboveZero() {
  return CLI::Validator(
      [](std::string& text) {
        double value = 0;
        if (absl::SimpleAtod(text, &value) && std::isfinite(value) && value > 0) return std::string();
        return absl::StrCat("'", text, "' is no number above 0; give one");
      },
      "above 0");
}

CLI::Validator OneOf(std::vector<std::string> words) {
  const std::string description = absl::StrCat("{", absl::StrJoin(words, ","), "}");
  return CLI::Validator(
      [words = std::move(words)](std::string& text) {
        if (std::find(words.begin(), words.end(), text) != words.end()) return std::string();
        return absl::StrCat("'", text, "' is not allowed; ", DidYouMean(text, words), "give ", AlternativesText(words));
      },
      description);
}

CLI::Validator AmountOfBytes() {
  return CLI::Validator(
      [](std::string& text) {
        std::string bytes = text;
        // CLI11 would read 010 as an octal number.
        const bool is_octal = text.size() > 1 && text[0] == '0' && absl::ascii_isdigit(text[1]);
        try {
          const std::string refused = CLI::AsSizeValue(/*kb_is_1000=*/true)(bytes);
          if (refused.empty() && !is_octal && bytes.find('-') == std::string::npos) {
            text = bytes;
            return std::string();
          }
        } catch (const CLI::ParseError&) {
        }
        return absl::StrCat("'", text,
                            "' is no amount of bytes; give a whole number with or without a unit, as in 5MB");
      },
      "SIZE");
}

CLI::Validator DialAddress(UnixSockets unix_sockets) { return AddressCheck(&CheckDialAddress, unix_sockets); }

CLI::Validator ListenAddress(UnixSockets unix_sockets) {
  return AddressCheck([](absl::string_view address) { return ParseHostPort(address).status(); }, unix_sockets);
}

CLI::Validator ExistingFile() { return PathCheck(std::filesystem::file_type::regular, "file"); }

CLI::Validator ExistingFolder() { return PathCheck(std::filesystem::file_type::directory, "folder"); }

}  // namespace terse
