#include "security/identity.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/session_messages.h"
#include "core/status.h"

namespace terse {
namespace {

constexpr char kScheme[] = "terse:";
constexpr size_t kMaxShown = 128;  // of a text that was refused

}  // namespace

const std::vector<Role>& AllRoles() {
  static const auto* const roles =
      new std::vector<Role>{Role::kCoordinator, Role::kClient, Role::kRelay, Role::kObserver, Role::kOperator};
  return *roles;
}

absl::string_view RoleName(Role role) {
  switch (role) {
    case Role::kCoordinator:
      return "coordinator";
    case Role::kClient:
      return "client";
    case Role::kRelay:
      return "relay";
    case Role::kObserver:
      return "observer";
    case Role::kOperator:
      return "operator";
  }
  return "unknown";
}

bool Serves(Role role) { return role == Role::kCoordinator || role == Role::kRelay; }

bool Calls(Role role) { return role != Role::kCoordinator; }

bool TakesPart(Role role) { return role == Role::kClient || role == Role::kRelay; }

absl::StatusOr<Role> ParseRole(absl::string_view name) {
  for (const Role role : AllRoles()) {
    if (name == RoleName(role)) return role;
  }
  return absl::InvalidArgumentError(absl::StrCat("there is no role '", absl::CHexEscape(name.substr(0, kMaxShown)),
                                                 "'; the roles are coordinator, client, relay, observer and operator"));
}

std::string ToUri(const Identity& identity) {
  return absl::StrCat(kScheme, RoleName(identity.role), ":", identity.name);
}

absl::StatusOr<Identity> IdentityFromUri(absl::string_view uri) {
  absl::string_view rest = uri;
  const size_t colon = absl::ConsumePrefix(&rest, kScheme) ? rest.find(':') : absl::string_view::npos;
  if (colon == absl::string_view::npos) {
    return absl::InvalidArgumentError(absl::StrCat("'", absl::CHexEscape(uri.substr(0, kMaxShown)),
                                                   "' is no identity such as terse:client:berlin-1"));
  }
  Identity identity;
  TERSE_ASSIGN_OR_RETURN(identity.role, ParseRole(rest.substr(0, colon)));
  identity.name = std::string(rest.substr(colon + 1));
  TERSE_RETURN_IF_ERROR(CheckClientName(identity.name));
  return identity;
}

}  // namespace terse
