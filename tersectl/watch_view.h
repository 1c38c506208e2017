// `tersectl watch` on a terminal: the whole screen, for as long as the run goes on.
#ifndef TERSE_TERSECTL_WATCH_VIEW_H_
#define TERSE_TERSECTL_WATCH_VIEW_H_

#include "absl/status/status.h"
#include "tersectl/commands.h"

namespace terse {

// Returns when the run has ended, after a line about it, when the user has enough, or with the error that ended it; the
// terminal is then as it was. CANCELLED when a signal that would have ended the process is ignored.
absl::Status WatchOnScreen(AdminClient& client, const WatchOptions& options, const Terminal& terminal);

}  // namespace terse

#endif  // TERSE_TERSECTL_WATCH_VIEW_H_
