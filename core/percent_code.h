// Percent-encoding of URIs (RFC 3986, section 2.1).
#ifndef TERSE_CORE_PERCENT_CODE_H_
#define TERSE_CORE_PERCENT_CODE_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace terse {

// The bytes that `text` stands for: each %XX is one. nullopt for a % that does not begin such a code.
absl::optional<std::string> PercentDecode(absl::string_view text);

}  // namespace terse

#endif  // TERSE_CORE_PERCENT_CODE_H_
