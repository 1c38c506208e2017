// Everything that only reads, on the reading connection, one snapshot for each call.
#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "storage/integrity.h"
#include "storage/metric_rows.h"
#include "storage/sql_run_store.h"

namespace terse {
namespace {

// A row of `table` that is not there, or has its checksum.
SqlText AbsentOrWhole(absl::string_view table, absl::string_view alias) {
  return SqlCat({"(", alias, ".round IS NULL OR ", HasChecksum(table, alias), ")"});
}

// Bounds come last.
SqlText RoundsQuery() {
  return SqlCat(
      {"SELECT r.id, r.state, r.base_version, r.opened_us, r.closed_us, r.settled_us, r.updates, r.train_us_max, "
       "r.train_loss, r.accuracy, r.test_loss, "
       "COALESCE(t.dense_up, 0), COALESCE(t.payload_up, 0), COALESCE(t.wire_up, 0), COALESCE(t.dense_down, 0), "
       "COALESCE(t.payload_down, 0), COALESCE(t.wire_down, 0), s.top5, s.perplexity, COALESCE(t.update_bytes, 0), "
       "p.local_steps, p.choice, p.first_iteration, p.why, ",
       HasChecksum("rounds", "r"), " AND ", AbsentOrWhole("round_totals", "t"), " AND ", AbsentOrWhole("scores", "s"),
       " AND ", AbsentOrWhole("plans", "p"),
       " FROM rounds r LEFT JOIN round_totals t ON t.round = r.id LEFT JOIN scores s ON s.round = r.id "
       "LEFT JOIN plans p ON p.round = r.id WHERE r.id BETWEEN ? AND ? ORDER BY r.id"});
}

// The schema's CHECK allows only the names of the enumerators.
RoundState RoundStateFromName(absl::string_view name) {
  for (RoundState state : {RoundState::kOpen, RoundState::kClosed, RoundState::kCommitted}) {
    if (name == RoundStateName(state)) return state;
  }
  return RoundState::kAborted;
}

RunState RunStateFromName(absl::string_view name) {
  for (RunState state : {RunState::kActive, RunState::kPaused, RunState::kStopping, RunState::kFinished}) {
    if (name == RunStateName(state)) return state;
  }
  return RunState::kStopped;
}

RoundRecord RoundFromRow(const Statement& row) {
  RoundRecord round;
  round.id = row.GetInt(0);
  round.state = RoundStateFromName(row.GetText(1));
  round.base_version = row.GetInt(2);
  round.opened_us = row.GetInt(3);
  round.closed_us = row.GetInt(4);
  round.committed_us = row.GetInt(5);
  round.updates = row.GetInt(6);
  round.train_us_max = row.GetInt(7);
  // NULL before the close, and when a client reported a loss that was not a number.
  round.train_loss = row.IsNull(8) && round.closed_us == 0 ? 0 : row.GetReal(8);
  round.accuracy = run_store_internal::OptionalReal(row, 9);
  round.test_loss = run_store_internal::OptionalReal(row, 10);
  round.dense_bytes_up = row.GetInt(11);
  round.payload_bytes_up = row.GetInt(12);
  round.wire_bytes_up = row.GetInt(13);
  round.dense_bytes_down = row.GetInt(14);
  round.payload_bytes_down = row.GetInt(15);
  round.wire_bytes_down = row.GetInt(16);
  round.top5 = run_store_internal::OptionalReal(row, 17);
  round.perplexity = run_store_internal::OptionalReal(row, 18);
  round.update_bytes = row.GetInt(19);
  if (!row.IsNull(20)) {
    round.plan = RoundPlan{row.GetInt(20), row.GetInt(21), row.GetInt(22), std::string(row.GetText(23))};
  }
  return round;
}

// Columns as the table declares them.
ClientRecord ClientFromRow(const Statement& row) {
  ClientRecord client;
  client.id = row.GetInt(0);
  client.name = std::string(row.GetText(1));
  client.last_applied = row.GetId(2);
  client.first_seen_us = row.GetInt(3);
  client.last_seen_us = row.GetInt(4);
  client.updates_applied = row.GetInt(5);
  client.updates_not_applied = row.GetInt(6);
  client.resets = row.GetInt(7);
  client.samples = row.GetInt(8);
  client.reliability = row.GetReal(9);
  client.failures = row.GetInt(10);
  client.set_aside_until_us = row.GetInt(11);
  client.set_aside_reason = std::string(row.GetText(12));
  return client;
}

absl::StatusOr<std::vector<RoundRecord>> SelectRounds(SqlDb& db, int64_t first, int64_t last) {
  std::vector<RoundRecord> rounds;
  static const auto& query = *new SqlText(RoundsQuery());
  Statement rows = db.Prepare(query);
  rows.Int(first).Int(last);
  while (true) {
    TERSE_ASSIGN_OR_RETURN(const bool row, rows.Step());
    if (!row) break;
    TERSE_RETURN_IF_ERROR(ExpectChecksum(db, rows, 24, "rounds"));
    rounds.push_back(RoundFromRow(rows));
  }
  TERSE_RETURN_IF_ERROR(run_store_internal::ReadMeans(db, &rounds));
  return rounds;
}

// `rows` are prepared on `db`.
absl::StatusOr<std::vector<EventRecord>> StepEvents(SqlDb& db, Statement& rows) {
  std::vector<EventRecord> events;
  while (true) {
    TERSE_ASSIGN_OR_RETURN(const bool row, rows.Step());
    if (!row) return events;
    TERSE_RETURN_IF_ERROR(ExpectChecksum(db, rows, 7, "events"));
    events.push_back({rows.GetInt(0), std::string(rows.GetText(1)), rows.GetInt(2), rows.GetInt(3),
                      std::string(rows.GetText(4)), rows.GetInt(5), std::string(rows.GetText(6))});
  }
}

// Columns of `events`, called e, and `clients`, called c.
SqlText EventColumns() {
  return SqlCat({"SELECT e.time_us, e.kind, e.round, e.client, e.detail, e.id, COALESCE(c.name, ''), ",
                 HasChecksum("events", "e"), " "});
}

}  // namespace

absl::optional<double> run_store_internal::OptionalReal(const Statement& row, int column) {
  if (row.IsNull(column)) return absl::nullopt;
  return row.GetReal(column);
}

absl::StatusOr<Head> run_store_internal::SelectHead(SqlDb& db) {
  Statement statement = db.Prepare("SELECT version, model_hash, epoch FROM head");
  TERSE_ASSIGN_OR_RETURN(const bool row, statement.Step());
  if (!row) return absl::DataLossError(absl::StrCat(db.place(), " has no head", db.remedy()));
  Head head;
  head.version = statement.GetInt(0);
  head.model_hash = statement.GetId(1);
  head.epoch = statement.GetInt(2);
  return head;
}

absl::StatusOr<absl::optional<RoundState>> run_store_internal::SelectRoundState(SqlDb& db, int64_t round) {
  static const auto& query =
      *new SqlText(SqlCat({"SELECT state, ", HasChecksum("rounds", "rounds"), " FROM rounds WHERE id = ?"}));
  Statement statement = db.Prepare(query);
  TERSE_ASSIGN_OR_RETURN(const bool row, statement.Int(round).Step());
  if (!row) return absl::optional<RoundState>();
  TERSE_RETURN_IF_ERROR(ExpectChecksum(db, statement, 1, "rounds"));
  return absl::make_optional(RoundStateFromName(statement.GetText(0)));
}

absl::StatusOr<ClientRecord> run_store_internal::SelectClient(Statement& statement, absl::string_view otherwise) {
  TERSE_ASSIGN_OR_RETURN(const bool row, statement.Step());
  if (!row) return absl::NotFoundError(otherwise);
  return ClientFromRow(statement);
}

absl::StatusOr<absl::optional<RunRecord>> SqlRunStore::Run() {
  absl::optional<RunRecord> run;
  TERSE_RETURN_IF_ERROR(Read([&](SqlDb& db) -> absl::Status {
    Statement statement = db.Prepare(
        "SELECT name, lineage, config, parameters, state, created_us, reason, relay.facts FROM runs "
        "LEFT JOIN relay ON relay.id = runs.id WHERE runs.id = 1");
    TERSE_ASSIGN_OR_RETURN(const bool row, statement.Step());
    if (!row) return absl::OkStatus();
    run.emplace();
    run->name = std::string(statement.GetText(0));
    run->lineage = statement.GetId(1);
    run->config = std::string(statement.GetBlob(2));
    run->parameters = statement.GetInt(3);
    run->state = RunStateFromName(statement.GetText(4));
    run->created_us = statement.GetInt(5);
    run->reason = std::string(statement.GetText(6));
    if (!statement.IsNull(7)) run->relay = std::string(statement.GetBlob(7));
    return absl::OkStatus();
  }));
  return run;
}

absl::StatusOr<Head> SqlRunStore::GetHead() {
  Head head;
  TERSE_RETURN_IF_ERROR(Read([&](SqlDb& db) -> absl::Status {
    TERSE_ASSIGN_OR_RETURN(head, run_store_internal::SelectHead(db));
    return absl::OkStatus();
  }));
  return head;
}

absl::StatusOr<absl::optional<RoundRecord>> SqlRunStore::LastRound() {
  absl::optional<RoundRecord> last;
  TERSE_RETURN_IF_ERROR(Read([&](SqlDb& db) -> absl::Status {
    Statement newest = db.Prepare("SELECT COALESCE(MAX(id), 0) FROM rounds");
    TERSE_RETURN_IF_ERROR(newest.Step().status());
    TERSE_ASSIGN_OR_RETURN(const std::vector<RoundRecord> found, SelectRounds(db, newest.GetInt(0), newest.GetInt(0)));
    if (!found.empty()) last = found.front();
    return absl::OkStatus();
  }));
  return last;
}

absl::StatusOr<absl::optional<RoundState>> SqlRunStore::GetRoundState(int64_t round) {
  absl::optional<RoundState> state;
  TERSE_RETURN_IF_ERROR(Read([&](SqlDb& db) -> absl::Status {
    TERSE_ASSIGN_OR_RETURN(state, run_store_internal::SelectRoundState(db, round));
    return absl::OkStatus();
  }));
  return state;
}

absl::StatusOr<bool> SqlRunStore::WasChosen(int64_t round, int64_t client) {
  bool chosen = false;
  TERSE_RETURN_IF_ERROR(Read([&](SqlDb& db) -> absl::Status {
    Statement statement = db.Prepare("SELECT 1 FROM updates WHERE round = ? AND client = ?");
    TERSE_ASSIGN_OR_RETURN(chosen, statement.Int(round).Int(client).Step());
    return absl::OkStatus();
  }));
  return chosen;
}

absl::StatusOr<absl::optional<int64_t>> SqlRunStore::BaseVersionOf(int64_t round) {
  absl::optional<int64_t> version;
  TERSE_RETURN_IF_ERROR(Read([&](SqlDb& db) -> absl::Status {
    static const auto& query =
        *new SqlText(SqlCat({"SELECT base_version, ", HasChecksum("rounds", "rounds"), " FROM rounds WHERE id = ?"}));
    Statement row = db.Prepare(query);
    TERSE_ASSIGN_OR_RETURN(const bool found, row.Int(round).Step());
    if (!found) return absl::OkStatus();
    version = row.GetInt(0);
    return ExpectChecksum(db, row, 1, "rounds");
  }));
  return version;
}

absl::StatusOr<absl::optional<RunStore::Fate>> SqlRunStore::FateOf(Id128 update_id, int64_t client, int64_t round) {
  absl::optional<Fate> fate;
  TERSE_RETURN_IF_ERROR(Read([&](SqlDb& db) -> absl::Status {
    // An update that was refused, or is its client's first, is found by its id, and any other by its key. A damaged row
    // on the way may be the one.
    static const auto& query = *new SqlText(SqlCat(
        {"WITH RECURSIVE newest (round, looks) AS (SELECT MAX(round), CAST(1 AS BIGINT) FROM updates UNION ALL "
         "SELECT round - 1, looks + 1 FROM newest WHERE round > ?3 AND looks < ?4) SELECT client, round, reason, ",
         HasChecksum("refused", "refused"), " FROM refused WHERE update_id = ?1 UNION ALL SELECT client, round, '', ",
         HasChecksum("first_updates", "first_updates"),
         " FROM first_updates WHERE update_id = ?1 UNION ALL SELECT * FROM (SELECT u.client, u.round, '', ",
         HasChecksum("updates", "u"),
         " FROM newest n CROSS JOIN updates u WHERE u.round = n.round AND u.client = ?2 AND u.round >= ?3 "
         "AND (u.update_id = ?1 OR NOT (",
         HasChecksum("updates", "u"), ")) LIMIT 1) AS chosen"}));
    Statement statement = db.Prepare(query);
    TERSE_ASSIGN_OR_RETURN(const bool found, statement.Id(update_id).Int(client).Int(round).Int(kRoundsOfFate).Step());
    if (!found) return absl::OkStatus();
    TERSE_RETURN_IF_ERROR(ExpectChecksum(db, statement, 3, "updates, first_updates or refused"));
    const int64_t decider = statement.GetInt(1);
    TERSE_ASSIGN_OR_RETURN(const absl::optional<RoundState> state, run_store_internal::SelectRoundState(db, decider));
    if (!state.has_value()) return absl::DataLossError(absl::StrCat("round ", decider, " has updates and no row"));
    fate = Fate{statement.GetInt(0), *state, std::string(statement.GetText(2))};
    return absl::OkStatus();
  }));
  return fate;
}

absl::StatusOr<Id128> SqlRunStore::StartHash() {
  Id128 hash;
  TERSE_RETURN_IF_ERROR(Read([&](SqlDb& db) -> absl::Status {
    Statement row = db.Prepare("SELECT model_hash FROM start");
    TERSE_ASSIGN_OR_RETURN(const bool found, row.Step());
    if (found) hash = row.GetId(0);
    return absl::OkStatus();
  }));
  return hash;
}

absl::StatusOr<std::vector<RoundRecord>> SqlRunStore::Rounds(int64_t first, int64_t last) {
  std::vector<RoundRecord> rounds;
  TERSE_RETURN_IF_ERROR(Read([&](SqlDb& db) -> absl::Status {
    TERSE_ASSIGN_OR_RETURN(rounds, SelectRounds(db, first, last));
    return absl::OkStatus();
  }));
  return rounds;
}

absl::StatusOr<ClientRecord> SqlRunStore::GetClient(int64_t client) {
  ClientRecord record;
  TERSE_RETURN_IF_ERROR(Read([&](SqlDb& db) -> absl::Status {
    Statement statement = db.Prepare("SELECT * FROM clients WHERE id = ?");
    TERSE_ASSIGN_OR_RETURN(
        record, run_store_internal::SelectClient(statement.Int(client), absl::StrCat("there is no client ", client)));
    return absl::OkStatus();
  }));
  return record;
}

absl::StatusOr<std::vector<ClientRecord>> SqlRunStore::Clients() {
  std::vector<ClientRecord> clients;
  TERSE_RETURN_IF_ERROR(Read([&](SqlDb& db) -> absl::Status {
    Statement rows = db.Prepare("SELECT * FROM clients ORDER BY id");
    while (true) {
      TERSE_ASSIGN_OR_RETURN(const bool row, rows.Step());
      if (!row) return absl::OkStatus();
      clients.push_back(ClientFromRow(rows));
    }
  }));
  return clients;
}

absl::StatusOr<std::vector<EventRecord>> SqlRunStore::EventsOf(const EventFilter& filter, int64_t newest) {
  std::vector<EventRecord> events;
  TERSE_RETURN_IF_ERROR(Read([&](SqlDb& db) -> absl::Status {
    static const auto& query =
        *new SqlText(SqlCat({EventColumns(),
                             "FROM (SELECT * FROM events WHERE id < ?1 AND (?2 = '' OR kind = ?2) AND (?3 = '' OR "
                             "client IN (SELECT id FROM clients WHERE ",
                             SqlText("instr", "strpos"),
                             "(lower(name), lower(?3)) > 0)) ORDER BY id DESC "
                             "LIMIT ?4) e LEFT JOIN clients c ON c.id = e.client ORDER BY e.id"}));
    Statement rows = db.Prepare(query);
    rows.Int(filter.before == 0 ? std::numeric_limits<int64_t>::max() : filter.before)
        .Text(filter.kind)
        .Text(filter.client)
        .Int(std::max<int64_t>(newest, 0));
    TERSE_ASSIGN_OR_RETURN(events, StepEvents(db, rows));
    return absl::OkStatus();
  }));
  return events;
}

absl::StatusOr<std::vector<EventRecord>> SqlRunStore::EventsAfter(int64_t id, int64_t limit) {
  std::vector<EventRecord> events;
  TERSE_RETURN_IF_ERROR(Read([&](SqlDb& db) -> absl::Status {
    static const auto& query = *new SqlText(SqlCat(
        {EventColumns(), "FROM events e LEFT JOIN clients c ON c.id = e.client WHERE e.id > ? ORDER BY e.id LIMIT ?"}));
    Statement rows = db.Prepare(query);
    TERSE_ASSIGN_OR_RETURN(events, StepEvents(db, rows.Int(id).Int(std::max<int64_t>(limit, 0))));
    return absl::OkStatus();
  }));
  return events;
}

}  // namespace terse
