#include "coordinator/rpc/dashboard_access.h"

#include "absl/strings/str_cat.h"
#include "coordinator/rpc/access.h"
#include "core/status.h"
#include "security/certificate.h"
#include "security/private_files.h"
#include "security/secret.h"

namespace terse {
namespace {

constexpr size_t kTokenBytes = 32;
constexpr char kOperatorMethod[] = "/terse.v1.Admin/Pause";

}  // namespace

absl::StatusOr<std::shared_ptr<const DashboardAccess>> DashboardAccess::Open(const std::string& state_directory,
                                                                             AuditTrail* audit) {
  std::string token;
  if (!state_directory.empty()) {
    TERSE_ASSIGN_OR_RETURN(token, NewSecret(kTokenBytes));
    TERSE_RETURN_IF_ERROR(ReplacePrivateFile(state_directory, kTokenFile, absl::StrCat(token, "\n")));
  }
  return std::shared_ptr<const DashboardAccess>(
      new DashboardAccess(std::move(token), absl::StrCat(state_directory, "/", kTokenFile), audit));
}

bool DashboardAccess::HasToken(const HttpCaller& caller) const {
  return !token_.empty() && caller.certificate.empty() && IsSameSecret(caller.token, token_);
}

std::string DashboardAccess::Hint(const HttpCaller& caller) const {
  if (!caller.certificate.empty()) return "commands need the certificate of an operator";
  return absl::StrCat(caller.token.empty() ? "commands need the token in " : "the token is not the one in ", file_,
                      " on the coordinator's machine, which is another one after each of its starts");
}

absl::Status DashboardAccess::CheckCleartext(const HttpCaller& caller, absl::string_view method) const {
  if (MayCall(Role::kObserver, method) || HasToken(caller)) return absl::OkStatus();
  const absl::Status why = absl::UnauthenticatedError(Hint(caller));
  audit_->Refused({kCleartextCaller, "", caller.host}, method, why);
  return why;
}

Visitor DashboardAccess::VisitorOf(const HttpCaller& caller) const {
  Visitor visitor;
  if (caller.certificate.empty()) {
    visitor.is_operator = HasToken(caller);
    visitor.caller = {visitor.is_operator ? kTokenCaller : kCleartextCaller, "", caller.host};
  } else if (const absl::StatusOr<CertificateFacts> peer = ReadCertificate(caller.certificate); peer.ok()) {
    visitor.is_operator = MayCall(peer->identity.role, kOperatorMethod);
    visitor.caller = CallerOf(*peer, caller.host);
  }
  if (!visitor.is_operator) visitor.hint = Hint(caller);
  return visitor;
}

}  // namespace terse
