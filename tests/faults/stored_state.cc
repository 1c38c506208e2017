#include "tests/faults/stored_state.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compression/downstream.h"
#include "compression/run_codecs.h"
#include "core/status.h"
#include "storage/client_state.h"
#include "storage/run_store.h"
#include "tests/testing/grid_trainer.h"
#include "tests/testing/histories.h"

namespace terse {
namespace {

// The kinds of events that a coordinator notes when it was sent something wrong, or found something wrong.
constexpr absl::string_view kTroubleKinds[] = {"update_rejected",    "update_conflict", "message_refused",
                                               "client_refused",     "model_drift",     "evaluation_failed",
                                               "checkpoint_damaged", "update_misread"};
constexpr int64_t kNewestEvents = 5000;

// The updates of one client in the log, in order, with their versions.
struct Applied {
  std::vector<std::string> messages;
  std::vector<int64_t> versions;
};

// Hands out the updates of one log entry: one for each client that the round chose, in order of their ids. No two
// clients send the same bytes, so an update that is followed by itself is there twice.
absl::Status HandOut(absl::Span<const absl::string_view> updates, int64_t version, absl::Span<const int64_t> chosen,
                     std::map<int64_t, Applied>* applied) {
  size_t next = 0;
  for (const int64_t client : chosen) {
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
absl::Status ReadApplied(RunStore* store, std::map<int64_t, Applied>* applied) {
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
    TERSE_RETURN_IF_ERROR(HandOut(updates, entry.version, chosen, applied));
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

// Returns how many updates it takes to explain that so many elements' sums are wrong.
int64_t UpdatesBehind(const Codec& codec, int64_t wrong_elements, const Applied& applied) {
  std::vector<float> one(codec.layout().size());
  if (applied.messages.empty() || !codec.AddDecoded(applied.messages.back(), 1, absl::MakeSpan(one)).ok()) return 1;
  const int64_t size = std::max<int64_t>(1, one.size() - std::count(one.begin(), one.end(), 0.0f));
  return (wrong_elements + size - 1) / size;
}

class Checker {
 public:
  // Everything must outlive it.
  Checker(RunStore* store, const RunConfig& config, const DownstreamCodecs& codecs, Findings* findings)
      : store_(store), config_(config), codecs_(codecs), codec_(codecs.updates), findings_(findings) {}

  void CheckRun(const std::vector<float>& initial) {
    Expect(ReadApplied(store_, &applied_), "the log");
    Expect(CheckReplay(store_, config_, codecs_, initial), "replaying the log");
    Expect(CheckServerSteps(store_, config_, codecs_, initial), "repeating the server's steps");
    Expect(CheckPlans(store_, config_), "repeating the controller's plans");
    Expect(CheckCheckpoint(store_), "the newest checkpoint");
    const absl::StatusOr<std::vector<EventRecord>> events = store_->Events(kNewestEvents);
    if (!Expect(events.status(), "the events")) return;
    for (const EventRecord& event : *events) {
      const bool trouble = std::count(std::begin(kTroubleKinds), std::end(kTroubleKinds), event.kind) > 0;
      if (trouble) Violation(absl::StrCat("event ", event.kind, ": ", event.detail));
    }
    if (const auto head = store_->GetHead(); Expect(head.status(), "the head")) findings_->rounds = head->version;
  }

  // Finds updates that are in the log twice; called before CheckBooks of any client, because such an update leaves no
  // client's books readable.
  void FindDoubled(const ClientRecord& record, const StoredClient& client) {
    const Applied& applied = applied_[record.id];
    std::set<absl::string_view> seen;
    std::vector<absl::string_view>& doubled = doubled_[record.id];
    for (size_t i = 0; i < applied.messages.size(); ++i) {
      const bool counts = applied.versions[i] > client.baseline.version;
      if (counts && !seen.insert(applied.messages[i]).second) doubled.push_back(applied.messages[i]);
    }
    if (doubled.empty()) return;
    findings_->doubled += doubled.size();
    Violation(absl::StrCat(client.name, ": ", doubled.size(), " updates are in the log twice"));
  }

  void CheckBooks(const ClientRecord& record, StoredClient* client) {
    const bool comparable = CheckResets(record, client);
    const int64_t logged = applied_[record.id].messages.size();
    if (record.updates_applied != logged) {
      Violation(absl::StrCat(client->name, ": ", record.updates_applied, " updates are booked as applied and ", logged,
                             " are in the log"));
    }
    const absl::StatusOr<std::unique_ptr<ClientState>> state = ClientState::Open(client->state_directory);
    if (!Expect(state.status(), client->name) || !comparable) return;
    const absl::StatusOr<StoredState> stored = (*state)->Read();
    if (!Expect(stored.status(), client->name)) return;
    if (config_.codec.positions == kSharedPositions) {
      Expect(CheckHistories(store_, codec_, record.id, **state), client->name);
    }
    if (config_.codec.feedback == "discard") return CheckSeals(record, *client, *stored);
    absl::StatusOr<std::vector<double>> difference =
        ConservationDifference(store_, codec_, record.id, *stored, client->baseline);
    if (Expect(difference.status(), client->name)) {
      CountLost(record, *client, *std::move(difference));
    } else if (findings_->doubled == 0) {
      ++findings_->lost;
    }
  }

 private:
  // Checks clients that drop what was not applied and send their gradients whole: each applied update must be one that
  // was sealed.
  void CheckSeals(const ClientRecord& record, const StoredClient& client, const StoredState& stored) {
    const auto sealed_as = [&](int64_t step, absl::string_view message) {
      std::vector<float> sent(codec_.layout().size(), 0.0f);
      return codec_.AddDecoded(message, 1, absl::MakeSpan(sent)).ok() &&
             sent == GridDelta(record.id, step, codec_.layout());
    };
    const absl::StatusOr<int64_t> surplus = FirstNotSealed(store_, record.id, stored, client.baseline, sealed_as);
    if (!Expect(surplus.status(), client.name) || *surplus < 0) return;
    ++findings_->doubled;
    Violation(absl::StrCat(client.name, ": applied update ", *surplus, " was not sealed then"));
  }

  bool Expect(const absl::Status& status, absl::string_view where) {
    if (!status.ok()) Violation(absl::StrCat(where, ": ", status.message()));
    return status.ok();
  }

  void Violation(std::string line) { findings_->problems.push_back(std::move(line)); }

  // False when a residual was given up that nobody took away: that counts by itself, and the books no longer begin at
  // 0.
  bool CheckResets(const ClientRecord& record, StoredClient* client) {
    const int64_t surplus = record.resets - client->expected_resets;
    const bool unexpected = surplus > 0 && !client->may_reset;
    if (unexpected) {
      findings_->lost += surplus;
      Violation(absl::StrCat(client->name, ": ", surplus, " residuals were given up"));
    }
    client->expected_resets = record.resets;
    client->may_reset = false;
    return !unexpected;
  }

  // Counts as lost updates the differences that doubled updates do not explain.
  void CountLost(const ClientRecord& record, const StoredClient& client, std::vector<double> difference) {
    for (const absl::string_view message : doubled_[record.id]) {
      std::vector<float> once(difference.size());
      if (!Expect(codec_.AddDecoded(message, 1, absl::MakeSpan(once)), client.name)) return;
      for (size_t i = 0; i < once.size(); ++i) difference[i] -= once[i];
    }
    const int64_t wrong = difference.size() - std::count(difference.begin(), difference.end(), 0.0);
    if (wrong == 0) return;
    const int64_t lost = UpdatesBehind(codec_, wrong, applied_[record.id]);
    findings_->lost += lost;
    Violation(absl::StrCat(client.name, ": ", wrong,
                           " elements of applied updates + residual - sealed deltas are not 0: ", lost,
                           " updates lost"));
  }

  RunStore* const store_;
  const RunConfig& config_;
  const DownstreamCodecs codecs_;
  const Codec& codec_;
  Findings* const findings_;
  std::map<int64_t, Applied> applied_;                         // by client
  std::map<int64_t, std::vector<absl::string_view>> doubled_;  // the same, surplus ones only
};

}  // namespace

Findings CheckStoredState(const std::string& run_directory, const FleetSettings& settings,
                          absl::Span<StoredClient> clients) {
  Findings findings;
  const absl::StatusOr<std::unique_ptr<RunStore>> store = RunStore::Open(run_directory);
  const auto config = settings.config();
  const auto codec = config.ok() ? MakeUpdateCodec(*config, settings.layout()) : config.status();
  const auto coded = config.ok() ? MakeDownstreamCodec(*config, settings.layout()) : config.status();
  const auto records = store.ok() ? (*store)->Clients() : store.status();
  for (const absl::Status& status : {store.status(), codec.status(), coded.status(), records.status()}) {
    if (status.ok()) continue;
    findings.problems.emplace_back(status.message());
    return findings;
  }
  Checker checker(store->get(), *config, DownstreamCodecs(**codec, coded->get()), &findings);
  checker.CheckRun(GridInitialWeights(settings.layout()));
  std::vector<std::pair<const ClientRecord*, StoredClient*>> books;
  for (StoredClient& client : clients) {
    const auto record = std::find_if(records->begin(), records->end(),
                                     [&client](const ClientRecord& one) { return one.name == client.name; });
    // A client that was never welcomed has no books yet.
    if (record != records->end() && std::filesystem::exists(client.state_directory + "/MANIFEST")) {
      books.emplace_back(&*record, &client);
    }
  }
  for (const auto& [record, client] : books) checker.FindDoubled(*record, *client);
  for (const auto& [record, client] : books) checker.CheckBooks(*record, client);
  return findings;
}

}  // namespace terse
