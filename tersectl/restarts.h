// Lets the commands that follow a run outlast a restart of the coordinator.
#ifndef TERSE_TERSECTL_RESTARTS_H_
#define TERSE_TERSECTL_RESTARTS_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/notification.h"
#include "core/log/plain_text.h"
#include "tersectl/commands.h"

namespace terse {

// Makes `call` over and over, on new connections, while it ends because the coordinator is away, restarts, or a
// certificate is renewed. `call` says with `heard` that the coordinator answers. `remark` gets one line when the
// coordinator goes, or is not there at the start. Returns what `call` returned last: anything else, or that once
// nothing was heard for `options.patience_seconds`, or when somebody has notified `stop`, which may be null.
absl::Status OutlastRestarts(AdminClient& client, const FollowOptions& options,
                             absl::FunctionRef<void(absl::string_view line)> remark,
                             absl::FunctionRef<absl::Status(absl::FunctionRef<void()> heard)> call,
                             const absl::Notification* stop = nullptr);

// Where commands that print lines put such a remark.
inline auto RemarksOf(const Terminal& terminal) {
  return [&terminal](absl::string_view line) {
    *terminal.err << "tersectl: " << PlainText(line) << "\n" << std::flush;
  };
}

// Whether a call failed with `status` because the run's disk is in trouble for now: the coordinator opens the run again
// by itself.
bool IsSuspended(AdminClient& client, const absl::Status& status);

// Whether a run of that state (Run.state) has ended.
bool HasEnded(absl::string_view state);

}  // namespace terse

#endif  // TERSE_TERSECTL_RESTARTS_H_
