// What the commands that follow a run do when the coordinator goes away.
#ifndef TERSE_COORDINATOR_ADMIN_RESTARTS_H_
#define TERSE_COORDINATOR_ADMIN_RESTARTS_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "coordinator/admin/commands.h"

namespace terse {

// Makes `call` over and over, on new connections, while it ends because the coordinator restarts or a certificate is
// renewed. `call` says with `heard` that the coordinator answers. Returns what `call` returned last: anything else, or
// that once nothing was heard for `options.patience_seconds`.
absl::Status OutlastRestarts(AdminClient& client, const CommandOptions& options, const Terminal& terminal,
                             absl::FunctionRef<absl::Status(absl::FunctionRef<void()> heard)> call);

}  // namespace terse

#endif  // TERSE_COORDINATOR_ADMIN_RESTARTS_H_
