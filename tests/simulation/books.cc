#include "tests/simulation/books.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "storage/sqlite_db.h"
#include "tests/testing/histories.h"

namespace terse {
namespace {

struct AppliedUpdate {
  int64_t round = 0;
  int64_t client = 0;
  Id128 id;
  Id128 prev_applied;
};

absl::StatusOr<std::unique_ptr<SqliteDb>> OpenReader(FleetSimulation& fleet) {
  return SqliteDb::Open(fleet.store_directory() + "/run.sqlite", SqliteDb::Mode::kReader,
                        fleet.disk(kCoordinator).SqliteVfs());
}

absl::StatusOr<std::vector<AppliedUpdate>> ReadApplied(FleetSimulation& fleet) {
  TERSE_ASSIGN_OR_RETURN(std::unique_ptr<SqliteDb> db, OpenReader(fleet));
  Statement rows = db->Prepare(
      "SELECT u.round, u.client, u.update_id, u.prev_applied FROM updates u JOIN rounds r ON r.id = u.round "
      "WHERE r.state = 'committed' ORDER BY u.round, u.client");
  std::vector<AppliedUpdate> updates;
  while (true) {
    TERSE_ASSIGN_OR_RETURN(const bool row, rows.Step());
    if (!row) return updates;
    updates.push_back({rows.GetInt(0), rows.GetInt(1), rows.GetId(2), rows.GetId(3)});
  }
}

}  // namespace

absl::StatusOr<bool> IsDurablyClosed(FleetSimulation& fleet) {
  return fleet.Quietly([&]() -> absl::StatusOr<bool> {
    TERSE_ASSIGN_OR_RETURN(std::unique_ptr<SqliteDb> db, OpenReader(fleet));
    return db->Prepare("SELECT 1 FROM rounds WHERE state = 'closed'").Step();
  });
}

namespace {

Violation CheckLedger(const std::vector<AppliedUpdate>& updates, const std::vector<ClientRecord>& clients) {
  std::set<Id128> seen;
  std::map<int64_t, Id128> last;
  std::map<int64_t, int64_t> count;
  for (const AppliedUpdate& update : updates) {
    if (!seen.insert(update.id).second) {
      return {Harm::kDoubled, absl::StrCat("I2: update ", update.id.ToHex(), " is in the model twice")};
    }
    if (update.prev_applied != last[update.client]) {
      return {Harm::kOther, absl::StrCat("I2: client ", update.client, "'s update of round ", update.round,
                                         " does not follow the one before")};
    }
    last[update.client] = update.id;
    ++count[update.client];
  }
  for (const ClientRecord& client : clients) {
    if (client.last_applied != last[client.id] || client.updates_applied != count[client.id]) {
      return {Harm::kOther, absl::StrCat("I2: the row of client ", client.id, " does not fit the committed rounds: ",
                                         client.updates_applied, " applied, ", count[client.id], " chosen")};
    }
  }
  return {};
}

// OPEN > CLOSED > COMMITTED or ABORTED, or OPEN > ABORTED; a settled round stays as it is.
bool MayFollow(RoundState before, RoundState now) {
  if (before == RoundState::kCommitted || before == RoundState::kAborted) return now == before;
  return before == RoundState::kOpen || now != RoundState::kOpen;
}

Violation CheckHistory(const std::vector<RoundRecord>& rounds, History* history) {
  size_t found = 0;
  for (const RoundRecord& round : rounds) {
    const auto [known, is_new] = history->emplace(round.id, round.state);
    if (!MayFollow(known->second, round.state)) {
      return {Harm::kOther, absl::StrCat("I2: round ", round.id, " was ", RoundStateName(known->second), " and is ",
                                         RoundStateName(round.state))};
    }
    known->second = round.state;
    ++found;
  }
  if (found < history->size()) return {Harm::kOther, "I2: a round is gone"};
  return {};
}

absl::StatusOr<Violation> CheckStore(FleetSimulation& fleet, History* history) {
  RunStore* store = fleet.store();
  TERSE_ASSIGN_OR_RETURN(const Head head, store->GetHead());
  TERSE_ASSIGN_OR_RETURN(const absl::optional<RoundRecord> last, store->LastRound());
  TERSE_ASSIGN_OR_RETURN(const std::vector<RoundRecord> rounds, store->Rounds(1, last.has_value() ? last->id : 1));
  Violation violation = CheckHistory(rounds, history);
  if (violation.found()) return violation;
  int64_t committed = 0;
  for (const RoundRecord& round : rounds) committed += round.state == RoundState::kCommitted;
  if (committed != head.version) {
    return Violation{Harm::kOther, absl::StrCat("I2: ", committed, " committed rounds and version ", head.version)};
  }
  TERSE_ASSIGN_OR_RETURN(const std::vector<AppliedUpdate> updates, ReadApplied(fleet));
  TERSE_ASSIGN_OR_RETURN(const std::vector<ClientRecord> clients, store->Clients());
  violation = CheckLedger(updates, clients);
  if (violation.found()) return violation;
  const absl::Status replay = CheckReplay(store, fleet.config(), fleet.downstream_codecs(), GridInitialWeights());
  if (!replay.ok()) return Violation{Harm::kOther, absl::StrCat("I3: ", replay.message())};
  const absl::Status repeated =
      CheckServerSteps(store, fleet.config(), fleet.downstream_codecs(), GridInitialWeights());
  if (!repeated.ok()) return Violation{Harm::kOther, absl::StrCat("I3: ", repeated.message())};
  const absl::Status planned = CheckPlans(store, fleet.config());
  if (!planned.ok()) return Violation{Harm::kOther, absl::StrCat("I3: ", planned.message())};
  return Violation{};
}

// Applied + residual - sealed points along the sealed deltas when some of them are there twice, and against them when
// some are missing: deltas of different steps are as good as orthogonal.
Harm HarmOf(const std::vector<double>& difference, int64_t client, const Baseline& from, int64_t generation) {
  double product = 0;
  double size = 0;
  for (int64_t step = from.generation; step < generation; ++step) {
    const std::vector<float> delta = GridDelta(client, step);
    for (size_t i = 0; i < delta.size(); ++i) product += difference[i] * delta[i];
  }
  for (const double value : difference) size += value * value;
  return size == 0 ? Harm::kNone : product > 0 ? Harm::kDoubled : Harm::kLost;
}

absl::StatusOr<absl::optional<ClientRecord>> FindClient(FleetSimulation& fleet, int64_t i) {
  TERSE_ASSIGN_OR_RETURN(const std::vector<ClientRecord> clients, fleet.store()->Clients());
  for (const ClientRecord& client : clients) {
    if (client.name == fleet.client_name(i)) return absl::make_optional(client);
  }
  return absl::optional<ClientRecord>();
}

// Checks a client whose updates drop what was not applied: with DrawEpochs it sends its gradients whole.
absl::StatusOr<Violation> CheckDiscarding(FleetSimulation& fleet, int64_t i, int64_t client, const StoredState& state) {
  const auto sealed_as = [&](int64_t step, absl::string_view message) {
    std::vector<float> sent(fleet.codec().layout().size(), 0.0f);
    return fleet.codec().AddDecoded(message, 1, absl::MakeSpan(sent)).ok() && sent == GridDelta(client, step);
  };
  TERSE_ASSIGN_OR_RETURN(const int64_t surplus,
                         FirstNotSealed(fleet.store(), client, state, fleet.baseline(i), sealed_as));
  if (surplus < 0) return Violation{};
  return Violation{Harm::kDoubled, absl::StrCat("I2: update ", surplus, " of client ", i, " was not sealed then")};
}

// The coordinator read all that came packed, and both ends' histories of a client's updates stayed one unless the past
// explains it.
absl::StatusOr<Violation> CheckPacking(FleetSimulation& fleet, int64_t i, const ClientRecord& record,
                                       bool reset_undone) {
  // Where there are more clients than histories are kept, some are not kept, and a client that misses the notice that
  // its history begins anew is told again.
  const bool one_history = !reset_undone && fleet.history_room() == 0;
  TERSE_ASSIGN_OR_RETURN(const std::vector<EventRecord> events, fleet.store()->Events(1'000'000));
  for (const EventRecord& event : events) {
    if (event.client != record.id) continue;
    if (event.kind == "update_misread") {
      return Violation{Harm::kOther, absl::StrCat("a packed update of client ", i, " was misread")};
    }
    if (event.kind == "history_differs" && one_history) {
      return Violation{Harm::kOther, absl::StrCat("client ", i, " and the coordinator lost each other's history")};
    }
  }
  if (!one_history) return Violation{};
  const absl::Status same = CheckHistories(fleet.store(), fleet.codec(), record.id, *fleet.state(i));
  return same.ok() ? Violation{} : Violation{Harm::kOther, std::string(same.message())};
}

// Updates of the client that [policy] refused, each with a reset.
absl::StatusOr<int64_t> CountRefused(FleetSimulation& fleet, int64_t client) {
  TERSE_ASSIGN_OR_RETURN(const std::vector<EventRecord> events, fleet.store()->Events(1'000'000));
  return std::count_if(events.begin(), events.end(), [client](const EventRecord& event) {
    return event.client == client && event.kind == "update_rejected" && absl::StrContains(event.detail, "policy.");
  });
}

absl::StatusOr<Violation> CheckBooks(FleetSimulation& fleet, int64_t i, PastOf past) {
  TERSE_ASSIGN_OR_RETURN(const absl::optional<ClientRecord> record, FindClient(fleet, i));
  if (!record.has_value()) return Violation{};
  TERSE_ASSIGN_OR_RETURN(const int64_t refused, CountRefused(fleet, record->id));
  if (record->resets < refused || (record->resets > refused && !past.may_reset)) {
    return Violation{Harm::kLost, absl::StrCat("I1: client ", i, " lost its residual without cause")};
  }
  TERSE_ASSIGN_OR_RETURN(const StoredState state, fleet.state(i)->Read());
  if (fleet.config().codec.feedback == "discard") return CheckDiscarding(fleet, i, record->id, state);
  if (fleet.histories() != nullptr) {
    TERSE_ASSIGN_OR_RETURN(const Violation history, CheckPacking(fleet, i, *record, past.reset_undone));
    if (history.found()) return history;
  }
  const Baseline& baseline = fleet.baseline(i);
  TERSE_ASSIGN_OR_RETURN(const std::vector<double> difference,
                         ConservationDifference(fleet.store(), fleet.codec(), record->id, state, baseline));
  const Harm harm = HarmOf(difference, record->id, baseline, state.generation);
  if (harm == Harm::kNone) return Violation{};
  return Violation{harm, absl::StrCat("I1: of client ", i, "'s sealed work ",
                                      harm == Harm::kLost ? "something is lost" : "something counts twice")};
}

Violation OrFailure(absl::StatusOr<Violation> violation, absl::string_view what) {
  if (violation.ok()) return *std::move(violation);
  return {Harm::kOther, absl::StrCat(what, ": ", violation.status().ToString())};
}

}  // namespace

Violation CheckCoordinator(FleetSimulation& fleet, History* history) {
  return fleet.Quietly([&] { return OrFailure(CheckStore(fleet, history), "I2 and I3"); });
}

Violation CheckClient(FleetSimulation& fleet, int64_t i, PastOf past) {
  return fleet.Quietly([&] { return OrFailure(CheckBooks(fleet, i, past), absl::StrCat("I1 of client ", i)); });
}

}  // namespace terse
