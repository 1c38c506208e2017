#include "security/secret.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>

#include "absl/strings/escaping.h"
#include "security/openssl_types.h"

namespace terse {

absl::StatusOr<std::string> NewSecret(size_t bytes) {
  std::string random(bytes, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(&random[0]), static_cast<int>(bytes)) != 1) {
    return OpensslError("make a secret");
  }
  return absl::BytesToHexString(random);
}

bool IsSameSecret(absl::string_view shown, absl::string_view secret) {
  return shown.size() == secret.size() && CRYPTO_memcmp(shown.data(), secret.data(), secret.size()) == 0;
}

}  // namespace terse
