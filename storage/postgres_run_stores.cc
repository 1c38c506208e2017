#include "storage/postgres_run_stores.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "core/file_system.h"
#include "core/status.h"
#include "storage/postgres_db.h"
#include "storage/postgres_files.h"
#include "storage/postgres_lease.h"
#include "storage/postgres_run_store.h"
#include "storage/postgres_schema.h"
#include "storage/state_directory.h"

namespace terse {
namespace {

constexpr absl::string_view kSchemaPrefix = "terse_";
// No run's: it lacks the prefix.
constexpr char kRelaySchema[] = "terse-relay";
// PostgreSQL cuts off what is longer.
constexpr size_t kMostNameBytes = 63;

absl::StatusOr<std::string> SchemaOf(const std::string& directory) {
  std::string schema = absl::StrCat(kSchemaPrefix, std::filesystem::path(directory).filename().string());
  if (schema.size() <= kMostNameBytes) return schema;
  return absl::InvalidArgumentError(absl::StrCat("the name of the schema ", schema, " has ", schema.size(),
                                                 " bytes, and PostgreSQL takes ", kMostNameBytes,
                                                 "; give the run a shorter name"));
}

// For people, who may have several on one machine.
std::string ThisProcess() {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  return absl::StrCat(host, ", process ", getpid());
}

class PostgresStores final : public RunStores {
 public:
  PostgresStores(const std::string& address, std::string state_directory, std::string place, absl::Duration lease)
      : address_(address),
        state_directory_(std::move(state_directory)),
        place_(std::move(place)),
        lease_(address, ThisProcess(), lease) {}

  StoreLease* lease() override { return &lease_; }

  const std::string& place() const override { return place_; }

  absl::StatusOr<std::vector<HeldRun>> Held() override {
    TERSE_ASSIGN_OR_RETURN(const std::vector<std::string> names, Names());
    std::vector<HeldRun> held;
    for (const std::string& name : names) {
      if (!IsNotServed(name)) held.push_back({name, RunDirectory(state_directory_, name)});
    }
    return held;
  }

  absl::StatusOr<std::unique_ptr<RunStore>> Open(const std::string& directory) override {
    TERSE_ASSIGN_OR_RETURN(const std::string schema, SchemaOf(directory));
    return PostgresRunStore::Open(address_, schema, directory, PosixFiles(), MessageLimits(), &lease_);
  }

  absl::StatusOr<bool> HoldsUnfinishedRun(const std::string& directory) override {
    TERSE_ASSIGN_OR_RETURN(const std::string schema, SchemaOf(directory));
    TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<PostgresDb> db,
                           PostgresDb::Open(address_, schema, PostgresDb::Mode::kReader));
    Statement unfinished = db->Prepare("SELECT 1 FROM runs WHERE state NOT IN (?, ?)");
    return unfinished.Text(RunStateName(RunState::kFinished)).Text(RunStateName(RunState::kStopped)).Step();
  }

  // The schema's name decides which run there is; the directory only has copies.
  absl::Status Rename(const std::string& from, const std::string& to) override {
    TERSE_ASSIGN_OR_RETURN(const std::string schema, SchemaOf(from));
    TERSE_ASSIGN_OR_RETURN(const std::string renamed, SchemaOf(to));
    TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<PostgresDb> db, Connect());
    TERSE_RETURN_IF_ERROR(PosixFiles().Rename(from, to));
    const absl::Status status = Change(
        *db, absl::StrCat("ALTER SCHEMA ", PostgresDb::Quoted(schema), " RENAME TO ", PostgresDb::Quoted(renamed)));
    if (!status.ok()) PosixFiles().Rename(to, from).IgnoreError();
    return status;
  }

  absl::StatusOr<std::vector<std::string>> Deleted() override {
    TERSE_ASSIGN_OR_RETURN(std::vector<std::string> directories, DeletedDirectories(PosixFiles(), state_directory_));
    TERSE_ASSIGN_OR_RETURN(const std::vector<std::string> names, Names());
    for (const std::string& name : names) {
      const std::string directory = RunDirectory(state_directory_, name);
      const bool is_known = std::find(directories.begin(), directories.end(), directory) != directories.end();
      if (absl::EndsWith(name, kDeletedSuffix) && !is_known) directories.push_back(directory);
    }
    return directories;
  }

  absl::StatusOr<uint64_t> RemoveOutside(const std::string& directory) override {
    TERSE_ASSIGN_OR_RETURN(const std::string schema, SchemaOf(directory));
    TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<PostgresDb> db, Connect());
    uint64_t bytes = 0;
    {
      Statement size = db->Prepare(
          "SELECT CAST(COALESCE(SUM(pg_total_relation_size(c.oid)), 0) AS BIGINT) FROM pg_class c JOIN pg_namespace n "
          "ON n.oid = c.relnamespace WHERE CAST(n.nspname AS TEXT) = ? AND c.relkind = 'r'");
      TERSE_RETURN_IF_ERROR(size.Text(schema).Step().status());
      bytes = static_cast<uint64_t>(size.GetInt(0));
    }
    if (bytes == 0) return bytes;
    TERSE_RETURN_IF_ERROR(Change(*db, absl::StrCat("DROP SCHEMA IF EXISTS ", PostgresDb::Quoted(schema), " CASCADE")));
    return bytes;
  }

  // The directory's name is the same for all processes, wherever their state directories are.
  absl::StatusOr<UpstreamFiles> OpenUpstream() override {
    TERSE_ASSIGN_OR_RETURN(std::unique_ptr<PostgresFiles> files, PostgresFiles::Open(address_, kRelaySchema, &lease_));
    return UpstreamFiles{std::move(files), "upstream"};
  }

 private:
  // To the database, for what concerns no single run.
  absl::StatusOr<std::unique_ptr<PostgresDb>> Connect() const {
    return PostgresDb::Open(address_, "public", PostgresDb::Mode::kWriter);
  }

  // Runs a statement as the one that serves the runs.
  absl::Status Change(PostgresDb& db, const std::string& sql) const {
    return db.InTransaction([&]() -> absl::Status {
      TERSE_RETURN_IF_ERROR(lease_.CheckHeld(db));
      return db.Script(sql);
    });
  }

  // Those of all schemas that are a run's, with the endings of what is not served.
  absl::StatusOr<std::vector<std::string>> Names() const {
    TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<PostgresDb> db, Connect());
    std::vector<std::string> names;
    Statement rows =
        db->Prepare("SELECT CAST(nspname AS TEXT) FROM pg_namespace WHERE starts_with(nspname, ?) ORDER BY 1");
    rows.Text(kSchemaPrefix);
    while (true) {
      TERSE_ASSIGN_OR_RETURN(const bool row, rows.Step());
      if (!row) return names;
      names.emplace_back(absl::StripPrefix(rows.GetText(0), kSchemaPrefix));
    }
  }

  const std::string address_;
  const std::string state_directory_;
  const std::string place_;
  PostgresLease lease_;
};

std::string Owner(absl::string_view relay) {
  return relay.empty() ? "a coordinator" : absl::StrCat("the relay '", relay, "'");
}

// Makes the database that of this relay, or of a coordinator, unless it belongs to one already: an owner that is noted,
// or runs of a program that noted none, which was a coordinator. FAILED_PRECONDITION when that is another one.
absl::Status ClaimDatabase(PostgresDb& db, const std::string& relay) {
  TERSE_RETURN_IF_ERROR(LockMigrations(db));
  TERSE_RETURN_IF_ERROR(db.Script(
      "CREATE SCHEMA IF NOT EXISTS terse; CREATE TABLE IF NOT EXISTS terse.owner (id BIGINT PRIMARY KEY CHECK "
      "(id = 1), relay TEXT NOT NULL)"));
  TERSE_RETURN_IF_ERROR(
      db.Prepare("INSERT INTO terse.owner SELECT 1, CASE WHEN EXISTS (SELECT 1 FROM pg_namespace WHERE "
                 "starts_with(nspname, ?)) THEN '' ELSE ? END ON CONFLICT (id) DO NOTHING")
          .Text(kSchemaPrefix)
          .Text(relay)
          .Run());
  Statement row = db.Prepare("SELECT relay FROM terse.owner");
  TERSE_ASSIGN_OR_RETURN(const bool found, row.Step());
  const absl::string_view owner = found ? row.GetText(0) : absl::string_view();
  if (owner == relay) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(db.server(), " belongs to ", Owner(owner), ", and this is ", Owner(relay),
                   "; name another database with --store, because a coordinator and each relay need one of their own"));
}

// FAILED_PRECONDITION when the directory holds what nobody would look at.
absl::Status ExpectNothingIn(const std::string& state_directory) {
  TERSE_ASSIGN_OR_RETURN(const std::vector<std::string> own, ListRunNames(PosixFiles(), state_directory));
  if (!own.empty() || HoldsRun(PosixFiles(), state_directory)) {
    return absl::FailedPreconditionError(
        absl::StrCat(state_directory, " holds runs that are not in the store (", absl::StrJoin(own, ", "),
                     "), and nobody would serve them; name another directory with --state, or start without --store"));
  }
  const std::string upstream = UpstreamDirectory(state_directory);
  const absl::StatusOr<std::vector<std::string>> names = PosixFiles().List(upstream);
  if (absl::IsNotFound(names.status()) || (names.ok() && names->empty())) return absl::OkStatus();
  TERSE_RETURN_IF_ERROR(names.status());
  return absl::FailedPreconditionError(
      absl::StrCat(upstream,
                   " holds the state of a relay that is not in the store, and its residual would be lost; "
                   "name another directory with --state, or start without --store"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<RunStores>> RunsInPostgres(const std::string& address,
                                                          const std::string& state_directory, absl::Duration lease,
                                                          const std::string& relay) {
  TERSE_RETURN_IF_ERROR(ExpectNothingIn(state_directory));
  // A session of a store would be ended by who takes the lease just now.
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<PostgresDb> db,
                         PostgresDb::Open(address, "public", PostgresDb::Mode::kLease));
  TERSE_RETURN_IF_ERROR(db->InTransaction([&] { return ClaimDatabase(*db, relay); }));
  return std::make_unique<PostgresStores>(address, state_directory, db->server(), lease);
}

}  // namespace terse
