#include "proto/toml_syntax.h"

#include "absl/strings/match.h"
#include "absl/strings/strip.h"

namespace terse {
namespace {

struct SyntaxMistake {
  const char* part;  // of toml11's message
  const char* words;
};

constexpr char kNoEndOfText[] =
    "this text does not end: close it with the quote that it begins with, on the same line, and write a backslash as "
    "\\\\";

// The mistakes that people make by hand. toml11 says in its own terms where it gave up, and not what to do.
constexpr SyntaxMistake kSyntaxMistakes[] = {
    {"unknown value appeared",
     "this is not a value: put a text into quotes, as in name = \"demo\", and write truth values as true and false"},
    {"is not a valid string", kNoEndOfText},
    {"is not a valid literal string", kNoEndOfText},
    {"an invalid key appeared", "this is neither a table, as in [rounds], nor a setting, as in count = 40"},
    {"missing key-value separator", "there is no '=' behind the key: write KEY = VALUE"},
    {"missing value after", "there is no value behind the '=': write KEY = VALUE"},
    {"invalid line format",
     "the line goes on behind its value: write one KEY = VALUE a line, and numbers with a decimal point"},
};

}  // namespace

std::string TomlSyntaxText(absl::string_view what) {
  what = what.substr(0, what.find('\n'));
  for (const SyntaxMistake& mistake : kSyntaxMistakes) {
    if (absl::StrContains(what, mistake.part)) return mistake.words;
  }
  absl::ConsumePrefix(&what, "[error] ");
  const size_t tag = what.find("toml::");
  const size_t colon = tag == absl::string_view::npos ? tag : what.find(": ", tag);
  return std::string(colon == absl::string_view::npos ? what : what.substr(colon + 2));
}

}  // namespace terse
