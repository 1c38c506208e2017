// The changes to the run, its rounds, ledger and events: one transaction each, or in a batch one for all.
#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/fault.h"
#include "core/status.h"
#include "storage/event_kinds.h"
#include "storage/ledger_rows.h"
#include "storage/message_rows.h"
#include "storage/metric_rows.h"
#include "storage/sql_run_store.h"

namespace terse {

using run_store_internal::AddLedgerRows;
using run_store_internal::FoldOldRounds;
using run_store_internal::InsertEvent;
using run_store_internal::SelectHead;
using run_store_internal::SelectRoundState;

namespace {

absl::Status ExpectRoundState(SqlDb& db, int64_t round, RoundState expected) {
  TERSE_ASSIGN_OR_RETURN(const absl::optional<RoundState> state, SelectRoundState(db, round));
  if (state == expected) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("round ", round, " is ", state ? RoundStateName(*state) : "unknown",
                                                    ", not ", RoundStateName(expected)));
}

// A new round follows the newest one, which must be settled, and starts from the head.
absl::Status InsertRound(SqlDb& db, int64_t round, int64_t base_version, int64_t now_us,
                         const absl::optional<RoundPlan>& plan) {
  int64_t last = 0;
  {
    Statement statement = db.Prepare("SELECT id, state FROM rounds ORDER BY id DESC LIMIT 1");
    TERSE_ASSIGN_OR_RETURN(const bool row, statement.Step());
    if (row) {
      last = statement.GetInt(0);
      const absl::string_view state = statement.GetText(1);
      if (state != RoundStateName(RoundState::kCommitted) && state != RoundStateName(RoundState::kAborted)) {
        return absl::FailedPreconditionError(
            absl::StrCat("round ", round, " cannot open: round ", last, " is still ", state));
      }
    }
  }
  if (round != last + 1) {
    return absl::FailedPreconditionError(absl::StrCat("round ", round, " cannot open: the next one is ", last + 1));
  }
  TERSE_ASSIGN_OR_RETURN(const Head head, SelectHead(db));
  if (head.version != base_version || head.model_hash.IsZero()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "round ", round, " cannot open on version ", base_version, ": ",
        head.model_hash.IsZero() ? std::string("there is no run yet") : absl::StrCat("the head is ", head.version)));
  }
  TERSE_RETURN_IF_ERROR(db.Prepare("INSERT INTO rounds (id, state, base_version, opened_us) VALUES (?, 'open', ?, ?)")
                            .Int(round)
                            .Int(base_version)
                            .Int(now_us)
                            .Run());
  if (!plan.has_value()) return absl::OkStatus();
  return db.Prepare("INSERT INTO plans (round, local_steps, choice, first_iteration, why) VALUES (?, ?, ?, ?, ?)")
      .Int(round)
      .Int(plan->local_steps)
      .Int(plan->choice)
      .Int(plan->first_iteration)
      .Text(plan->why)
      .Run();
}

absl::Status InsertRefused(SqlDb& db, int64_t round, const RefusedUpdate& update, int64_t now_us) {
  if (update.update_id.IsZero() || update.reason.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("client ", update.client, "'s update is refused without an id or a reason"));
  }
  TERSE_RETURN_IF_ERROR(run_store_internal::ResetClient(db, update.client));
  TERSE_RETURN_IF_ERROR(db.Prepare("INSERT INTO refused (update_id, round, client, reason) VALUES (?, ?, ?, ?)")
                            .Id(update.update_id)
                            .Int(round)
                            .Int(update.client)
                            .Text(update.reason)
                            .Run());
  return InsertEvent(db, {now_us, event::kUpdateRejected, round, update.client, update.reason});
}

absl::Status InsertChosen(SqlDb& db, int64_t round, absl::Span<const ChosenUpdate> chosen) {
  for (const ChosenUpdate& update : chosen) {
    if (!update.update_id.IsZero()) continue;
    return absl::InvalidArgumentError(absl::StrCat("client ", update.client, "'s update has no id"));
  }
  TERSE_RETURN_IF_ERROR(db.InsertRows(
      "updates", "round, client, update_id, prev_applied, content_hash, payload_bytes, train_us, loss, samples",
      static_cast<int64_t>(chosen.size()), [&](int64_t row, Statement& values) {
        const ChosenUpdate& update = chosen[static_cast<size_t>(row)];
        values.Int(round)
            .Int(update.client)
            .Id(update.update_id)
            .Id(update.prev_applied)
            .Id(update.content_hash)
            .Int(update.payload_bytes)
            .Int(update.train_us)
            .Real(update.loss)
            .Int(update.samples);
      }));
  return db
      .Prepare(
          "INSERT INTO first_updates (update_id, round, client) SELECT update_id, round, client FROM updates "
          "WHERE round = ? AND prev_applied = ? ON CONFLICT (update_id) DO UPDATE SET round = excluded.round, "
          "client = excluded.client")
      .Int(round)
      .Id(Id128())
      .Run();
}

// Each update must follow the one that is the last applied of its client.
absl::Status CheckPredecessors(SqlDb& db, int64_t round) {
  Statement stray = db.Prepare(
      "SELECT u.client, u.update_id, u.prev_applied FROM updates u LEFT JOIN clients c ON c.id = u.client "
      "WHERE u.round = ? AND c.last_applied IS DISTINCT FROM u.prev_applied LIMIT 1");
  TERSE_ASSIGN_OR_RETURN(const bool found, stray.Int(round).Step());
  if (!found) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("round ", round, ": update ", stray.GetId(1).ToHex(), " of client ",
                                                    stray.GetInt(0), " follows ", stray.GetId(2).ToHex(),
                                                    ", which is not the last one applied; the client must reset"));
}

// Moves last_applied of every client that the round chose, each from the predecessor recorded at CLOSE. One statement
// for all: in a large fleet a statement for each client takes several times as long.
absl::Status ApplyChosen(SqlDb& db, int64_t round, int64_t now_us) {
  TERSE_RETURN_IF_ERROR(CheckPredecessors(db, round));
  return db
      .Prepare(
          "UPDATE clients SET last_applied = u.update_id, updates_applied = updates_applied + 1, last_seen_us = ?1, "
          "failures = 0, reliability = 0.9 * reliability + 0.1 FROM updates u WHERE u.round = ?2 AND clients.id = "
          "u.client")
      .Int(now_us)
      .Int(round)
      .Run();
}

absl::Status InsertDownstream(SqlDb& db, LargeMessages& large, int64_t version, Id128 model_hash,
                              const std::string& message) {
  static const auto& log_row = *new std::string(absl::StrCat("INSERT INTO downstream_log (version, model_hash, ",
                                                             kMessageColumns, ") VALUES (?, ?, ?, ?, ?, ?, ?)"));
  TERSE_ASSIGN_OR_RETURN(const StoredMessage downstream, StoreMessage(db, large, message));
  Statement logged = db.Prepare(log_row);
  return BindMessage(logged.Int(version).Id(model_hash), downstream).Run();
}

absl::Status InsertMessages(SqlDb& db, LargeMessages& large, const Commit& commit) {
  TERSE_RETURN_IF_ERROR(InsertDownstream(db, large, commit.base_version + 1, commit.model_hash, commit.downstream));
  if (commit.aggregate.empty()) return absl::OkStatus();
  static const auto& aggregate_row = *new std::string(
      absl::StrCat("INSERT INTO aggregates (version, ", kMessageColumns, ") VALUES (?, ?, ?, ?, ?, ?)"));
  TERSE_ASSIGN_OR_RETURN(const StoredMessage aggregate, StoreMessage(db, large, commit.aggregate));
  Statement kept = db.Prepare(aggregate_row);
  return BindMessage(kept.Int(commit.base_version + 1), aggregate).Run();
}

// A relay's round makes no model; it must still be of the head that the relay has.
absl::Status ExpectHead(SqlDb& db, int64_t version, int64_t epoch) {
  TERSE_ASSIGN_OR_RETURN(const Head head, SelectHead(db));
  if (head.version == version && head.epoch == epoch) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("the head is version ", head.version, " of epoch ", head.epoch,
                                                    ", not ", version, " of epoch ", epoch));
}

absl::Status AdvanceHead(SqlDb& db, LargeMessages& large, const Commit& commit, int64_t epoch) {
  if (commit.model_hash.IsZero()) return ExpectHead(db, commit.base_version, epoch);
  TERSE_RETURN_IF_ERROR(
      db.Prepare("UPDATE head SET version = version + 1, model_hash = ? WHERE version = ? AND epoch = ?")
          .Id(commit.model_hash)
          .Int(commit.base_version)
          .Int(epoch)
          .RunForOne(absl::StrCat("round ", commit.round, " cannot commit: the head is no longer version ",
                                  commit.base_version, " of epoch ", epoch)));
  return InsertMessages(db, large, commit);
}

}  // namespace

absl::Status run_store_internal::ExpectMovableHead(SqlDb& db) {
  TERSE_ASSIGN_OR_RETURN(const Head head, SelectHead(db));
  if (head.model_hash.IsZero()) return absl::FailedPreconditionError("the head cannot move: there is no run yet");
  Statement unsettled = db.Prepare("SELECT id FROM rounds WHERE state IN (?, ?)");
  unsettled.Text(RoundStateName(RoundState::kOpen)).Text(RoundStateName(RoundState::kClosed));
  TERSE_ASSIGN_OR_RETURN(const bool row, unsettled.Step());
  if (!row) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the head cannot move: round ", unsettled.GetInt(0), " is not settled"));
}

absl::Status SqlRunStore::CreateRun(const RunRecord& run, absl::Span<const float> initial_weights) {
  if (run.lineage.IsZero()) return absl::InvalidArgumentError("a run needs a lineage");
  if (run.parameters < 1 || run.parameters != static_cast<int64_t>(initial_weights.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("the run has ", run.parameters, " parameters and ", initial_weights.size(), " initial weights"));
  }
  TERSE_ASSIGN_OR_RETURN(const absl::optional<RunRecord> existing, Run());
  if (existing) {
    return absl::AlreadyExistsError(
        absl::StrCat(place_, " holds run '", existing->name, "'; continue it or name an empty directory"));
  }
  const CheckpointView first(run.first_version, HashWeights(initial_weights), initial_weights);

  absl::MutexLock lock(&checkpoint_mutex_);
  TERSE_ASSIGN_OR_RETURN(const CheckpointBytes bytes, Watch(checkpoints_->Write(*this, first)));
  return Write([&](SqlDb& db) -> absl::Status {
    TERSE_RETURN_IF_ERROR(db.Prepare("INSERT INTO runs (id, name, lineage, config, parameters, state, created_us, "
                                     "reason) VALUES (1, ?, ?, ?, ?, ?, ?, ?)")
                              .Text(run.name)
                              .Id(run.lineage)
                              .Blob(run.config)
                              .Int(run.parameters)
                              .Text(RunStateName(run.state))
                              .Int(run.created_us)
                              .Text(run.reason)
                              .Run());
    TERSE_RETURN_IF_ERROR(db.Prepare("UPDATE head SET model_hash = ?, version = ? WHERE version = 0")
                              .Id(first.model_hash)
                              .Int(first.version)
                              .RunForOne("a new run starts with an empty head"));
    if (first.version == 0) {
      TERSE_RETURN_IF_ERROR(db.Prepare("INSERT INTO start (id, model_hash) VALUES (1, ?)").Id(first.model_hash).Run());
    }
    if (!run.relay.empty()) {
      TERSE_RETURN_IF_ERROR(db.Prepare("INSERT INTO relay (id, facts) VALUES (1, ?)").Blob(run.relay).Run());
    }
    return run_store_internal::RecordCheckpoint(db, first, bytes);
  });
}

absl::Status SqlRunStore::SetRunState(RunState state, const std::string& reason) {
  return Write([&](SqlDb& db) {
    return db.Prepare("UPDATE runs SET state = ?, reason = ? WHERE id = 1")
        .Text(RunStateName(state))
        .Text(reason)
        .RunForOne(absl::StrCat(place_, " holds no run yet"));
  });
}

absl::Status SqlRunStore::OpenRound(int64_t round, int64_t base_version, int64_t now_us,
                                    const absl::optional<RoundPlan>& plan) {
  return Write([&](SqlDb& db) { return InsertRound(db, round, base_version, now_us, plan); });
}

absl::Status SqlRunStore::CloseRound(int64_t round, absl::Span<const ChosenUpdate> chosen, int64_t now_us,
                                     absl::Span<const RefusedUpdate> refused) {
  int64_t train_us_max = 0;
  int64_t bytes = 0;
  double loss = 0;
  for (const ChosenUpdate& update : chosen) {
    bytes += update.payload_bytes;
    train_us_max = std::max(train_us_max, update.train_us);
    loss += update.loss / static_cast<double>(chosen.size());
  }
  TERSE_RETURN_IF_ERROR(Write([&](SqlDb& db) -> absl::Status {
    TERSE_RETURN_IF_ERROR(ExpectRoundState(db, round, RoundState::kOpen));
    TERSE_RETURN_IF_ERROR(InsertChosen(db, round, chosen));
    TERSE_RETURN_IF_ERROR(CheckPredecessors(db, round));
    TERSE_RETURN_IF_ERROR(run_store_internal::InsertMetrics(db, round, chosen));
    for (const RefusedUpdate& update : refused) TERSE_RETURN_IF_ERROR(InsertRefused(db, round, update, now_us));
    TERSE_RETURN_IF_ERROR(run_store_internal::SetUpdateBytes(db, round, bytes));
    return db
        .Prepare(
            "UPDATE rounds SET state = 'closed', closed_us = ?, updates = ?, train_us_max = ?, train_loss = ? "
            "WHERE id = ?")
        .Int(now_us)
        .Int(static_cast<int64_t>(chosen.size()))
        .Int(train_us_max)
        .Real(loss)
        .Int(round)
        .Run();
  }));
  // Only a round that was closed by itself can be opened again.
  return Mutated(Mutant::kReopenClosed) ? SplitBatch() : absl::OkStatus();
}

absl::Status SqlRunStore::CommitRound(const Commit& commit, bool open_next) {
  const bool makes_model = !commit.model_hash.IsZero();
  if (!makes_model && (open_next || !commit.downstream.empty() || !commit.aggregate.empty())) {
    return absl::InvalidArgumentError("a commit needs the new model's hash, unless it is a relay's, which makes none");
  }
  const auto settle_round = [&](SqlDb& db) -> absl::Status {
    TERSE_RETURN_IF_ERROR(ExpectRoundState(db, commit.round, RoundState::kClosed));
    TERSE_RETURN_IF_ERROR(
        db.Prepare("UPDATE rounds SET state = 'committed', settled_us = ? WHERE id = ? AND base_version = ?")
            .Int(commit.committed_us)
            .Int(commit.round)
            .Int(commit.base_version)
            .RunForOne(absl::StrCat("round ", commit.round, " was not opened on version ", commit.base_version)));
    TERSE_RETURN_IF_ERROR(ApplyChosen(db, commit.round, commit.committed_us));
    for (const HistoryMessage& message : commit.history) {
      TERSE_RETURN_IF_ERROR(run_store_internal::InsertHistory(db, commit.round, message));
    }
    return absl::OkStatus();
  };
  const auto advance = [&](SqlDb& db) -> absl::Status {
    TERSE_FAILPOINT("coordinator.commit.in_transaction");
    TERSE_RETURN_IF_ERROR(AdvanceHead(db, *messages_, commit, epoch_));
    TERSE_RETURN_IF_ERROR(AddLedgerRows(db, commit.ledger));
    TERSE_RETURN_IF_ERROR(FoldOldRounds(db, commit.base_version + 1));
    if (!open_next) return absl::OkStatus();
    return InsertRound(db, commit.round + 1, commit.base_version + 1, commit.committed_us, commit.next_plan);
  };
  if (Mutated(Mutant::kSplitTransaction)) {
    TERSE_RETURN_IF_ERROR(Write(settle_round));
    TERSE_RETURN_IF_ERROR(SplitBatch());
    return Write(advance);
  }
  return Write([&](SqlDb& db) -> absl::Status {
    TERSE_RETURN_IF_ERROR(settle_round(db));
    return advance(db);
  });
}

absl::Status SqlRunStore::AppendMessage(const LogMessage& message) {
  return Write([&](SqlDb& db) -> absl::Status {
    TERSE_RETURN_IF_ERROR(run_store_internal::ExpectMovableHead(db));
    TERSE_RETURN_IF_ERROR(
        db.Prepare("UPDATE head SET version = version + 1, model_hash = ? WHERE version = ? AND epoch = ?")
            .Id(message.model_hash)
            .Int(message.version - 1)
            .Int(epoch_)
            .RunForOne(absl::StrCat("version ", message.version, " does not follow the head")));
    return InsertDownstream(db, *messages_, message.version, message.model_hash, message.downstream);
  });
}

absl::Status SqlRunStore::AbortRound(int64_t round, const std::string& reason, int64_t now_us) {
  return Write([&](SqlDb& db) { return run_store_internal::MarkAborted(db, round, reason, now_us); });
}

absl::Status SqlRunStore::SetEvaluation(int64_t round, const Evaluation& evaluation) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();  // which is stored as NULL
  return Write([&](SqlDb& db) -> absl::Status {
    TERSE_RETURN_IF_ERROR(
        db.Prepare("UPDATE rounds SET accuracy = ?, test_loss = ? WHERE id = ? AND state = 'committed'")
            .Real(evaluation.accuracy.value_or(kNone))
            .Real(evaluation.loss)
            .Int(round)
            .RunForOne(absl::StrCat("round ", round, " is not committed and has no model to evaluate")));
    TERSE_RETURN_IF_ERROR(run_store_internal::ReplaceTestMetrics(db, round, evaluation.metrics));
    if (!evaluation.top5.has_value() && !evaluation.perplexity.has_value()) return absl::OkStatus();
    return db
        .Prepare(
            "INSERT INTO scores (round, top5, perplexity) VALUES (?, ?, ?) ON CONFLICT (round) DO UPDATE SET "
            "top5 = excluded.top5, perplexity = excluded.perplexity")
        .Int(round)
        .Real(evaluation.top5.value_or(kNone))
        .Real(evaluation.perplexity.value_or(kNone))
        .Run();
  });
}

absl::Status SqlRunStore::AddLedger(absl::Span<const LedgerEntry> entries) {
  if (entries.empty()) return absl::OkStatus();
  return Write([&](SqlDb& db) { return AddLedgerRows(db, entries); });
}

absl::Status SqlRunStore::AddEvent(const EventRecord& event) {
  return Write([&](SqlDb& db) { return InsertEvent(db, event); });
}

}  // namespace terse
