#include <algorithm>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "coordinator/admin/commands.h"
#include "coordinator/admin/proto_text.h"
#include "coordinator/admin/watch.h"
#include "core/status.h"

namespace terse {
namespace {

// Settled rounds that are shown at the start.
constexpr uint64_t kRoundsBack = 10;

bool IsSettled(const v1::Round& round) { return round.state() == "committed" || round.state() == "aborted"; }

// Id of the newest settled round, or 0. Its evaluation may be under way, so the stream has the last word on it.
uint64_t NewestSettled(const std::vector<v1::Round>& rounds) {
  uint64_t newest = 0;
  for (const v1::Round& round : rounds) {
    if (IsSettled(round)) newest = std::max(newest, round.id());
  }
  return newest;
}

// Prints settled rounds once each, in the order of their ids.
class RoundPrinter {
 public:
  RoundPrinter(const v1::Status& status, const CommandOptions& options, const Terminal& terminal)
      : lines_(status), options_(options), terminal_(terminal) {}

  void Add(const v1::Round& round, bool print) {
    // After a reconnection the coordinator may repeat a round.
    if (!IsSettled(round) || round.id() < next_) return;
    next_ = round.id() + 1;
    lines_.Add(round);
    if (!print) return;
    if (options_.json) {
      *terminal_.out << ToJson(round).dump() << std::endl;
      return;
    }
    if (!header_printed_) *terminal_.out << lines_.Header();
    header_printed_ = true;
    *terminal_.out << lines_.Line(round) << std::flush;
  }

  // Id of the first round that was not added.
  uint64_t next() const { return next_; }
  std::string progress() const { return lines_.Progress(); }

 private:
  WatchLines lines_;
  const CommandOptions& options_;
  const Terminal& terminal_;
  uint64_t next_ = 0;
  bool header_printed_ = false;
};

// Whether calling again may help: the coordinator restarts, or ends calls whose certificate ends and is renewed.
bool MayComeBack(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsCancelled(status) || absl::IsUnauthenticated(status);
}

// Follows the stream over restarts of the coordinator and renewals of the certificate.
absl::Status Follow(AdminClient& client, const CommandOptions& options, const Terminal& terminal,
                    RoundPrinter* printer) {
  absl::Time last_heard = absl::Now();
  bool is_away = false;
  while (true) {
    const absl::Time called = absl::Now();
    const absl::Status ended = client.Watch(printer->next(), [&](const v1::Round& round) {
      is_away = false;
      last_heard = absl::Now();
      printer->Add(round, true);
    });
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

}  // namespace

absl::Status WatchRun(AdminClient& client, const CommandOptions& options, const Terminal& terminal) {
  TERSE_ASSIGN_OR_RETURN(const v1::Status status, client.GetStatus());
  TERSE_ASSIGN_OR_RETURN(const std::vector<v1::Round> rounds, client.ListRounds(0, 0));
  RoundPrinter printer(status, options, terminal);
  const uint64_t newest = NewestSettled(rounds);
  const uint64_t from = options.first > 0 ? options.first : newest - std::min(newest, kRoundsBack);
  for (const v1::Round& round : rounds) {
    if (round.id() < newest) printer.Add(round, round.id() >= from);
  }
  TERSE_RETURN_IF_ERROR(Follow(client, options, terminal, &printer));
  if (options.json) return absl::OkStatus();
  *terminal.out << "run " << status.run() << " ended after " << printer.progress() << "\n";
  return absl::OkStatus();
}

}  // namespace terse
