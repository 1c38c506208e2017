// Hashes of files, as other programs make them too (sha256sum).
#ifndef TERSE_SECURITY_FILE_HASH_H_
#define TERSE_SECURITY_FILE_HASH_H_

#include <string>

#include "absl/status/statusor.h"

namespace terse {

// SHA-256 in lower-case hexadecimal digits. The file's errors; reads it part by part.
absl::StatusOr<std::string> Sha256OfFile(const std::string& path);

}  // namespace terse

#endif  // TERSE_SECURITY_FILE_HASH_H_
