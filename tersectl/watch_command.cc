#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "core/status.h"
#include "proto/proto_text.h"
#include "tersectl/commands.h"
#include "tersectl/print.h"
#include "tersectl/restarts.h"
#include "tersectl/watch.h"
#include "tersectl/watch_view.h"

namespace terse {
namespace {

// Settled rounds that are shown at the start.
constexpr uint64_t kRoundsBack = 10;

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
  RoundPrinter(const v1::Status& status, const WatchOptions& options, const Terminal& terminal)
      : status_(status), lines_(status), options_(options), terminal_(terminal) {}

  void Add(const v1::Round& round, bool print) {
    // After a reconnection the coordinator may repeat a round.
    if (!IsSettled(round) || round.id() < next_) return;
    next_ = round.id() + 1;
    lines_.Add(round);
    if (!print) return;
    if (options_.json) {
      PrintJsonLine(ToJson(round), terminal_);
      return;
    }
    if (!header_printed_) *terminal_.out << lines_.Header();
    header_printed_ = true;
    *terminal_.out << lines_.Line(round) << std::flush;
  }

  // Id of the first round that was not added.
  uint64_t next() const { return next_; }
  std::string ended_text() const { return EndedText(status_, lines_); }

 private:
  const v1::Status status_;
  WatchLines lines_;
  const WatchOptions& options_;
  const Terminal& terminal_;
  uint64_t next_ = 0;
  bool header_printed_ = false;
};

// Adds the rounds that there are to `printer`, but the newest settled one.
void AddRounds(const std::vector<v1::Round>& rounds, uint64_t first, RoundPrinter* printer) {
  const uint64_t newest = NewestSettled(rounds);
  const uint64_t from = first > 0 ? first : newest - std::min(newest, kRoundsBack);
  for (const v1::Round& round : rounds) {
    if (round.id() < newest) printer->Add(round, round.id() >= from);
  }
}

absl::Status PrintLines(AdminClient& client, const WatchOptions& options, const Terminal& terminal) {
  std::optional<RoundPrinter> printer;  // once the run is known
  const auto follow = [&](absl::FunctionRef<void()> heard) -> absl::Status {
    if (!printer.has_value()) {
      TERSE_ASSIGN_OR_RETURN(const v1::Status status, client.GetStatus());
      TERSE_ASSIGN_OR_RETURN(const std::vector<v1::Round> rounds, client.ListRounds(0, 0));
      heard();
      AddRounds(rounds, options.first, &printer.emplace(status, options, terminal));
    }
    return client.Watch(printer->next(), [&](const v1::Round& round) {
      heard();
      printer->Add(round, true);
    });
  };
  TERSE_RETURN_IF_ERROR(OutlastRestarts(client, options, RemarksOf(terminal), follow));
  if (!options.json) *terminal.out << printer->ended_text();
  return absl::OkStatus();
}

}  // namespace

absl::Status WatchRun(AdminClient& client, const WatchOptions& options, const Terminal& terminal) {
  const bool has_lines = options.lines || options.json || options.first > 0;
  return terminal.full_screen && !has_lines ? WatchOnScreen(client, options, terminal)
                                            : PrintLines(client, options, terminal);
}

}  // namespace terse
