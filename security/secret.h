// Secrets that one end shows and the other compares.
#ifndef TERSE_SECURITY_SECRET_H_
#define TERSE_SECURITY_SECRET_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace terse {

// Returns so many random bytes as hexadecimal digits. INTERNAL when OpenSSL has none.
absl::StatusOr<std::string> NewSecret(size_t bytes);

// Whether both are the same. How long that takes tells their lengths and nothing else.
bool IsSameSecret(absl::string_view shown, absl::string_view secret);

}  // namespace terse

#endif  // TERSE_SECURITY_SECRET_H_
