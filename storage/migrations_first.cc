// The tables of the first release, and of the one that gave every row a checksum.
#include "storage/migrations.h"

namespace terse {

const char kVersion1[] = R"sql(
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
const char kVersion2[] = R"sql(
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

}  // namespace terse
