#include "security/file_hash.h"

#include <openssl/evp.h>

#include <cstdint>
#include <memory>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"
#include "core/file_system.h"
#include "core/status.h"
#include "security/openssl_types.h"

namespace terse {
namespace {

constexpr int64_t kHashedAtOnce = int64_t{8} << 20;

}  // namespace

absl::StatusOr<std::string> Sha256OfFile(const std::string& path) {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> hash(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  if (hash == nullptr || EVP_DigestInit_ex(hash.get(), EVP_sha256(), nullptr) != 1) return OpensslError("hash");
  for (int64_t offset = 0;; offset += kHashedAtOnce) {
    TERSE_ASSIGN_OR_RETURN(const std::string part, PosixFiles().ReadPart(path, offset, kHashedAtOnce));
    if (EVP_DigestUpdate(hash.get(), part.data(), part.size()) != 1) return OpensslError("hash");
    if (static_cast<int64_t>(part.size()) < kHashedAtOnce) break;
  }
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  if (EVP_DigestFinal_ex(hash.get(), digest, &size) != 1) return OpensslError("hash");
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(digest), size));
}

}  // namespace terse
