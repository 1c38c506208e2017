// `tersectl events`, with --follow until the run ends.
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "core/log/plain_text.h"
#include "core/status.h"
#include "proto/proto_text.h"
#include "tersectl/commands.h"
#include "tersectl/lists.h"
#include "tersectl/print.h"
#include "tersectl/restarts.h"
#include "tersectl/text_table.h"

namespace terse {
namespace {

constexpr absl::Duration kInterval = absl::Milliseconds(500);
constexpr uint32_t kEventsPerCall = 1000;
// Wide enough for the kinds that there are; a follower does not know the widest cell to come.
constexpr char kRow[] = "%-25s  %-18s  %8s  %-16s  %s\n";

std::string RoundText(const v1::Event& event) { return event.round() == 0 ? "-" : absl::StrCat(event.round()); }

// Prints events once each, as they come.
class EventPrinter {
 public:
  EventPrinter(const EventsOptions& options, const Terminal& terminal) : options_(options), terminal_(terminal) {
    if (!options.json) *terminal_.out << absl::StrFormat(kRow, "time", "kind", "round", "client", "detail");
  }
  // INVALID_ARGUMENT as List::Choose.
  absl::Status Add(const v1::EventsReply& reply) {
    if (reply.events().empty()) return absl::OkStatus();
    last_ = reply.events().rbegin()->id();
    TERSE_ASSIGN_OR_RETURN(const std::vector<v1::Event> events,
                           list_.Choose(options_.list, {reply.events().begin(), reply.events().end()}));
    for (const v1::Event& event : events) {
      if (options_.json) {
        PrintJsonLine(ToJson(event), terminal_);
      } else {
        *terminal_.out << absl::StrFormat(kRow, TimeText(event.time_us()), PlainText(event.kind()), RoundText(event),
                                          PlainText(ClientText(event.client(), event.client_name())),
                                          PlainText(event.detail()));
      }
    }
    *terminal_.out << std::flush;
    return absl::OkStatus();
  }
  // Id of the newest event that was printed.
  uint64_t last() const { return last_; }

 private:
  const EventsOptions& options_;
  const Terminal& terminal_;
  const List<v1::Event> list_ = EventList();
  uint64_t last_ = 0;
};

// Prints what comes until the run has ended or a call fails.
absl::Status PrintNewEvents(AdminClient& client, EventPrinter* printer, absl::FunctionRef<void()> heard) {
  while (true) {
    const absl::StatusOr<v1::EventsReply> reply = client.ListEventsAfter(printer->last(), kEventsPerCall);
    const bool is_suspended = !reply.ok() && IsSuspended(client, reply.status());
    if (!reply.ok() && !is_suspended) return reply.status();
    heard();
    if (reply.ok()) TERSE_RETURN_IF_ERROR(printer->Add(*reply));
    const bool is_all = is_suspended || reply->events_size() < static_cast<int>(kEventsPerCall);
    if (reply.ok() && is_all && HasEnded(reply->state())) return absl::OkStatus();
    if (is_all) absl::SleepFor(kInterval);
  }
}

absl::Status FollowEvents(AdminClient& client, const EventsOptions& options, const Terminal& terminal) {
  std::optional<EventPrinter> printer;  // once the newest events are there
  return OutlastRestarts(client, options, RemarksOf(terminal), [&](absl::FunctionRef<void()> heard) -> absl::Status {
    if (!printer.has_value()) {
      TERSE_ASSIGN_OR_RETURN(const v1::EventsReply newest, client.ListEvents(options.newest));
      heard();
      TERSE_RETURN_IF_ERROR(printer.emplace(options, terminal).Add(newest));
      if (HasEnded(newest.state())) return absl::OkStatus();
    }
    return PrintNewEvents(client, &*printer, heard);
  });
}

}  // namespace

absl::Status ShowEvents(AdminClient& client, const EventsOptions& options, const Terminal& terminal) {
  if (options.follow) return FollowEvents(client, options, terminal);
  TERSE_ASSIGN_OR_RETURN(const v1::EventsReply reply, client.ListEvents(options.newest));
  const std::vector<v1::Event> events(reply.events().begin(), reply.events().end());
  return ShowList(EventList(), options.list, options.json, events, terminal,
                  [&](const std::vector<v1::Event>& chosen) { PrintJsonList(chosen, terminal); });
}

}  // namespace terse
