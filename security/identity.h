// The identity in a certificate: a role and a name, as one URI in its subject alternative names.
#ifndef TERSE_SECURITY_IDENTITY_H_
#define TERSE_SECURITY_IDENTITY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace terse {

// The role of a certificate's holder (docs/SECURITY.md): a coordinator serves; a client trains; a relay is a client of
// the coordinator above it and serves clients of its own; an observer looks at runs; an operator also changes them.
enum class Role { kCoordinator, kClient, kRelay, kObserver, kOperator };

// Returns every role, in the order above.
const std::vector<Role>& AllRoles();
absl::string_view RoleName(Role role);  // "coordinator", "client", "relay", "observer", "operator"
// Whether others connect to who has the role: such a certificate names hosts, and its TLS folder has the list of
// revocations.
bool Serves(Role role);
// Whether who has the role connects to coordinators.
bool Calls(Role role);
// Whether who has the role takes part in runs, in sessions under the certificate's name.
bool TakesPart(Role role);
// INVALID_ARGUMENT naming the roles that there are.
absl::StatusOr<Role> ParseRole(absl::string_view name);

struct Identity {
  Role role = Role::kClient;
  std::string name;  // as CheckClientName allows

  bool operator==(const Identity& other) const { return role == other.role && name == other.name; }
};

// "terse:client:berlin-1".
std::string ToUri(const Identity& identity);
// INVALID_ARGUMENT for what ToUri does not write.
absl::StatusOr<Identity> IdentityFromUri(absl::string_view uri);

}  // namespace terse

#endif  // TERSE_SECURITY_IDENTITY_H_
