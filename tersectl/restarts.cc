#include "tersectl/restarts.h"

#include <cmath>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace terse {
namespace {

constexpr absl::Duration kCallInterval = absl::Milliseconds(500);

// Whether calling again may help: the coordinator restarts, or ends calls whose certificate ends and is renewed.
bool MayComeBack(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsCancelled(status) || absl::IsUnauthenticated(status);
}

}  // namespace

absl::Status OutlastRestarts(AdminClient& client, const FollowOptions& options,
                             absl::FunctionRef<void(absl::string_view line)> remark,
                             absl::FunctionRef<absl::Status(absl::FunctionRef<void()> heard)> call,
                             const absl::Notification* stop) {
  absl::Time last_heard = absl::Now();
  bool was_here = false;
  bool is_away = false;
  const auto heard = [&] {
    was_here = true;
    is_away = false;
    last_heard = absl::Now();
  };
  while (true) {
    const absl::Time called = absl::Now();
    const absl::Status ended = call(heard);
    if (stop != nullptr && stop->HasBeenNotified()) return ended;
    // A coordinator that was never here has no certificate of ours to renew.
    if (was_here ? !MayComeBack(ended) : !absl::IsUnavailable(ended)) return ended;
    // A call that was open for a while had reached the coordinator.
    if (was_here && absl::Now() - called > absl::Seconds(5)) last_heard = absl::Now();
    if (absl::Now() - last_heard >= absl::Seconds(options.patience_seconds)) return ended;
    if (!is_away) {
      const std::string patience =
          std::isinf(options.patience_seconds) ? "" : absl::StrCat("up to ", options.patience_seconds, " s ");
      remark(was_here ? "the coordinator went away; calling again"
                      : absl::StrCat(ended.message(), "; waiting ", patience, "for it"));
    }
    is_away = true;
    if (stop == nullptr) {
      absl::SleepFor(kCallInterval);
    } else if (stop->WaitForNotificationWithTimeout(kCallInterval)) {
      return ended;
    }
    // With a certificate that is not renewed yet, the old connection says no again.
    client.Reconnect().IgnoreError();
  }
}

bool IsSuspended(AdminClient& client, const absl::Status& status) {
  if (!absl::IsFailedPrecondition(status)) return false;
  const absl::StatusOr<v1::Status> run = client.GetStatus();
  return run.ok() && (run->serving() || absl::StartsWith(run->phase(), "suspended"));
}

bool HasEnded(absl::string_view state) { return state == "finished" || state == "stopped"; }

}  // namespace terse
