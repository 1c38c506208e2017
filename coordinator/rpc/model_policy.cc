#include "coordinator/rpc/model_policy.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "coordinator/rpc/audit_trail.h"
#include "core/session_messages.h"

namespace terse {

absl::StatusOr<ModelPolicy> ModelPolicy::Parse(absl::string_view text) {
  ModelPolicy policy;
  if (text == kSocketCaller) return policy;
  if (text == "none" || text == "any") {
    policy.kind_ = text == "any" ? Kind::kAny : Kind::kNone;
    return policy;
  }
  policy.kind_ = Kind::kNames;
  for (const absl::string_view name : absl::StrSplit(text, ',')) {
    const bool is_word = name == kSocketCaller || name == "none" || name == "any";
    if (is_word || !CheckClientName(name).ok()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", text, "' is neither socket, none nor any, nor names of operators with commas between them: '", name,
          "' is no such name"));
    }
    policy.names_.emplace(name);
  }
  return policy;
}

absl::Status ModelPolicy::Check(absl::string_view caller) const {
  absl::string_view name = caller;
  const bool is_named = absl::ConsumePrefix(&name, "operator ") && names_.count(name) > 0;
  const bool by_socket = caller == kSocketCaller && kind_ != Kind::kNone;
  if (kind_ == Kind::kAny || by_socket || (kind_ == Kind::kNames && is_named)) return absl::OkStatus();
  const std::string start = absl::StrCat("start the coordinator with --allow-models ", name == caller ? "any" : name);
  return absl::PermissionDeniedError(
      absl::StrCat("this coordinator takes no TorchScript models from '", caller, "', because such a model is code: ",
                   kind_ == Kind::kNone ? "" : "create the run over its own Unix socket, or ", start));
}

}  // namespace terse
