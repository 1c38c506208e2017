// An invitation: the file with which a device gets its client's certificate from the fleet's authority over the network
// (security/enrolment.h), without anybody carrying requests around. docs/SECURITY.md, "Enrolment".
#ifndef TERSE_SECURITY_INVITATION_H_
#define TERSE_SECURITY_INVITATION_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace terse {

// An invitation to the fleet. Everyone who has the secret may come in, so the file is kept as a key is.
struct Invitation {
  std::string address;    // HOST:PORT where the authority answers (`tersectl pki serve`)
  std::string secret;     // kSecretDigits hexadecimal digits in lower case
  std::string authority;  // its certificate, PEM: whom the guest is to trust, for enrolment and ever after
};

inline constexpr size_t kSecretDigits = 64;

// JSON, as docs/SECURITY.md describes it.
std::string InvitationText(const Invitation& invitation);
// INVALID_ARGUMENT saying what is wrong.
absl::StatusOr<Invitation> ReadInvitation(absl::string_view text);

}  // namespace terse

#endif  // TERSE_SECURITY_INVITATION_H_
