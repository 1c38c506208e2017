// The steps from the third on: each adds to the tables, or makes one anew.
#include "storage/migrations.h"

#include "core/status.h"
#include "storage/client_sums.h"
#include "storage/ledger_rows.h"

namespace terse {

// More figures of an evaluation than a round's row has.
const char kVersion3[] = R"sql(
CREATE TABLE scores (
  round INTEGER PRIMARY KEY REFERENCES rounds (id),
  top5 REAL,
  perplexity REAL,
  checksum INTEGER NOT NULL AS (terse_checksum(round, top5, perplexity)) STORED
) STRICT;
)sql";

// Version 4 stores the aggregates that a server with a state repeats after a restart, the files of that state beside
// checkpoints, and the hash of version 0.
const char kVersion4[] = R"sql(
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
const char kVersion5[] = R"sql(
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
const char kVersion6[] = R"sql(
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
const char kVersion7[] = R"sql(
CREATE TABLE refused (
  update_id BLOB PRIMARY KEY CHECK (length(update_id) = 16),
  round INTEGER NOT NULL REFERENCES rounds (id),
  client INTEGER NOT NULL REFERENCES clients (id),
  reason TEXT NOT NULL,
  checksum INTEGER NOT NULL AS (terse_checksum(update_id, round, client, reason)) STORED
) STRICT, WITHOUT ROWID;
)sql";

// A run can be told to stop and not have ended yet.
const char kVersion8[] = R"sql(
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
const char kVersion9[] = R"sql(
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

// Large messages stand in segment files, and their rows name the place. What is small comes first in a row, so that a
// look for the segments that are named reads no message.
const char kVersion10[] = R"sql(
CREATE TABLE downstream_log_10 (
  version INTEGER PRIMARY KEY CHECK (version >= 1),
  model_hash BLOB NOT NULL CHECK (length(model_hash) = 16),
  segment INTEGER CHECK (segment >= 1),
  offset INTEGER CHECK (offset >= 0),
  length INTEGER CHECK (length >= 1),
  hash BLOB CHECK (length(hash) = 16),
  message BLOB,
  checksum INTEGER NOT NULL AS (terse_checksum(
    version, model_hash, segment, offset, length, hash, message)) STORED,
  CHECK ((segment IS NULL) + (offset IS NULL) + (length IS NULL) + (hash IS NULL) = 4 * (message IS NOT NULL))
) STRICT;
INSERT INTO downstream_log_10 (version, model_hash, message) SELECT version, model_hash, message FROM downstream_log;
DROP TABLE downstream_log;
ALTER TABLE downstream_log_10 RENAME TO downstream_log;

CREATE TABLE aggregates_10 (
  version INTEGER PRIMARY KEY CHECK (version >= 1),
  segment INTEGER CHECK (segment >= 1),
  offset INTEGER CHECK (offset >= 0),
  length INTEGER CHECK (length >= 1),
  hash BLOB CHECK (length(hash) = 16),
  message BLOB,
  checksum INTEGER NOT NULL AS (terse_checksum(version, segment, offset, length, hash, message)) STORED,
  CHECK ((segment IS NULL) + (offset IS NULL) + (length IS NULL) + (hash IS NULL) = 4 * (message IS NOT NULL))
) STRICT;
INSERT INTO aggregates_10 (version, message) SELECT version, message FROM aggregates;
DROP TABLE aggregates;
ALTER TABLE aggregates_10 RENAME TO aggregates;
)sql";

// The bytes of a round's clients, and the totals of a block of clients, are one row each; PackBytes fills these tables
// from the ones before. No index holds every update's id, because in a large fleet each commit would change most of its
// pages: a table has those of the first update of each client.
const char kVersion11[] = R"sql(
ALTER TABLE ledger RENAME TO ledger_10;
CREATE TABLE ledger (
  id INTEGER PRIMARY KEY,
  round INTEGER NOT NULL CHECK (round >= 0),
  sums BLOB NOT NULL,
  checksum INTEGER NOT NULL AS (terse_checksum(id, round, sums)) STORED
) STRICT;
CREATE INDEX ledger_by_round ON ledger (round);

ALTER TABLE client_totals RENAME TO client_totals_10;
CREATE TABLE client_totals (
  block INTEGER PRIMARY KEY CHECK (block >= 0),
  sums BLOB NOT NULL,
  checksum INTEGER NOT NULL AS (terse_checksum(block, sums)) STORED
) STRICT;

CREATE TABLE first_updates (
  update_id BLOB PRIMARY KEY CHECK (length(update_id) = 16),
  round INTEGER NOT NULL REFERENCES rounds (id),
  client INTEGER NOT NULL REFERENCES clients (id),
  checksum INTEGER NOT NULL AS (terse_checksum(update_id, round, client)) STORED
) STRICT, WITHOUT ROWID;
INSERT OR REPLACE INTO first_updates
  SELECT update_id, round, client FROM updates WHERE prev_applied = zeroblob(16) ORDER BY round;
DELETE FROM updates WHERE round <= (SELECT folded_round FROM retention);
DROP INDEX updates_by_id;
)sql";

// Metrics by name: of a round, and of each update that it chose.
const char kVersion12[] = R"sql(
CREATE TABLE metrics (
  round INTEGER NOT NULL REFERENCES rounds (id),
  kind INTEGER NOT NULL CHECK (kind BETWEEN 1 AND 3),
  name TEXT NOT NULL,
  mean REAL NOT NULL,
  clients INTEGER NOT NULL CHECK (clients >= 0),
  samples INTEGER NOT NULL CHECK (samples >= 1),
  checksum INTEGER NOT NULL AS (terse_checksum(round, kind, name, mean, clients, samples)) STORED,
  PRIMARY KEY (round, kind, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE update_metrics (
  round INTEGER NOT NULL REFERENCES rounds (id),
  client INTEGER NOT NULL REFERENCES clients (id),
  metrics BLOB NOT NULL,
  checksum INTEGER NOT NULL AS (terse_checksum(round, client, metrics)) STORED,
  PRIMARY KEY (round, client)
) STRICT, WITHOUT ROWID;
)sql";

// Version 13 stores what a relay was told of the run above it.
const char kVersion13[] = R"sql(
CREATE TABLE relay (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  facts BLOB NOT NULL CHECK (length(facts) > 0),
  checksum INTEGER NOT NULL AS (terse_checksum(id, facts)) STORED
) STRICT;
)sql";

// Version 14 stores what relays say of the trees below them.
const char kVersion14[] = R"sql(
CREATE TABLE below (
  client INTEGER PRIMARY KEY REFERENCES clients (id),
  clients INTEGER NOT NULL CHECK (clients >= 0),
  payload_up INTEGER NOT NULL CHECK (payload_up >= 0),
  wire_up INTEGER NOT NULL CHECK (wire_up >= 0),
  payload_down INTEGER NOT NULL CHECK (payload_down >= 0),
  wire_down INTEGER NOT NULL CHECK (wire_down >= 0),
  checksum INTEGER NOT NULL
    AS (terse_checksum(client, clients, payload_up, wire_up, payload_down, wire_down)) STORED
) STRICT;
)sql";

namespace {

absl::Status PackLedger(SqliteDb& db) {
  Statement rows = db.Prepare(
      "SELECT round, client, direction = 'up', dense_bytes, payload_bytes, wire_bytes FROM ledger_10 ORDER BY round");
  int64_t round = -1;
  ClientSums sums;
  while (true) {
    TERSE_ASSIGN_OR_RETURN(const bool row, rows.Step());
    if (!sums.empty() && (!row || rows.GetInt(0) != round)) {
      TERSE_RETURN_IF_ERROR(run_store_internal::InsertLedgerRow(db, round, sums));
      sums.clear();
    }
    if (!row) return absl::OkStatus();
    round = rows.GetInt(0);
    const Direction direction = rows.GetInt(2) != 0 ? Direction::kUp : Direction::kDown;
    sums[rows.GetInt(1)].Add(
        LedgerEntry{round, rows.GetInt(1), direction, rows.GetInt(3), rows.GetInt(4), rows.GetInt(5), ""});
  }
}

absl::Status PackTotals(SqliteDb& db) {
  ClientSums sums;
  Statement rows = db.Prepare(
      "SELECT client, dense_up, payload_up, wire_up, dense_down, payload_down, wire_down FROM client_totals_10");
  while (true) {
    TERSE_ASSIGN_OR_RETURN(const bool row, rows.Step());
    if (!row) return run_store_internal::AddClientTotals(db, sums);
    sums[rows.GetInt(0)] = {rows.GetInt(1), rows.GetInt(2), rows.GetInt(3),
                            rows.GetInt(4), rows.GetInt(5), rows.GetInt(6)};
  }
}

}  // namespace

absl::Status PackBytes(SqliteDb& db) {
  TERSE_RETURN_IF_ERROR(PackLedger(db));
  TERSE_RETURN_IF_ERROR(PackTotals(db));
  return db.Script("DROP TABLE ledger_10; DROP TABLE client_totals_10");
}

}  // namespace terse
