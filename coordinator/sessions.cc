#include "coordinator/sessions.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "coordinator/absence.h"
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

// The other connection that has the name; sessions.end() when there is none.
absl::btree_map<SessionId, Session>::iterator HolderOf(RunContext& run, SessionId id, const std::string& name) {
  return std::find_if(run.sessions.begin(), run.sessions.end(),
                      [&](const auto& entry) { return entry.first != id && entry.second.name == name; });
}

// Whether both are connections of one process of one client, which knows itself which of them is the newer.
bool SameProcess(const Session& holder, const CheckIn& message) {
  return !message.process.IsZero() && holder.process == message.process;
}

// Whether the session that has the name keeps it against the check-in of session `id`: against late words of a
// connection that its client has given up, and against another client under this name that would `lose` the residual.
// The rightful client comes back when the holder is gone.
bool KeepsName(SessionId holder_id, const Session& holder, SessionId id, const CheckIn& message, bool lose) {
  if (SameProcess(holder, message)) return holder.connection > message.connection;
  return lose || holder_id > id;
}

void TakeName(RunContext& run, Session& holder, const CheckIn& message) {
  const bool same = SameProcess(holder, message);
  Refuse(holder,
         absl::StrCat("a newer connection took the name '", holder.name, "'",
                      same ? "" : "; give every client a name of its own"),
         /*retry=*/same);
  run.book.AddWire(holder.client, holder.link->Wire(), &holder.booked);
  holder.client = -1;
  holder.name.clear();
  holder.version = absl::nullopt;
  holder.set_aside_until_us = 0;  // readmitting is for who has the name: this session would be due for ever
}

// Step 1: the server settles the pending update first; unless both ends agree about the past it answers RESET.
absl::StatusOr<absl::optional<Verdict>> SettleAtCheckIn(RunContext& run, const ClientRecord& record,
                                                        const CheckIn& message) {
  const bool ours = message.lineage == run.lineage;
  const Id128 prev_applied = ours ? message.prev_applied : Id128{};
  const Id128 pending = ours ? message.pending_update_id : Id128{};
  if (pending.IsZero() && prev_applied == record.last_applied) return absl::optional<Verdict>();
  TERSE_ASSIGN_OR_RETURN(Verdict verdict,
                         Settle(run, record.id, record.last_applied, pending, message.pending_round, prev_applied));
  return absl::make_optional(std::move(verdict));
}

// The log of the versions after `after` up to `up_to`, or its first part: what waits for one client is bounded, and
// more of it follows when that has left (BringUp).
absl::Status SendLog(RunContext& run, Session& session, int64_t after, int64_t up_to) {
  TERSE_ASSIGN_OR_RETURN(std::vector<LogMessage> log, run.store->ReadLogPart(after, up_to, run.catch_up_bytes));
  session.version = log.empty() ? up_to : log.back().version;
  for (LogMessage& entry : log) {
    run.book.AddDown(session.client, entry.downstream.size(), 0);
    session.link->Send(
        Delta{entry.version, entry.model_hash, std::make_shared<const std::string>(std::move(entry.downstream))});
  }
  session.draining = session.version < up_to;
  if (session.draining) session.link->TellWhenDrained();
  return absl::OkStatus();
}

absl::Status SendResync(RunContext& run, Session& session, const std::string& reason) {
  TERSE_ASSIGN_OR_RETURN(const RunStore::CheckpointFile file, run.store->NewestCheckpointFile());
  session.version = absl::nullopt;
  run.book.AddDown(session.client, file.bytes, 0);
  session.link->Send(Resync{file.version, reason});
  return absl::OkStatus();
}

// How a client gets from its version to the head.
enum class Way { kLog, kCheckpoint, kNewerCheckpoint };

// The log where it leads from `version` to the head and is cheaper than the newest checkpoint and the log after that.
// Where either leaves more of the log than may be sent, a checkpoint of the head is to be written first.
absl::StatusOr<Way> WayFrom(RunContext& run, int64_t version) {
  const absl::StatusOr<int64_t> log_bytes = run.store->LogBytes(version);
  const bool has_log = !absl::IsOutOfRange(log_bytes.status());
  if (has_log && !log_bytes.ok()) return log_bytes.status();
  const bool may_send = has_log && *log_bytes <= run.most_log_bytes;
  TERSE_ASSIGN_OR_RETURN(const RunStore::CheckpointFile file, run.store->NewestCheckpointFile());
  // A client that already holds the checkpoint's version or a newer one gains nothing from downloading it.
  if (has_log && version >= file.version) return may_send ? Way::kLog : Way::kNewerCheckpoint;
  const absl::StatusOr<int64_t> log_after_file = run.store->LogBytes(file.version);
  if (absl::IsOutOfRange(log_after_file.status())) return Way::kCheckpoint;  // a newer one replaced it just now
  if (!log_after_file.ok()) return log_after_file.status();
  if (may_send && *log_bytes <= file.bytes + *log_after_file) return Way::kLog;
  return *log_after_file <= run.most_log_bytes ? Way::kCheckpoint : Way::kNewerCheckpoint;
}

// In a run with epochs: the epoch's snapshot and the head, each where the client needs it; a `version` of -1 is none.
absl::Status SendModels(RunContext& run, Session& session, int64_t version) {
  const int64_t snapshot = SnapshotBefore(*run.config, run.head.version);
  if (version < snapshot) {
    const absl::Status sent = SendLog(run, session, snapshot - 1, snapshot);
    // Then the newest checkpoint is this snapshot.
    if (absl::IsOutOfRange(sent)) return SendResync(run, session, "the log begins with the epoch's snapshot");
    TERSE_RETURN_IF_ERROR(sent);
  }
  if (std::max(version, snapshot) < run.head.version) {
    TERSE_RETURN_IF_ERROR(SendLog(run, session, run.head.version - 1, run.head.version));
  }
  session.version = run.head.version;
  return absl::OkStatus();
}

absl::Status CatchUp(RunContext& run, Session& session, int64_t version) {
  session.awaits_checkpoint = false;
  if (HasEpochs(*run.config)) return SendModels(run, session, version);
  TERSE_ASSIGN_OR_RETURN(const Way way, WayFrom(run, version));
  if (way == Way::kNewerCheckpoint) {
    session.version = version;
    session.awaits_checkpoint = true;
    run.BeginCheckpoint();
    return absl::OkStatus();
  }
  if (way == Way::kLog) {
    const absl::Status sent = SendLog(run, session, version, run.head.version);
    // A checkpoint that was just written may have cut the log off in between.
    if (!absl::IsOutOfRange(sent)) return sent;
  }
  return SendResync(run, session, absl::StrCat("version ", version, " is too old"));
}

// Whether the client holds this run's model of `version`, as far as it matters. Steps from another model lead to
// another hash, so the head's is enough to look at. A model of a run with epochs says nothing of the snapshot that its
// client holds beside it.
absl::StatusOr<bool> HoldsOurs(RunContext& run, int64_t version, Id128 hash) {
  if (version == run.head.version) return hash == run.head.model_hash;
  if (!HasEpochs(*run.config) || version < SnapshotBefore(*run.config, run.head.version)) return true;
  if (version > 0) {
    const absl::StatusOr<std::vector<LogMessage>> log = run.store->ReadLog(version - 1, version);
    if (log.ok()) return hash == log->front().model_hash;
    if (!absl::IsOutOfRange(log.status())) return log.status();
  }
  TERSE_ASSIGN_OR_RETURN(const RunStore::CheckpointFile file, run.store->NewestCheckpointFile());
  return version == file.version && hash == file.model_hash;
}

// An honest client's model drifts once, and it then loads a checkpoint.
constexpr int kMostDrifts = 3;

// Notes that a model that the coordinator holds for known is not what the client has. A session of which that is true
// again and again is refused: each time costs a look at the store and a checkpoint.
absl::Status NoteDrift(RunContext& run, Session& session, const std::string& where) {
  TERSE_RETURN_IF_ERROR(run.NoteMisbehaviour(event::kModelDrift, session.client, where));
  if (++session.drifts >= kMostDrifts) {
    Refuse(session,
           absl::StrCat("this session said ", session.drifts,
                        " times that it holds a model which is not the run's; if that goes on, install the same "
                        "release of Terse on both sides and start the client with --reset-state"),
           /*retry=*/true);
  }
  return RecordFailure(run, session.client, absl::StrCat("its model drifted ", where));
}

// Where samples weigh, in averages, selection or full gradients, a client must have some.
bool LacksSamples(const RunConfig& config, int64_t samples) {
  return samples < 1 && (config.rounds.weighting == Weighting::kSamples ||
                         config.rounds.selection == Selection::kSamples || HasEpochs(config));
}

absl::Status KeepSamples(RunContext& run, Session& session, int64_t samples) {
  if (samples < 1 || samples == session.samples) return absl::OkStatus();
  session.samples = samples;
  return run.store->SetSamples(session.client, samples);
}

// Whether nothing that the client did for this run can be lost yet.
bool IsNewHere(const ClientRecord& record) {
  return record.last_applied.IsZero() && record.updates_applied == 0 && record.updates_not_applied == 0 &&
         record.resets == 0;
}

// Why work of the client for this run is lost since it spoke last, for people; empty when none is.
std::string LostResidual(const RunContext& run, const ClientRecord& record, const CheckIn& message,
                         const absl::optional<Verdict>& verdict) {
  if (!message.lineage.IsZero() && message.lineage != run.lineage) {
    // A client leaves the rest of its work behind when it moves on from a run that has ended.
    return IsNewHere(record) ? "" : "what the client holds belongs to another run and is dropped";
  }
  if (verdict.has_value() && verdict->outcome == Outcome::kReset) return verdict->reason;
  return message.residual_lost ? "the client starts afresh: it was reset, or died under relaxed durability" : "";
}

// Whether the verdict is RESET for an update that was refused: the loss was counted when its round closed.
absl::StatusOr<bool> IsCounted(RunContext& run, const absl::optional<Verdict>& verdict) {
  if (!verdict.has_value() || verdict->outcome != Outcome::kReset) return false;
  TERSE_ASSIGN_OR_RETURN(const absl::optional<RunStore::Fate> fate, run.store->FateOf(verdict->update_id));
  return fate.has_value() && !fate->refused.empty();
}

// Fills the session from the client's row and this check-in.
void Adopt(const RunContext& run, Session& session, const ClientRecord& record, const CheckIn& message) {
  session.client = record.id;
  session.name = record.name;
  session.process = message.process;
  session.connection = message.connection;
  session.last_applied = record.last_applied;
  session.samples = record.samples;
  session.set_aside_until_us = record.set_aside_until_us == 0 ? 0 : run.MonotonicAt(record.set_aside_until_us);
}

}  // namespace

absl::StatusOr<Verdict> Settle(RunContext& run, int64_t client, Id128 last_applied, Id128 update_id, int64_t round,
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
  TERSE_ASSIGN_OR_RETURN(const absl::optional<RunStore::Fate> fate, run.store->FateOf(update_id));
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

bool Follows(const RunContext& run, const Session& session, const Update& update) {
  if (Mutated(Mutant::kNoPredecessorCheck)) return true;
  return update.update_id ==
         MakeUpdateId(run.lineage, update.round, session.client, session.last_applied, update.message);
}

void Refuse(Session& session, const std::string& reason, bool retry) {
  session.refused = true;
  session.link->Send(Refusal{reason, retry});
}

absl::Status HandleCheckIn(RunContext& run, SessionId id, const CheckIn& message) {
  TERSE_FAILPOINT("coordinator.checkin.received");
  Session& session = run.sessions[id];
  if (const std::string objection = Objection(*run.config, message); !objection.empty()) {
    Refuse(session, objection, /*retry=*/false);
    return run.NoteMisbehaviour(event::kClientRefused, -1, objection);
  }
  TERSE_ASSIGN_OR_RETURN(const ClientRecord record, run.store->RegisterClient(message.name, run.Now()));
  if (record.id >= run.config->rounds.clients && run.config->data.partition != "all") {
    const std::string reason =
        absl::StrCat("run '", run.config->name, "' cuts its data into ", run.config->rounds.clients,
                     " shards and all of them have an owner; raise rounds.clients in a new run");
    Refuse(session, reason, /*retry=*/false);
    return run.NoteMisbehaviour(event::kClientRefused, record.id, reason);
  }
  TERSE_ASSIGN_OR_RETURN(absl::optional<Verdict> verdict, SettleAtCheckIn(run, record, message));
  const std::string lost = LostResidual(run, record, message, verdict);
  if (const auto holder = HolderOf(run, id, message.name); holder != run.sessions.end()) {
    if (KeepsName(holder->first, holder->second, id, message, /*lose=*/!lost.empty())) {
      Refuse(session, absl::StrCat("another connection has the name '", message.name, "'"), /*retry=*/true);
      return absl::OkStatus();
    }
    TakeName(run, holder->second, message);
  }
  Adopt(run, session, record, message);
  run.left_us.erase(record.id);
  TERSE_RETURN_IF_ERROR(ReadmitDue(run));
  if (verdict.has_value() && verdict->outcome == Outcome::kReset) run.received.erase(record.id);
  TERSE_ASSIGN_OR_RETURN(const bool counted, IsCounted(run, verdict));
  if (counted) BeginHistoryAnew(run, record.id);
  if (!lost.empty() && !counted) {
    TERSE_RETURN_IF_ERROR(ResetClient(run, record.id));
    TERSE_RETURN_IF_ERROR(run.Note(event::kResidualLost, record.id, lost));
  }
  session.owes_round = verdict.has_value() && verdict->outcome == Outcome::kPending ? message.pending_round : 0;
  // This process does not know how many updates folded into the next one before it began, so it assumes the most.
  if (record.updates_not_applied > 0) run.notes.try_emplace(record.id, ClientNotes{0, 0, kMostFolded});
  const bool owes = session.owes_round == run.round && run.round_open && run.MayOwe(record.id, run.round);
  if (owes && session.set_aside_until_us == 0) run.invited.insert(record.id);
  TERSE_RETURN_IF_ERROR(run.Note(event::kClientJoined, record.id, session.name));
  TERSE_FAILPOINT("coordinator.checkin.settled");
  session.link->Send(Welcome{run.lineage, run.config, record.id, std::move(verdict), run.head.version, run.start_hash});
  return absl::OkStatus();
}

absl::Status HandleReady(RunContext& run, SessionId id, const Ready& message) {
  Session& session = run.sessions[id];
  if (message.layout_hash != run.layout().Hash()) {
    Refuse(session,
           absl::StrCat("model '", run.config->model.name,
                        "' has other tensors on this client than on the "
                        "coordinator; install the same release of Terse on both sides"),
           /*retry=*/false);
    return run.NoteMisbehaviour(event::kClientRefused, session.client, "model layout differs");
  }
  if (LacksSamples(*run.config, message.samples)) {
    Refuse(session, "this run counts training samples and the client has none; give it data, or leave the run",
           /*retry=*/false);
    return run.NoteMisbehaviour(event::kClientRefused, session.client, "no training samples");
  }
  TERSE_RETURN_IF_ERROR(KeepSamples(run, session, message.samples));
  if (!message.device.empty()) session.device = message.device;
  if (!session.said_ready) TERSE_RETURN_IF_ERROR(HoldHistory(run, session, message.history_hash));
  session.said_ready = true;
  // A client that says Ready is not training: what it was given before, it let pass or has finished.
  session.assigned_round = 0;
  if (!message.version.has_value()) {
    if (session.version.has_value()) {
      TERSE_RETURN_IF_ERROR(NoteDrift(run, session, absl::StrCat("on the way to version ", *session.version)));
      if (session.refused) return absl::OkStatus();
    }
    return HasEpochs(*run.config) && SnapshotBefore(*run.config, run.head.version) > 0
               ? SendModels(run, session, -1)
               : SendResync(run, session, "the client holds no model of this run");
  }
  const int64_t version = *message.version;
  if (version > run.head.version || version < 0) {
    return SendResync(run, session, absl::StrCat("version ", version, " does not exist here"));
  }
  TERSE_ASSIGN_OR_RETURN(const bool ours, HoldsOurs(run, version, message.model_hash));
  if (!ours) {
    TERSE_RETURN_IF_ERROR(NoteDrift(run, session, absl::StrCat("at version ", version)));
    if (session.refused) return absl::OkStatus();
    return SendResync(run, session, "the model hash differs");
  }
  return CatchUp(run, session, version);
}

absl::Status BringUp(RunContext& run, Session& session) {
  if (session.draining || !session.version.has_value()) return absl::OkStatus();
  if (*session.version >= run.head.version) return absl::OkStatus();
  return CatchUp(run, session, *session.version);
}

void FlushAll(RunContext& run) {
  for (auto& [id, session] : run.sessions) session.link->Flush();
}

void BookWire(RunContext& run) {
  for (auto& [id, session] : run.sessions) {
    if (session.client >= 0) run.book.AddWire(session.client, session.link->Wire(), &session.booked);
  }
}

absl::Status CloseSession(RunContext& run, SessionId id) {
  const auto it = run.sessions.find(id);
  if (it == run.sessions.end()) return absl::OkStatus();
  Session& session = it->second;
  const int64_t client = session.client;
  const std::string name = session.name;
  if (client >= 0) run.book.AddWire(client, session.link->Wire(), &session.booked);
  NoteAbsence(run, session);
  run.sessions.erase(it);
  if (run.histories != nullptr && client >= 0) run.histories->Drop(client);
  return client < 0 ? absl::OkStatus() : run.Note(event::kClientLeft, client, name);
}

}  // namespace terse
