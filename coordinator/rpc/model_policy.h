// Decides from whom a coordinator takes models: `--allow-models` (docs/SECURITY.md, "Users' models in the
// coordinator").
#ifndef TERSE_COORDINATOR_RPC_MODEL_POLICY_H_
#define TERSE_COORDINATOR_RPC_MODEL_POLICY_H_

#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace terse {

// Immutable. One without a text takes those that come over the coordinator's own Unix socket.
class ModelPolicy {
 public:
  // "socket": who may open the admin service's Unix socket, which is the coordinator's own user. "none": nobody. "any":
  // everybody who may create a run. Otherwise names of operators, as their certificates have them, with commas between
  // them; the socket then counts too. INVALID_ARGUMENT for anything else.
  static absl::StatusOr<ModelPolicy> Parse(absl::string_view text);

  // PERMISSION_DENIED, with the remedy, unless a TorchScript module of `caller`, as CallerOf names it (audit_trail.h),
  // may be taken.
  absl::Status Check(absl::string_view caller) const;

 private:
  enum class Kind { kNone, kSocket, kNames, kAny };
  Kind kind_ = Kind::kSocket;
  std::set<std::string, std::less<>> names_;
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_RPC_MODEL_POLICY_H_
