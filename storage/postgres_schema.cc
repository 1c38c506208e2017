#include "storage/postgres_schema.h"

#include <iterator>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "storage/schema.h"

namespace terse {
namespace {

// The tables of SQLite's version 12, without checksums: PostgreSQL has its own, of every page. Messages that are too
// large for a row, and the numbers of checkpoints, are in chunks. Updates refer to rounds and clients without a
// constraint, because each would be looked up for itself: the CLOSE that inserts them knows its round, and looks for
// their clients in one statement. Each commit changes a row of every client that it chose: a page of `clients` has room
// for the new ones, so that no index changes.
constexpr char kVersion12[] = R"sql(
CREATE TABLE runs (
  id BIGINT PRIMARY KEY,
  name TEXT NOT NULL,
  lineage BYTEA NOT NULL CHECK (length(lineage) = 16),
  config BYTEA NOT NULL,
  parameters BIGINT NOT NULL CHECK (parameters >= 1),
  state TEXT NOT NULL CHECK (state IN ('active', 'paused', 'stopping', 'finished', 'stopped')),
  created_us BIGINT NOT NULL,
  reason TEXT NOT NULL DEFAULT ''
);
CREATE TABLE head (
  id BIGINT PRIMARY KEY CHECK (id = 1),
  version BIGINT NOT NULL CHECK (version >= 0),
  model_hash BYTEA NOT NULL CHECK (length(model_hash) = 16),
  epoch BIGINT NOT NULL
);
INSERT INTO head VALUES (1, 0, decode('00000000000000000000000000000000', 'hex'), 0);
CREATE TABLE start (
  id BIGINT PRIMARY KEY CHECK (id = 1),
  model_hash BYTEA NOT NULL CHECK (length(model_hash) = 16)
);
CREATE TABLE rounds (
  id BIGINT PRIMARY KEY CHECK (id >= 1),
  state TEXT NOT NULL CHECK (state IN ('open', 'closed', 'committed', 'aborted')),
  base_version BIGINT NOT NULL,
  opened_us BIGINT NOT NULL,
  closed_us BIGINT NOT NULL DEFAULT 0,
  settled_us BIGINT NOT NULL DEFAULT 0,
  updates BIGINT NOT NULL DEFAULT 0,
  train_us_max BIGINT NOT NULL DEFAULT 0,
  train_loss DOUBLE PRECISION,
  accuracy DOUBLE PRECISION,
  test_loss DOUBLE PRECISION
);
CREATE TABLE clients (
  id BIGINT PRIMARY KEY CHECK (id >= 0),
  name TEXT NOT NULL UNIQUE CHECK (name <> ''),
  last_applied BYTEA NOT NULL DEFAULT decode('00000000000000000000000000000000', 'hex')
    CHECK (length(last_applied) = 16),
  first_seen_us BIGINT NOT NULL,
  last_seen_us BIGINT NOT NULL,
  updates_applied BIGINT NOT NULL DEFAULT 0,
  updates_not_applied BIGINT NOT NULL DEFAULT 0,
  resets BIGINT NOT NULL DEFAULT 0,
  samples BIGINT NOT NULL DEFAULT 0 CHECK (samples >= 0),
  reliability DOUBLE PRECISION NOT NULL DEFAULT 1,
  failures BIGINT NOT NULL DEFAULT 0,
  set_aside_until_us BIGINT NOT NULL DEFAULT 0,
  set_aside_reason TEXT NOT NULL DEFAULT ''
) WITH (fillfactor = 45);
CREATE TABLE updates (
  round BIGINT NOT NULL,
  client BIGINT NOT NULL,
  update_id BYTEA NOT NULL CHECK (length(update_id) = 16),
  prev_applied BYTEA NOT NULL CHECK (length(prev_applied) = 16),
  content_hash BYTEA NOT NULL CHECK (length(content_hash) = 16),
  payload_bytes BIGINT NOT NULL CHECK (payload_bytes >= 0),
  train_us BIGINT NOT NULL,
  loss DOUBLE PRECISION,
  samples BIGINT NOT NULL DEFAULT 0 CHECK (samples >= 0),
  PRIMARY KEY (round, client)
);
CREATE TABLE first_updates (
  update_id BYTEA PRIMARY KEY CHECK (length(update_id) = 16),
  round BIGINT NOT NULL,
  client BIGINT NOT NULL
);
CREATE TABLE refused (
  update_id BYTEA PRIMARY KEY CHECK (length(update_id) = 16),
  round BIGINT NOT NULL REFERENCES rounds (id),
  client BIGINT NOT NULL REFERENCES clients (id),
  reason TEXT NOT NULL
);
CREATE TABLE scores (
  round BIGINT PRIMARY KEY REFERENCES rounds (id),
  top5 DOUBLE PRECISION,
  perplexity DOUBLE PRECISION
);
CREATE TABLE plans (
  round BIGINT PRIMARY KEY REFERENCES rounds (id),
  local_steps BIGINT NOT NULL CHECK (local_steps >= 1),
  choice BIGINT NOT NULL CHECK (choice BETWEEN 0 AND 255),
  first_iteration BIGINT NOT NULL CHECK (first_iteration >= 0),
  why TEXT NOT NULL
);
CREATE TABLE metrics (
  round BIGINT NOT NULL REFERENCES rounds (id),
  kind BIGINT NOT NULL CHECK (kind BETWEEN 1 AND 3),
  name TEXT NOT NULL,
  mean DOUBLE PRECISION NOT NULL,
  clients BIGINT NOT NULL CHECK (clients >= 0),
  samples BIGINT NOT NULL CHECK (samples >= 1),
  PRIMARY KEY (round, kind, name)
);
CREATE TABLE update_metrics (
  round BIGINT NOT NULL REFERENCES rounds (id),
  client BIGINT NOT NULL REFERENCES clients (id),
  metrics BYTEA NOT NULL,
  PRIMARY KEY (round, client)
);
CREATE TABLE round_totals (
  round BIGINT PRIMARY KEY CHECK (round >= 1),
  update_bytes BIGINT NOT NULL DEFAULT 0,
  dense_up BIGINT NOT NULL DEFAULT 0,
  payload_up BIGINT NOT NULL DEFAULT 0,
  wire_up BIGINT NOT NULL DEFAULT 0,
  dense_down BIGINT NOT NULL DEFAULT 0,
  payload_down BIGINT NOT NULL DEFAULT 0,
  wire_down BIGINT NOT NULL DEFAULT 0
);
CREATE TABLE client_totals (
  block BIGINT PRIMARY KEY CHECK (block >= 0),
  sums BYTEA NOT NULL
);
CREATE TABLE ledger (
  id BIGINT PRIMARY KEY,
  round BIGINT NOT NULL CHECK (round >= 0),
  sums BYTEA NOT NULL
);
CREATE INDEX ledger_by_round ON ledger (round);
CREATE TABLE events (
  id BIGINT PRIMARY KEY,
  time_us BIGINT NOT NULL,
  kind TEXT NOT NULL,
  round BIGINT NOT NULL,
  client BIGINT NOT NULL,
  detail TEXT NOT NULL
);
CREATE TABLE downstream_log (
  version BIGINT PRIMARY KEY CHECK (version >= 1),
  model_hash BYTEA NOT NULL CHECK (length(model_hash) = 16),
  segment BIGINT CHECK (segment >= 1),
  "offset" BIGINT CHECK ("offset" >= 0),
  length BIGINT CHECK (length >= 1),
  hash BYTEA CHECK (length(hash) = 16),
  message BYTEA,
  CHECK (num_nulls(segment, "offset", length, hash) = CASE WHEN message IS NULL THEN 0 ELSE 4 END)
);
CREATE TABLE aggregates (
  version BIGINT PRIMARY KEY CHECK (version >= 1),
  segment BIGINT CHECK (segment >= 1),
  "offset" BIGINT CHECK ("offset" >= 0),
  length BIGINT CHECK (length >= 1),
  hash BYTEA CHECK (length(hash) = 16),
  message BYTEA,
  CHECK (num_nulls(segment, "offset", length, hash) = CASE WHEN message IS NULL THEN 0 ELSE 4 END)
);
CREATE TABLE message_chunks (
  segment BIGINT NOT NULL CHECK (segment >= 1),
  chunk BIGINT NOT NULL CHECK (chunk >= 0),
  bytes BYTEA NOT NULL,
  PRIMARY KEY (segment, chunk)
);
CREATE TABLE checkpoints (
  version BIGINT PRIMARY KEY CHECK (version >= 0),
  model_hash BYTEA NOT NULL CHECK (length(model_hash) = 16),
  bytes BIGINT NOT NULL,
  damaged BIGINT NOT NULL DEFAULT 0 CHECK (damaged IN (0, 1))
);
CREATE TABLE server_states (
  version BIGINT PRIMARY KEY CHECK (version >= 0),
  bytes BIGINT NOT NULL CHECK (bytes >= 1)
);
CREATE TABLE checkpoint_chunks (
  version BIGINT NOT NULL CHECK (version >= 0),
  part BIGINT NOT NULL CHECK (part IN (0, 1)),
  chunk BIGINT NOT NULL CHECK (chunk >= 0),
  bytes BYTEA NOT NULL,
  PRIMARY KEY (version, part, chunk)
);
CREATE TABLE files (
  name TEXT PRIMARY KEY,
  bytes BIGINT NOT NULL CHECK (bytes >= 1)
);
CREATE TABLE file_chunks (
  name TEXT NOT NULL,
  chunk BIGINT NOT NULL CHECK (chunk >= 0),
  bytes BYTEA NOT NULL,
  PRIMARY KEY (name, chunk)
);
CREATE TABLE histories (
  client BIGINT PRIMARY KEY REFERENCES clients (id),
  messages BIGINT NOT NULL CHECK (messages >= 1),
  state BYTEA NOT NULL
);
CREATE TABLE history_log (
  client BIGINT NOT NULL REFERENCES clients (id),
  number BIGINT NOT NULL CHECK (number >= 1),
  message BYTEA NOT NULL,
  PRIMARY KEY (client, number)
);
CREATE TABLE retention (
  id BIGINT PRIMARY KEY CHECK (id = 1),
  rounds BIGINT NOT NULL CHECK (rounds >= 0),
  events BIGINT NOT NULL CHECK (events >= 0),
  folded_round BIGINT NOT NULL CHECK (folded_round >= 0)
);
INSERT INTO retention VALUES (1, 0, 0, 0);
)sql";

// Version 13 stores what a relay was told of the run above it.
constexpr char kVersion13[] = R"sql(
CREATE TABLE relay (
  id BIGINT PRIMARY KEY CHECK (id = 1),
  facts BYTEA NOT NULL CHECK (length(facts) > 0)
);
)sql";

// Version 14 stores what relays say of the trees below them.
constexpr char kVersion14[] = R"sql(
CREATE TABLE below (
  client BIGINT PRIMARY KEY REFERENCES clients (id),
  clients BIGINT NOT NULL CHECK (clients >= 0),
  payload_up BIGINT NOT NULL CHECK (payload_up >= 0),
  wire_up BIGINT NOT NULL CHECK (wire_up >= 0),
  payload_down BIGINT NOT NULL CHECK (payload_down >= 0),
  wire_down BIGINT NOT NULL CHECK (wire_down >= 0)
);
)sql";

// The steps from the first version that PostgreSQL had. A step that was released never changes.
constexpr int kFirstVersion = 12;
constexpr const char* kSteps[] = {kVersion12, kVersion13, kVersion14};
static_assert(kFirstVersion + std::size(kSteps) - 1 == kSchemaVersion);

// This program's number among the advisory locks of the database ("TERSE").
constexpr int64_t kMigrationLock = 0x5445525345;

absl::Status ApplySteps(PostgresDb& db) {
  Statement row = db.Prepare("SELECT version FROM schema_version");
  TERSE_ASSIGN_OR_RETURN(const bool found, row.Step());
  int64_t version = found ? row.GetInt(0) : kFirstVersion - 1;
  if (version < kFirstVersion - 1 || version > kSchemaVersion) {
    return absl::FailedPreconditionError(absl::StrCat(db.place(), " has schema version ", version,
                                                      " and this program knows versions up to ", kSchemaVersion,
                                                      "; use the program that wrote it, or a newer one"));
  }
  if (version == kSchemaVersion) return absl::OkStatus();
  for (; version < kSchemaVersion; ++version) {
    TERSE_RETURN_IF_ERROR(db.Script(kSteps[version + 1 - kFirstVersion]));
  }
  return db
      .Prepare(
          "INSERT INTO schema_version (id, version) VALUES (1, ?) "
          "ON CONFLICT (id) DO UPDATE SET version = excluded.version")
      .Int(kSchemaVersion)
      .Run();
}

}  // namespace

absl::Status LockMigrations(PostgresDb& db) {
  Statement lock = db.Prepare("SELECT 1 FROM (SELECT pg_advisory_xact_lock(?)) AS locked");
  return lock.Int(kMigrationLock).Step().status();
}

absl::Status MigratePostgres(PostgresDb& db) {
  return db.InTransaction([&]() -> absl::Status {
    TERSE_RETURN_IF_ERROR(LockMigrations(db));
    TERSE_RETURN_IF_ERROR(db.Script(absl::StrCat("CREATE SCHEMA IF NOT EXISTS ", PostgresDb::Quoted(db.schema()),
                                                 "; CREATE TABLE IF NOT EXISTS schema_version (id BIGINT PRIMARY KEY "
                                                 "CHECK (id = 1), version BIGINT NOT NULL)")));
    return ApplySteps(db);
  });
}

}  // namespace terse
