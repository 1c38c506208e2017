#include "coordinator/sessions.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "coordinator/catch_up.h"
#include "coordinator/set_aside.h"
#include "coordinator/staleness.h"
#include "coordinator/update_policy.h"
#include "core/allow_list.h"
#include "core/epochs.h"
#include "core/fault.h"
#include "core/status.h"
#include "storage/event_kinds.h"

namespace terse {
namespace {

// Why a check-in cannot be accepted; empty when it can.
std::string Objection(const RunConfig& config, const CheckIn& message) {
  if (message.protocol_version != kProtocolVersion) {
    return absl::StrCat("protocol version ", message.protocol_version,
                        " is unknown here; this coordinator speaks version ", kProtocolVersion,
                        ": install the same release of Terse on both sides");
  }
  if (const absl::Status name = CheckClientName(message.name); !name.ok()) return std::string(name.message());
  if (!message.run.empty() && message.run != config.name) {
    return absl::StrCat("this is run '", config.name, "', not the one that the client was told to join; check --run");
  }
  if (!IsAllowed(config.clients.allow, message.name)) {
    return absl::StrCat("client '", message.name, "' is not among those that run '", config.name,
                        "' admits (clients.allow)");
  }
  return "";
}

// Whether both are connections of one process of one client, which knows itself which of them is the newer.
bool SameProcess(const Session& holder, const CheckIn& message) {
  return !message.process.IsZero() && holder.process == message.process;
}

// Whether the session that has the name keeps it against the check-in of `session`: against late words of a
// connection that its client has given up, and against another client under this name that would `lose` the residual.
// The rightful client comes back when the holder is gone.
bool KeepsName(const Session& holder, const Session& session, const CheckIn& message, bool lose) {
  if (SameProcess(holder, message)) return holder.connection > message.connection;
  return lose || holder.id() > session.id();
}

void TakeName(EngineState& run, Session& holder, const CheckIn& message) {
  const bool same = SameProcess(holder, message);
  Refuse(run, holder,
         absl::StrCat("a newer connection took the name '", holder.name, "'",
                      same ? "" : "; give every client a name of its own"),
         /*retry=*/same);
  run.book().AddWire(holder.client(), holder.link->Wire(), &holder.booked);
  run.fleet.Evict(holder);
}

// Step 1: the server settles the pending update first; unless both ends agree about the past it answers RESET.
absl::StatusOr<absl::optional<Verdict>> VerdictAtCheckIn(EngineState& run, const ClientRecord& record,
                                                         const CheckIn& message) {
  const bool ours = message.lineage == run.lineage;
  const Id128 prev_applied = ours ? message.prev_applied : Id128{};
  const Id128 pending = ours ? message.pending_update_id : Id128{};
  if (pending.IsZero() && prev_applied == record.last_applied) return absl::optional<Verdict>();
  TERSE_ASSIGN_OR_RETURN(Verdict verdict,
                         VerdictOn(run, record.id, record.last_applied, pending, message.pending_round, prev_applied));
  return absl::make_optional(std::move(verdict));
}

// Whether the client holds this run's model of `version`, as far as it matters. Steps from another model lead to
// another hash, so the head's is enough to look at. A model of a run with epochs says nothing of the snapshot that its
// client holds beside it.
absl::StatusOr<bool> HoldsOurs(EngineState& run, int64_t version, Id128 hash) {
  if (version == run.model.head().version) return hash == run.model.head().model_hash;
  if (!HasEpochs(*run.config) || version < SnapshotBefore(*run.config, run.model.head().version)) return true;
  if (version > 0) {
    const absl::StatusOr<std::vector<LogMessage>> log = run.store()->ReadLog(version - 1, version);
    if (log.ok()) return hash == log->front().model_hash;
    if (!absl::IsOutOfRange(log.status())) return log.status();
  }
  TERSE_ASSIGN_OR_RETURN(const RunStore::CheckpointFile file, run.store()->NewestCheckpointFile());
  return version == file.version && hash == file.model_hash;
}

// An honest client's model drifts once, and it then loads a checkpoint.
constexpr int kMostDrifts = 3;

// Notes that a model that the coordinator holds for known is not what the client has. A session of which that is true
// again and again is refused: each time costs a look at the store and a checkpoint.
absl::Status NoteDrift(EngineState& run, Session& session, const std::string& where) {
  TERSE_RETURN_IF_ERROR(run.NoteMisbehaviour(event::kModelDrift, session.client(), where));
  if (++session.drifts >= kMostDrifts) {
    Refuse(run, session,
           absl::StrCat("this session said ", session.drifts,
                        " times that it holds a model which is not the run's; if that goes on, install the same "
                        "release of Terse on both sides and start the client with --reset-state"),
           /*retry=*/true);
  }
  return RecordFailure(run, session.client(), absl::StrCat("its model drifted ", where));
}

// Where samples weigh, in averages, selection or full gradients, a client must have some.
bool LacksSamples(const RunConfig& config, int64_t samples) {
  return samples < 1 && (config.rounds.weighting == Weighting::kSamples ||
                         config.rounds.selection == Selection::kSamples || HasEpochs(config));
}

absl::Status KeepSamples(EngineState& run, Session& session, int64_t samples) {
  if (samples < 1 || samples == session.samples) return absl::OkStatus();
  run.fleet.SetSamples(session, samples);
  return run.store()->SetSamples(session.client(), samples);
}

// Whether nothing that the client did for this run can be lost yet.
bool IsNewHere(const ClientRecord& record) {
  return record.last_applied.IsZero() && record.updates_applied == 0 && record.updates_not_applied == 0 &&
         record.resets == 0;
}

// Whether the client comes from another coordinator of the same root: it takes its residual along.
bool IsOfFamily(const EngineState& run, const CheckIn& message) {
  return !message.lineage.IsZero() && message.lineage != run.lineage && message.family == run.family;
}

// Whether such a client keeps something for this lineage, which it was part of before: it should say that instead.
bool ShouldComeBack(const EngineState& run, const ClientRecord& record, const CheckIn& message) {
  return IsOfFamily(run, message) && !IsNewHere(record);
}

void SendBack(EngineState& run, Session& session) {
  run.fleet.Refuse(session);
  run.journal.Say(session.link, Refusal{absl::StrCat("run '", run.config->name,
                                                     "' knows the client from before; it should check in again with "
                                                     "what it keeps for this coordinator"),
                                        /*retry=*/true, run.lineage});
}

// Why work of the client for this run is lost since it spoke last, for people; empty when none is.
std::string LostResidual(const EngineState& run, const ClientRecord& record, const CheckIn& message,
                         const absl::optional<Verdict>& verdict) {
  if (!message.lineage.IsZero() && message.lineage != run.lineage && !IsOfFamily(run, message)) {
    // A client leaves the rest of its work behind when it moves on from a run that has ended.
    return IsNewHere(record) ? "" : "what the client holds belongs to another run and is dropped";
  }
  if (verdict.has_value() && verdict->outcome == Outcome::kReset) return verdict->reason;
  return message.residual_lost ? "the client starts afresh: it was reset, or died under relaxed durability" : "";
}

// Whether the verdict is RESET for an update that was refused: the loss was counted when its round closed.
absl::StatusOr<bool> IsCounted(EngineState& run, int64_t client, const CheckIn& message,
                               const absl::optional<Verdict>& verdict) {
  if (!verdict.has_value() || verdict->outcome != Outcome::kReset) return false;
  TERSE_ASSIGN_OR_RETURN(const absl::optional<RunStore::Fate> fate,
                         run.store()->FateOf(verdict->update_id, client, message.pending_round));
  return fate.has_value() && !fate->refused.empty();
}

// Whether the client's update is in the result that a relay hands up. The client can lose nothing until that is
// settled: the update counts or it does not, whatever became of the client.
bool IsHandedUp(const EngineState& run, int64_t client) { return run.round.closed() && run.round.Has(client); }

// Fills the session from the client's row and this check-in.
void Adopt(EngineState& run, Session& session, const ClientRecord& record, const CheckIn& message) {
  session.process = message.process;
  session.is_relay = message.relay;
  session.connection = message.connection;
  session.last_applied = record.last_applied;
  run.fleet.Adopt(session, record.id, record.name);
  run.fleet.SetSamples(session, record.samples);
  run.fleet.SetReliability(record.id, record.reliability);
  if (record.set_aside_until_us != 0) run.fleet.SetAside(session, run.MonotonicAt(record.set_aside_until_us));
}

// The shards of the client and of those below it; nullopt where its index says it, or data are not cut. A relay shares
// its own among its clients, again from the first one when more come than it has shards.
absl::optional<ShardRange> ShardsFor(const EngineState& run, const Session& session) {
  const absl::optional<int64_t> all = ShardsOf(*run.config);
  if (!all.has_value() || (!run.relay.has_value() && !session.is_relay)) return absl::nullopt;
  const ShardRange ours = run.relay.has_value() ? run.relay->setup.shards : ShardRange{0, *all};
  const int64_t clients = run.relay.has_value() ? run.relay->setup.rounds.clients : run.config->rounds.clients;
  const int64_t each = session.is_relay ? std::max<int64_t>(1, ours.count / clients) : 1;
  const int64_t ranges = ours.count / each;
  return ShardRange{ours.first + session.client() % ranges * each, each};
}

// Whether the client has one of the run's shards, or one is left for it. A client without is not registered, or names
// would fill the store.
absl::StatusOr<bool> HasShard(const EngineState& run, const std::string& name) {
  if (run.relay.has_value()) return true;
  const absl::optional<int64_t> shards = ShardsOf(*run.config);
  if (!shards.has_value()) return true;
  const absl::Status last = run.store()->GetClient(*shards - 1).status();
  if (absl::IsNotFound(last)) return true;
  TERSE_RETURN_IF_ERROR(last);
  const absl::StatusOr<ClientRecord> known = run.store()->ClientNamed(name);
  if (absl::IsNotFound(known.status())) return false;
  TERSE_RETURN_IF_ERROR(known.status());
  return known->id < *shards;
}

}  // namespace

absl::StatusOr<Verdict> VerdictOn(EngineState& run, int64_t client, Id128 last_applied, Id128 update_id, int64_t round,
                                  Id128 prev_applied) {
  if (!update_id.IsZero() && update_id == last_applied) return Verdict{Outcome::kApplied, update_id, last_applied, ""};
  if (prev_applied != last_applied && !Mutated(Mutant::kNoPredecessorCheck)) {
    return Verdict{
        Outcome::kReset, update_id, last_applied,
        "the client's last applied update is not the one in the model: its state directory is older or newer "
        "than this run"};
  }
  const Verdict pending{Outcome::kPending, update_id, last_applied, ""};
  const Verdict not_applied{Outcome::kNotApplied, update_id, last_applied, ""};
  TERSE_ASSIGN_OR_RETURN(const absl::optional<RunStore::Fate> fate, run.store()->FateOf(update_id, client, round));
  if (!fate.has_value()) {
    TERSE_ASSIGN_OR_RETURN(const bool over, IsOver(run, round));
    return over ? not_applied : pending;
  }
  if (!fate->refused.empty() && fate->client == client) {
    return Verdict{Outcome::kReset, update_id, last_applied, absl::StrCat("its update was refused: ", fate->refused)};
  }
  if (fate->state == RoundState::kAborted) return not_applied;
  if (fate->client == client && fate->state == RoundState::kClosed) return pending;
  // A state directory that went on under another name: folding its update forward would count it twice.
  return Verdict{Outcome::kReset, update_id, last_applied,
                 "the client's update counts under another name: its state directory belongs to another client"};
}

void Refuse(EngineState& run, Session& session, const std::string& reason, bool retry) {
  run.fleet.Refuse(session);
  run.journal.Say(session.link, Refusal{reason, retry});
}

absl::Status HandleCheckIn(EngineState& run, Session& session, const CheckIn& message) {
  TERSE_FAILPOINT("coordinator.checkin.received");
  if (const std::string objection = Objection(*run.config, message); !objection.empty()) {
    Refuse(run, session, objection, /*retry=*/false);
    return run.NoteMisbehaviour(event::kClientRefused, -1, objection);
  }
  TERSE_ASSIGN_OR_RETURN(const bool has_shard, HasShard(run, message.name));
  if (!has_shard) {
    const std::string reason = absl::StrCat("run '", run.config->name, "' cuts its data into ", *ShardsOf(*run.config),
                                            " shards and all of them have an owner; raise data.shards in a new run");
    Refuse(run, session, reason, /*retry=*/false);
    return run.NoteMisbehaviour(event::kClientRefused, -1, reason);
  }
  TERSE_ASSIGN_OR_RETURN(const ClientRecord record, run.store()->RegisterClient(message.name, run.Now()));
  if (ShouldComeBack(run, record, message)) {
    SendBack(run, session);
    return absl::OkStatus();
  }
  TERSE_ASSIGN_OR_RETURN(absl::optional<Verdict> verdict, VerdictAtCheckIn(run, record, message));
  const std::string lost = LostResidual(run, record, message, verdict);
  if (!lost.empty() && IsHandedUp(run, record.id)) {
    Refuse(run, session,
           "the newest update of this client is being handed up, and its verdict comes soon; check in again",
           /*retry=*/true);
    return absl::OkStatus();
  }
  if (Session* const holder = run.fleet.Of(record.id)) {
    if (KeepsName(*holder, session, message, /*lose=*/!lost.empty())) {
      Refuse(run, session,
             absl::StrCat("another connection has the name '", message.name,
                          "'; every client needs a name (and a certificate) of its own, and runs once"),
             /*retry=*/true);
      return absl::OkStatus();
    }
    TakeName(run, *holder, message);
  }
  Adopt(run, session, record, message);
  TERSE_RETURN_IF_ERROR(ReadmitDue(run));
  if (verdict.has_value() && verdict->outcome == Outcome::kReset) run.RemoveUpdate(record.id);
  TERSE_ASSIGN_OR_RETURN(const bool counted, IsCounted(run, record.id, message, verdict));
  if (counted) BeginHistoryAnew(run, record.id);
  if (!lost.empty() && !counted) {
    TERSE_RETURN_IF_ERROR(ResetClient(run, record.id));
    TERSE_RETURN_IF_ERROR(run.Note(event::kResidualLost, record.id, lost));
  }
  run.fleet.SetOwed(session, verdict.has_value() && verdict->outcome == Outcome::kPending ? message.pending_round : 0);
  // This process does not know how many updates folded into the next one before it began, so it assumes the most.
  const bool unknown = record.updates_not_applied > 0 && !run.fleet.at(record.id).notes.has_value();
  if (unknown) run.fleet.NotesOf(record.id).folded = kMostFolded;
  const bool owes =
      run.round.open() && session.owes_round() == run.round.number() && run.MayOwe(record.id, run.round.number());
  if (owes && session.set_aside_until_us() == 0) run.fleet.SetInvited(record.id, true);
  TERSE_RETURN_IF_ERROR(run.Note(event::kClientJoined, record.id, session.name));
  TERSE_FAILPOINT("coordinator.checkin.settled");
  Welcome welcome = {run.lineage, run.config, record.id, std::move(verdict), run.model.head().version};
  welcome.start_hash = run.relay.has_value() ? run.relay->setup.start_hash : run.model.start_hash();
  welcome.family = run.family;
  welcome.shards = ShardsFor(run, session);
  if (session.is_relay) welcome.layout = std::make_shared<const Layout>(run.model.layout());
  run.journal.Say(session.link, std::move(welcome));
  return absl::OkStatus();
}

absl::Status HandleReady(EngineState& run, Session& session, const Ready& message) {
  if (message.layout_hash != run.model.layout().Hash()) {
    const absl::string_view remedy = run.config->model.name == kExternalModel
                                         ? "give its trainer the model that the run was made with"
                                         : "install the same release of Terse on both sides";
    Refuse(run, session,
           absl::StrCat("model '", run.config->model.name,
                        "' has other tensors on this client than on the coordinator; ", remedy),
           /*retry=*/false);
    return run.NoteMisbehaviour(event::kClientRefused, session.client(), "model layout differs");
  }
  if (LacksSamples(*run.config, message.samples)) {
    Refuse(run, session, "this run counts training samples and the client has none; give it data, or leave the run",
           /*retry=*/false);
    return run.NoteMisbehaviour(event::kClientRefused, session.client(), "no training samples");
  }
  TERSE_RETURN_IF_ERROR(KeepSamples(run, session, message.samples));
  if (!message.device.empty()) session.device = message.device;
  if (!session.said_ready) TERSE_RETURN_IF_ERROR(HoldHistory(run, session, message.history_hash));
  session.said_ready = true;
  // A client that says Ready is not training: what it was given before, it let pass or has finished.
  run.fleet.SetAssigned(session, 0);
  if (!message.version.has_value()) {
    if (session.version().has_value()) {
      TERSE_RETURN_IF_ERROR(NoteDrift(run, session, absl::StrCat("on the way to version ", *session.version())));
      if (session.refused()) return absl::OkStatus();
    }
    return HasEpochs(*run.config) && SnapshotBefore(*run.config, run.model.head().version) > 0
               ? SendModels(run, session, -1)
               : SendResync(run, session, "the client holds no model of this run");
  }
  const int64_t version = *message.version;
  if (version > run.model.head().version || version < 0) {
    return SendResync(run, session, absl::StrCat("version ", version, " does not exist here"));
  }
  TERSE_ASSIGN_OR_RETURN(const bool ours, HoldsOurs(run, version, message.model_hash));
  if (!ours) {
    TERSE_RETURN_IF_ERROR(NoteDrift(run, session, absl::StrCat("at version ", version)));
    if (session.refused()) return absl::OkStatus();
    return SendResync(run, session, "the model hash differs");
  }
  return CatchUp(run, session, version);
}

void BookWire(EngineState& run) {
  for (const auto& [id, session] : run.fleet.sessions()) {
    if (session->client() >= 0) run.book().AddWire(session->client(), session->link->Wire(), &session->booked);
  }
}

absl::Status CloseSession(EngineState& run, SessionId id) {
  Session* const session = run.fleet.Find(id);
  if (session == nullptr) return absl::OkStatus();
  const int64_t client = session->client();
  const std::string name = session->name;
  if (client >= 0) run.book().AddWire(client, session->link->Wire(), &session->booked);
  run.fleet.Disconnect(*session, run.MonotonicNow());
  if (run.histories.cache != nullptr && client >= 0) run.histories.cache->Drop(client);
  return client < 0 ? absl::OkStatus() : run.Note(event::kClientLeft, client, name);
}

}  // namespace terse
