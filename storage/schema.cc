#include "storage/schema.h"

#include <iterator>

#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace terse {
namespace {

constexpr char kVersion1[] = R"sql(
CREATE TABLE runs (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  lineage BLOB NOT NULL CHECK (length(lineage) = 16),
  config BLOB NOT NULL,
  parameters INTEGER NOT NULL CHECK (parameters >= 1),
  state TEXT NOT NULL CHECK (state IN ('active', 'finished', 'stopped')),
  created_us INTEGER NOT NULL
) STRICT;

CREATE TABLE head (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  version INTEGER NOT NULL CHECK (version >= 0),
  model_hash BLOB NOT NULL CHECK (length(model_hash) = 16),
  epoch INTEGER NOT NULL
) STRICT;
INSERT INTO head VALUES (1, 0, zeroblob(16), 0);

CREATE TABLE rounds (
  id INTEGER PRIMARY KEY CHECK (id >= 1),
  state TEXT NOT NULL CHECK (state IN ('open', 'closed', 'committed', 'aborted')),
  base_version INTEGER NOT NULL,
  opened_us INTEGER NOT NULL,
  closed_us INTEGER NOT NULL DEFAULT 0,
  settled_us INTEGER NOT NULL DEFAULT 0,
  updates INTEGER NOT NULL DEFAULT 0,
  train_us_max INTEGER NOT NULL DEFAULT 0,
  train_loss REAL,
  accuracy REAL,
  test_loss REAL
) STRICT;

CREATE TABLE clients (
  id INTEGER PRIMARY KEY CHECK (id >= 0),
  name TEXT NOT NULL UNIQUE CHECK (name <> ''),
  last_applied BLOB NOT NULL DEFAULT (zeroblob(16)) CHECK (length(last_applied) = 16),
  first_seen_us INTEGER NOT NULL,
  last_seen_us INTEGER NOT NULL,
  updates_applied INTEGER NOT NULL DEFAULT 0,
  updates_not_applied INTEGER NOT NULL DEFAULT 0,
  resets INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE updates (
  round INTEGER NOT NULL REFERENCES rounds (id),
  client INTEGER NOT NULL REFERENCES clients (id),
  update_id BLOB NOT NULL CHECK (length(update_id) = 16),
  prev_applied BLOB NOT NULL CHECK (length(prev_applied) = 16),
  content_hash BLOB NOT NULL CHECK (length(content_hash) = 16),
  payload_bytes INTEGER NOT NULL CHECK (payload_bytes >= 0),
  train_us INTEGER NOT NULL,
  loss REAL,
  PRIMARY KEY (round, client)
) STRICT, WITHOUT ROWID;

CREATE TABLE ledger (
  round INTEGER NOT NULL CHECK (round >= 0),
  client INTEGER NOT NULL REFERENCES clients (id),
  direction TEXT NOT NULL CHECK (direction IN ('up', 'down')),
  dense_bytes INTEGER NOT NULL CHECK (dense_bytes >= 0),
  payload_bytes INTEGER NOT NULL CHECK (payload_bytes >= 0),
  wire_bytes INTEGER NOT NULL CHECK (wire_bytes >= 0),
  PRIMARY KEY (round, client, direction)
) STRICT, WITHOUT ROWID;

CREATE TABLE events (
  id INTEGER PRIMARY KEY,
  time_us INTEGER NOT NULL,
  kind TEXT NOT NULL,
  round INTEGER NOT NULL,
  client INTEGER NOT NULL,
  detail TEXT NOT NULL
) STRICT;

CREATE TABLE downstream_log (
  version INTEGER PRIMARY KEY CHECK (version >= 1),
  model_hash BLOB NOT NULL CHECK (length(model_hash) = 16),
  message BLOB NOT NULL
) STRICT;

CREATE TABLE checkpoints (
  version INTEGER PRIMARY KEY CHECK (version >= 0),
  model_hash BLOB NOT NULL CHECK (length(model_hash) = 16),
  bytes INTEGER NOT NULL,
  damaged INTEGER NOT NULL DEFAULT 0 CHECK (damaged IN (0, 1))
) STRICT;
)sql";

// Every row gets a checksum, which SQLite keeps, and a run can be paused.
constexpr char kVersion2[] = R"sql(
CREATE TABLE runs_2 (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  lineage BLOB NOT NULL CHECK (length(lineage) = 16),
  config BLOB NOT NULL,
  parameters INTEGER NOT NULL CHECK (parameters >= 1),
  state TEXT NOT NULL CHECK (state IN ('active', 'paused', 'finished', 'stopped')),
  created_us INTEGER NOT NULL,
  reason TEXT NOT NULL DEFAULT '',
  checksum INTEGER NOT NULL AS (terse_checksum(
    id, name, lineage, config, parameters, state, created_us, reason)) STORED
) STRICT;
INSERT INTO runs_2 SELECT *, '' FROM runs;

CREATE TABLE head_2 (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  version INTEGER NOT NULL CHECK (version >= 0),
  model_hash BLOB NOT NULL CHECK (length(model_hash) = 16),
  epoch INTEGER NOT NULL,
  checksum INTEGER NOT NULL AS (terse_checksum(id, version, model_hash, epoch)) STORED
) STRICT;
INSERT INTO head_2 SELECT * FROM head;

CREATE TABLE rounds_2 (
  id INTEGER PRIMARY KEY CHECK (id >= 1),
  state TEXT NOT NULL CHECK (state IN ('open', 'closed', 'committed', 'aborted')),
  base_version INTEGER NOT NULL,
  opened_us INTEGER NOT NULL,
  closed_us INTEGER NOT NULL DEFAULT 0,
  settled_us INTEGER NOT NULL DEFAULT 0,
  updates INTEGER NOT NULL DEFAULT 0,
  train_us_max INTEGER NOT NULL DEFAULT 0,
  train_loss REAL,
  accuracy REAL,
  test_loss REAL,
  checksum INTEGER NOT NULL AS (terse_checksum(
    id, state, base_version, opened_us, closed_us, settled_us, updates, train_us_max, train_loss, accuracy,
    test_loss)) STORED
) STRICT;
INSERT INTO rounds_2 SELECT * FROM rounds;

CREATE TABLE clients_2 (
  id INTEGER PRIMARY KEY CHECK (id >= 0),
  name TEXT NOT NULL UNIQUE CHECK (name <> ''),
  last_applied BLOB NOT NULL DEFAULT (zeroblob(16)) CHECK (length(last_applied) = 16),
  first_seen_us INTEGER NOT NULL,
  last_seen_us INTEGER NOT NULL,
  updates_applied INTEGER NOT NULL DEFAULT 0,
  updates_not_applied INTEGER NOT NULL DEFAULT 0,
  resets INTEGER NOT NULL DEFAULT 0,
  samples INTEGER NOT NULL DEFAULT 0 CHECK (samples >= 0),
  reliability REAL NOT NULL DEFAULT 1,
  failures INTEGER NOT NULL DEFAULT 0,
  set_aside_until_us INTEGER NOT NULL DEFAULT 0,
  set_aside_reason TEXT NOT NULL DEFAULT '',
  checksum INTEGER NOT NULL AS (terse_checksum(
    id, name, last_applied, first_seen_us, last_seen_us, updates_applied, updates_not_applied, resets, samples,
    reliability, failures, set_aside_until_us, set_aside_reason)) STORED
) STRICT;
INSERT INTO clients_2 SELECT *, 0, 1, 0, 0, '' FROM clients;

CREATE TABLE updates_2 (
  round INTEGER NOT NULL REFERENCES rounds_2 (id),
  client INTEGER NOT NULL REFERENCES clients_2 (id),
  update_id BLOB NOT NULL CHECK (length(update_id) = 16),
  prev_applied BLOB NOT NULL CHECK (length(prev_applied) = 16),
  content_hash BLOB NOT NULL CHECK (length(content_hash) = 16),
  payload_bytes INTEGER NOT NULL CHECK (payload_bytes >= 0),
  train_us INTEGER NOT NULL,
  loss REAL,
  samples INTEGER NOT NULL DEFAULT 0 CHECK (samples >= 0),
  checksum INTEGER NOT NULL AS (terse_checksum(
    round, client, update_id, prev_applied, content_hash, payload_bytes, train_us, loss, samples)) STORED,
  PRIMARY KEY (round, client)
) STRICT, WITHOUT ROWID;
INSERT INTO updates_2 SELECT *, 0 FROM updates;

CREATE TABLE ledger_2 (
  round INTEGER NOT NULL CHECK (round >= 0),
  client INTEGER NOT NULL REFERENCES clients_2 (id),
  direction TEXT NOT NULL CHECK (direction IN ('up', 'down')),
  dense_bytes INTEGER NOT NULL CHECK (dense_bytes >= 0),
  payload_bytes INTEGER NOT NULL CHECK (payload_bytes >= 0),
  wire_bytes INTEGER NOT NULL CHECK (wire_bytes >= 0),
  checksum INTEGER NOT NULL AS (terse_checksum(
    round, client, direction, dense_bytes, payload_bytes, wire_bytes)) STORED,
  PRIMARY KEY (round, client, direction)
) STRICT, WITHOUT ROWID;
INSERT INTO ledger_2 SELECT * FROM ledger;

CREATE TABLE events_2 (
  id INTEGER PRIMARY KEY,
  time_us INTEGER NOT NULL,
  kind TEXT NOT NULL,
  round INTEGER NOT NULL,
  client INTEGER NOT NULL,
  detail TEXT NOT NULL,
  checksum INTEGER NOT NULL AS (terse_checksum(id, time_us, kind, round, client, detail)) STORED
) STRICT;
INSERT INTO events_2 SELECT * FROM events;

CREATE TABLE downstream_log_2 (
  version INTEGER PRIMARY KEY CHECK (version >= 1),
  model_hash BLOB NOT NULL CHECK (length(model_hash) = 16),
  message BLOB NOT NULL,
  checksum INTEGER NOT NULL AS (terse_checksum(version, model_hash, message)) STORED
) STRICT;
INSERT INTO downstream_log_2 SELECT * FROM downstream_log;

CREATE TABLE checkpoints_2 (
  version INTEGER PRIMARY KEY CHECK (version >= 0),
  model_hash BLOB NOT NULL CHECK (length(model_hash) = 16),
  bytes INTEGER NOT NULL,
  damaged INTEGER NOT NULL DEFAULT 0 CHECK (damaged IN (0, 1)),
  checksum INTEGER NOT NULL AS (terse_checksum(version, model_hash, bytes, damaged)) STORED
) STRICT;
INSERT INTO checkpoints_2 SELECT * FROM checkpoints;

DROP TABLE updates;
DROP TABLE ledger;
DROP TABLE runs;
DROP TABLE head;
DROP TABLE rounds;
DROP TABLE clients;
DROP TABLE events;
DROP TABLE downstream_log;
DROP TABLE checkpoints;
ALTER TABLE runs_2 RENAME TO runs;
ALTER TABLE head_2 RENAME TO head;
ALTER TABLE rounds_2 RENAME TO rounds;
ALTER TABLE clients_2 RENAME TO clients;
ALTER TABLE updates_2 RENAME TO updates;
ALTER TABLE ledger_2 RENAME TO ledger;
ALTER TABLE events_2 RENAME TO events;
ALTER TABLE downstream_log_2 RENAME TO downstream_log;
ALTER TABLE checkpoints_2 RENAME TO checkpoints;
)sql";

// More figures of an evaluation than a round's row has.
constexpr char kVersion3[] = R"sql(
CREATE TABLE scores (
  round INTEGER PRIMARY KEY REFERENCES rounds (id),
  top5 REAL,
  perplexity REAL,
  checksum INTEGER NOT NULL AS (terse_checksum(round, top5, perplexity)) STORED
) STRICT;
)sql";

// Version 4 stores the aggregates that a server with a state repeats after a restart, the files of that state beside
// checkpoints, and the hash of version 0.
constexpr char kVersion4[] = R"sql(
CREATE INDEX updates_by_id ON updates (update_id);

CREATE TABLE start (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  model_hash BLOB NOT NULL CHECK (length(model_hash) = 16),
  checksum INTEGER NOT NULL AS (terse_checksum(id, model_hash)) STORED
) STRICT;
INSERT INTO start SELECT 1, model_hash FROM checkpoints WHERE version = 0;

CREATE TABLE aggregates (
  version INTEGER PRIMARY KEY CHECK (version >= 1),
  message BLOB NOT NULL,
  checksum INTEGER NOT NULL AS (terse_checksum(version, message)) STORED
) STRICT;

CREATE TABLE server_states (
  version INTEGER PRIMARY KEY CHECK (version >= 0),
  bytes INTEGER NOT NULL CHECK (bytes >= 1),
  checksum INTEGER NOT NULL AS (terse_checksum(version, bytes)) STORED
) STRICT;
)sql";

// Version 5 stores the decisions of a run's controller.
constexpr char kVersion5[] = R"sql(
CREATE TABLE plans (
  round INTEGER PRIMARY KEY REFERENCES rounds (id),
  local_steps INTEGER NOT NULL CHECK (local_steps >= 1),
  choice INTEGER NOT NULL CHECK (choice BETWEEN 0 AND 255),
  first_iteration INTEGER NOT NULL CHECK (first_iteration >= 0),
  why TEXT NOT NULL,
  checksum INTEGER NOT NULL AS (terse_checksum(round, local_steps, choice, first_iteration, why)) STORED
) STRICT;
)sql";

// Version 6 stores the histories from which packed updates are unpacked.
constexpr char kVersion6[] = R"sql(
CREATE TABLE histories (
  client INTEGER PRIMARY KEY REFERENCES clients (id),
  messages INTEGER NOT NULL CHECK (messages >= 1),
  state BLOB NOT NULL,
  checksum INTEGER NOT NULL AS (terse_checksum(client, messages, state)) STORED
) STRICT;

CREATE TABLE history_log (
  client INTEGER NOT NULL REFERENCES clients (id),
  number INTEGER NOT NULL CHECK (number >= 1),
  message BLOB NOT NULL,
  checksum INTEGER NOT NULL AS (terse_checksum(client, number, message)) STORED,
  PRIMARY KEY (client, number)
) STRICT, WITHOUT ROWID;
)sql";

// Updates that a CLOSE refused.
constexpr char kVersion7[] = R"sql(
CREATE TABLE refused (
  update_id BLOB PRIMARY KEY CHECK (length(update_id) = 16),
  round INTEGER NOT NULL REFERENCES rounds (id),
  client INTEGER NOT NULL REFERENCES clients (id),
  reason TEXT NOT NULL,
  checksum INTEGER NOT NULL AS (terse_checksum(update_id, round, client, reason)) STORED
) STRICT, WITHOUT ROWID;
)sql";

// A run can be told to stop and not have ended yet.
constexpr char kVersion8[] = R"sql(
CREATE TABLE runs_8 (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  lineage BLOB NOT NULL CHECK (length(lineage) = 16),
  config BLOB NOT NULL,
  parameters INTEGER NOT NULL CHECK (parameters >= 1),
  state TEXT NOT NULL CHECK (state IN ('active', 'paused', 'stopping', 'finished', 'stopped')),
  created_us INTEGER NOT NULL,
  reason TEXT NOT NULL DEFAULT '',
  checksum INTEGER NOT NULL AS (terse_checksum(
    id, name, lineage, config, parameters, state, created_us, reason)) STORED
) STRICT;
INSERT INTO runs_8 SELECT id, name, lineage, config, parameters, state, created_us, reason FROM runs;
DROP TABLE runs;
ALTER TABLE runs_8 RENAME TO runs;
)sql";

// Sums that outlive the rows that they are made of, how many of those are kept, and up to which rows the database was
// verified.
constexpr char kVersion9[] = R"sql(
CREATE TABLE round_totals (
  round INTEGER PRIMARY KEY CHECK (round >= 1),
  update_bytes INTEGER NOT NULL DEFAULT 0,
  dense_up INTEGER NOT NULL DEFAULT 0,
  payload_up INTEGER NOT NULL DEFAULT 0,
  wire_up INTEGER NOT NULL DEFAULT 0,
  dense_down INTEGER NOT NULL DEFAULT 0,
  payload_down INTEGER NOT NULL DEFAULT 0,
  wire_down INTEGER NOT NULL DEFAULT 0,
  checksum INTEGER NOT NULL AS (terse_checksum(
    round, update_bytes, dense_up, payload_up, wire_up, dense_down, payload_down, wire_down)) STORED
) STRICT;
INSERT INTO round_totals SELECT round,
    COALESCE((SELECT SUM(u.payload_bytes) FROM updates u WHERE u.round = l.round), 0),
    COALESCE(SUM(dense_bytes) FILTER (WHERE direction = 'up'), 0),
    COALESCE(SUM(payload_bytes) FILTER (WHERE direction = 'up'), 0),
    COALESCE(SUM(wire_bytes) FILTER (WHERE direction = 'up'), 0),
    COALESCE(SUM(dense_bytes) FILTER (WHERE direction = 'down'), 0),
    COALESCE(SUM(payload_bytes) FILTER (WHERE direction = 'down'), 0),
    COALESCE(SUM(wire_bytes) FILTER (WHERE direction = 'down'), 0)
  FROM ledger l WHERE round >= 1 GROUP BY round;
INSERT INTO round_totals (round, update_bytes)
  SELECT round, SUM(payload_bytes) FROM updates WHERE round NOT IN (SELECT round FROM round_totals) GROUP BY round;

CREATE TABLE client_totals (
  client INTEGER PRIMARY KEY REFERENCES clients (id),
  dense_up INTEGER NOT NULL,
  payload_up INTEGER NOT NULL,
  wire_up INTEGER NOT NULL,
  dense_down INTEGER NOT NULL,
  payload_down INTEGER NOT NULL,
  wire_down INTEGER NOT NULL,
  checksum INTEGER NOT NULL AS (terse_checksum(
    client, dense_up, payload_up, wire_up, dense_down, payload_down, wire_down)) STORED
) STRICT;
INSERT INTO client_totals SELECT client,
    COALESCE(SUM(dense_bytes) FILTER (WHERE direction = 'up'), 0),
    COALESCE(SUM(payload_bytes) FILTER (WHERE direction = 'up'), 0),
    COALESCE(SUM(wire_bytes) FILTER (WHERE direction = 'up'), 0),
    COALESCE(SUM(dense_bytes) FILTER (WHERE direction = 'down'), 0),
    COALESCE(SUM(payload_bytes) FILTER (WHERE direction = 'down'), 0),
    COALESCE(SUM(wire_bytes) FILTER (WHERE direction = 'down'), 0)
  FROM ledger WHERE round >= 1 GROUP BY client;

CREATE TABLE retention (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  rounds INTEGER NOT NULL CHECK (rounds >= 0),
  events INTEGER NOT NULL CHECK (events >= 0),
  folded_round INTEGER NOT NULL CHECK (folded_round >= 0),
  checksum INTEGER NOT NULL AS (terse_checksum(id, rounds, events, folded_round)) STORED
) STRICT;
INSERT INTO retention VALUES (1, 0, 0, 0);

CREATE TABLE verified (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  round INTEGER NOT NULL CHECK (round >= 0),
  event INTEGER NOT NULL CHECK (event >= 0),
  version INTEGER NOT NULL CHECK (version >= 0),
  checksum INTEGER NOT NULL AS (terse_checksum(id, round, event, version)) STORED
) STRICT;
INSERT INTO verified VALUES (1, 0, 0, 0);
)sql";

// A step that was released never changes.
constexpr const char* kMigrations[] = {kVersion1, kVersion2, kVersion3, kVersion4, kVersion5,
                                       kVersion6, kVersion7, kVersion8, kVersion9};
static_assert(std::size(kMigrations) == kSchemaVersion);

absl::StatusOr<int64_t> UserVersion(SqliteDb& db) {
  Statement statement = db.Prepare("PRAGMA user_version");
  TERSE_ASSIGN_OR_RETURN(const bool row, statement.Step());
  return row ? statement.GetInt(0) : 0;
}

}  // namespace

absl::Status Migrate(SqliteDb& db, absl::Span<const char* const> steps) {
  TERSE_ASSIGN_OR_RETURN(const int64_t begin, UserVersion(db));
  const int64_t newest = static_cast<int64_t>(steps.size());
  if (begin < 0 || begin > newest) {
    return absl::FailedPreconditionError(absl::StrCat(db.path(), " has schema version ", begin,
                                                      " and this program knows versions up to ", newest,
                                                      "; use the program that wrote it, or a newer one"));
  }
  for (int64_t version = begin; version < newest; ++version) {
    TERSE_RETURN_IF_ERROR(db.InTransaction([&]() -> absl::Status {
      TERSE_RETURN_IF_ERROR(db.Script(steps[version]));
      return db.Script(absl::StrCat("PRAGMA user_version=", version + 1));
    }));
  }
  return absl::OkStatus();
}

absl::Status MigrateSchema(SqliteDb& db) { return Migrate(db, kMigrations); }

}  // namespace terse
