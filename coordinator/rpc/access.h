// Which roles may call which method: the one table of docs/SECURITY.md, "Roles".
#ifndef TERSE_COORDINATOR_RPC_ACCESS_H_
#define TERSE_COORDINATOR_RPC_ACCESS_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "security/identity.h"

namespace terse {

struct MethodAccess {
  absl::string_view method;  // "/terse.v1.Fleet/Session"
  std::vector<Role> roles;
};

// Every method of every service that a coordinator serves.
absl::Span<const MethodAccess> AccessTable();

// False for a method that the table does not have.
bool MayCall(Role role, absl::string_view method);

}  // namespace terse

#endif  // TERSE_COORDINATOR_RPC_ACCESS_H_
