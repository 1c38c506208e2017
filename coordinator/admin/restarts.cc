#include "coordinator/admin/restarts.h"

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace terse {
namespace {

// Whether calling again may help: the coordinator restarts, or ends calls whose certificate ends and is renewed.
bool MayComeBack(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsCancelled(status) || absl::IsUnauthenticated(status);
}

}  // namespace

absl::Status OutlastRestarts(AdminClient& client, const CommandOptions& options, const Terminal& terminal,
                             absl::FunctionRef<absl::Status(absl::FunctionRef<void()> heard)> call) {
  absl::Time last_heard = absl::Now();
  bool is_away = false;
  const auto heard = [&] {
    is_away = false;
    last_heard = absl::Now();
  };
  while (true) {
    const absl::Time called = absl::Now();
    const absl::Status ended = call(heard);
    if (!MayComeBack(ended)) return ended;
    // A call that was open for a while had reached the coordinator.
    if (absl::Now() - called > absl::Seconds(5)) last_heard = absl::Now();
    if (absl::Now() - last_heard >= absl::Seconds(options.patience_seconds)) return ended;
    if (!is_away) *terminal.err << "tersectl: the coordinator went away; calling again\n" << std::flush;
    is_away = true;
    absl::SleepFor(absl::Milliseconds(500));
    // With a certificate that is not renewed yet, the old connection says no again.
    client.Reconnect().IgnoreError();
  }
}

}  // namespace terse
