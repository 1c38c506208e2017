#include "tests/faults/run_checker.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "tests/testing/conservation.h"

namespace terse {
namespace {

// The kinds of events that a coordinator notes when it was sent something wrong, or found something wrong.
constexpr absl::string_view kTroubleKinds[] = {"update_rejected",    "update_conflict", "message_refused",
                                               "client_refused",     "model_drift",     "evaluation_failed",
                                               "checkpoint_damaged", "update_misread"};
constexpr int64_t kNewestEvents = 5000;

// Hands out the updates of one log entry: so many for each client that the round chose, in order of their ids. No two
// clients send the same bytes, so an update that is followed by itself is there twice.
absl::Status HandOut(absl::Span<const absl::string_view> updates, int64_t version, absl::Span<const int64_t> chosen,
                     int updates_each, std::map<int64_t, Applied>* applied) {
  size_t next = 0;
  for (size_t i = 0; i < chosen.size() * updates_each; ++i) {
    const int64_t client = chosen[i / updates_each];
    if (next == updates.size()) return absl::InternalError(absl::StrCat("version ", version, " lacks an update"));
    do {
      (*applied)[client].messages.emplace_back(updates[next]);
      (*applied)[client].versions.push_back(version);
      ++next;
    } while (next < updates.size() && updates[next] == updates[next - 1]);
  }
  if (next == updates.size()) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("version ", version, " has an update that nobody sent"));
}

// Reads the log once.
absl::Status ReadApplied(RunStore* store, int updates_each, std::map<int64_t, Applied>* applied) {
  TERSE_ASSIGN_OR_RETURN(const Head head, store->GetHead());
  TERSE_ASSIGN_OR_RETURN(const absl::optional<RoundRecord> last, store->LastRound());
  TERSE_ASSIGN_OR_RETURN(const std::vector<RoundRecord> rounds, store->Rounds(1, last.has_value() ? last->id : 0));
  TERSE_ASSIGN_OR_RETURN(const std::vector<ClientRecord> clients, store->Clients());
  TERSE_ASSIGN_OR_RETURN(const std::vector<LogMessage> log, store->ReadLog(0, head.version));
  size_t version = 0;
  for (const RoundRecord& round : rounds) {
    if (round.state != RoundState::kCommitted) continue;
    if (version >= log.size()) return absl::InternalError(absl::StrCat("round ", round.id, " is not in the log"));
    const LogMessage& entry = log[version++];
    TERSE_ASSIGN_OR_RETURN(const std::string forward, ForwardOf(store, entry));
    TERSE_ASSIGN_OR_RETURN(const std::vector<absl::string_view> updates, UpdatesOfForward(forward));
    std::vector<int64_t> chosen;
    for (const ClientRecord& client : clients) {
      TERSE_ASSIGN_OR_RETURN(const bool is_in, store->WasChosen(round.id, client.id));
      if (is_in) chosen.push_back(client.id);
    }
    TERSE_RETURN_IF_ERROR(HandOut(updates, entry.version, chosen, updates_each, applied));
  }
  if (version == log.size()) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(log.size(), " log messages and ", version, " committed rounds"));
}

absl::Status CheckCheckpoint(RunStore* store) {
  TERSE_ASSIGN_OR_RETURN(const Checkpoint checkpoint, store->ReadNewestCheckpoint());
  if (checkpoint.version == 0) return absl::OkStatus();
  TERSE_ASSIGN_OR_RETURN(const std::vector<LogMessage> log, store->ReadLog(checkpoint.version - 1, checkpoint.version));
  if (HashWeights(checkpoint.weights) == log.front().model_hash) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("checkpoint ", checkpoint.version, " is not the model of that version"));
}

}  // namespace

int64_t UpdatesBehind(const Codec& codec, int64_t wrong_elements, const Applied& applied) {
  std::vector<float> one(codec.layout().size());
  if (applied.messages.empty() || !codec.AddDecoded(applied.messages.back(), 1, absl::MakeSpan(one)).ok()) return 1;
  const int64_t size = std::max<int64_t>(1, one.size() - std::count(one.begin(), one.end(), 0.0f));
  return (wrong_elements + size - 1) / size;
}

void RunChecker::CheckRun(const std::vector<float>& initial) {
  Expect(ReadApplied(store_, updates_each_, &applied_), "the log");
  Expect(CheckReplay(store_, config_, codecs_, initial), "replaying the log");
  Expect(CheckServerSteps(store_, config_, codecs_, initial), "repeating the server's steps");
  Expect(CheckPlans(store_, config_), "repeating the controller's plans");
  Expect(CheckCheckpoint(store_), "the newest checkpoint");
  CheckEvents();
  if (const auto head = store_->GetHead(); Expect(head.status(), "the head")) findings_->rounds = head->version;
}

void RunChecker::CheckEvents() {
  const absl::StatusOr<std::vector<EventRecord>> events = store_->Events(kNewestEvents);
  if (!Expect(events.status(), "the events")) return;
  for (const EventRecord& event : *events) {
    const bool trouble = std::count(std::begin(kTroubleKinds), std::end(kTroubleKinds), event.kind) > 0;
    if (trouble) Violation(absl::StrCat("event ", event.kind, ": ", event.detail));
  }
}

void RunChecker::FindDoubled(const ClientRecord& record, const std::string& name, int64_t after_version) {
  const Applied& applied = applied_[record.id];
  std::set<absl::string_view> seen;
  std::vector<absl::string_view>& doubled = doubled_[record.id];
  for (size_t i = 0; i < applied.messages.size(); ++i) {
    const bool counts = applied.versions[i] > after_version;
    if (counts && !seen.insert(applied.messages[i]).second) doubled.push_back(applied.messages[i]);
  }
  if (doubled.empty()) return;
  findings_->doubled += doubled.size();
  Violation(absl::StrCat(name, ": ", doubled.size(), " updates are in the log twice"));
}

void RunChecker::CheckBooked(const ClientRecord& record, const std::string& name) {
  const int64_t booked = record.updates_applied * updates_each_;
  const int64_t logged = applied_[record.id].messages.size();
  if (booked == logged) return;
  Violation(absl::StrCat(name, ": ", booked, " updates are booked as applied and ", logged, " are in the log"));
}

bool RunChecker::CheckResets(const ClientRecord& record, const std::string& name, int64_t most) {
  const int64_t surplus = record.resets - most;
  if (surplus <= 0) return true;
  findings_->lost += surplus;
  Violation(absl::StrCat(name, ": ", surplus, " residuals were given up"));
  return false;
}

bool RunChecker::Expect(const absl::Status& status, absl::string_view where) {
  if (!status.ok()) Violation(absl::StrCat(where, ": ", status.message()));
  return status.ok();
}

}  // namespace terse
