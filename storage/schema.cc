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

// Step i leads from version i to i + 1. A step that was released never changes.
constexpr const char* kMigrations[] = {kVersion1};
static_assert(std::size(kMigrations) == kSchemaVersion);

absl::StatusOr<int64_t> UserVersion(SqliteDb& db) {
  Statement statement = db.Prepare("PRAGMA user_version");
  TERSE_ASSIGN_OR_RETURN(const bool row, statement.Step());
  return row ? statement.GetInt(0) : 0;
}

}  // namespace

absl::Status MigrateSchema(SqliteDb& db) {
  TERSE_ASSIGN_OR_RETURN(int64_t version, UserVersion(db));
  if (version < 0 || version > kSchemaVersion) {
    return absl::FailedPreconditionError(absl::StrCat(db.path(), " has schema version ", version,
                                                      " and this program knows versions up to ", kSchemaVersion,
                                                      "; use the program that wrote it, or a newer one"));
  }
  for (; version < kSchemaVersion; ++version) {
    TERSE_RETURN_IF_ERROR(db.InTransaction([&]() -> absl::Status {
      TERSE_RETURN_IF_ERROR(db.Script(kMigrations[version]));
      return db.Script(absl::StrCat("PRAGMA user_version=", version + 1));
    }));
  }
  return absl::OkStatus();
}

}  // namespace terse
