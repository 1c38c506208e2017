// Puts toml11's texts about files that are not TOML in words for people.
#ifndef TERSE_PROTO_TOML_SYNTAX_H_
#define TERSE_PROTO_TOML_SYNTAX_H_

#include <string>

#include "absl/strings/string_view.h"

namespace terse {

// The reason and the remedy for a mistake that people make by hand; otherwise the first line of toml11's message `what`
// without its tags: "[error] toml::parse_key: empty key is not allowed." -> "empty key is not allowed.". Pure.
std::string TomlSyntaxText(absl::string_view what);

}  // namespace terse

#endif  // TERSE_PROTO_TOML_SYNTAX_H_
