#include "storage/postgres_files.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/status.h"
#include "storage/postgres_blobs.h"
#include "storage/postgres_schema.h"

namespace terse {
namespace {

// A file has at least the chunk 0, which may be empty.
constexpr char kTables[] =
    "CREATE TABLE IF NOT EXISTS writer (id BIGINT PRIMARY KEY CHECK (id = 1), process BYTEA NOT NULL CHECK "
    "(length(process) = 16), changes BIGINT NOT NULL CHECK (changes >= 0)); "
    "CREATE TABLE IF NOT EXISTS file_chunks (name TEXT NOT NULL, chunk BIGINT NOT NULL CHECK (chunk >= 0), bytes BYTEA "
    "NOT NULL, PRIMARY KEY (name, chunk))";

// Between two attempts to reach the server.
constexpr absl::Duration kPause = absl::Milliseconds(100);

absl::Status NoFile(const SqlDb& db) { return absl::NotFoundError(absl::StrCat(db.place(), " has no such file")); }

absl::Status RemoveFile(SqlDb& db, absl::string_view path) {
  return db.Prepare("DELETE FROM file_chunks WHERE name = ?").Text(path).Run();
}

// The file's size. NOT_FOUND when there is none.
absl::StatusOr<int64_t> SizeOf(SqlDb& db, absl::string_view path) {
  Statement row = db.Prepare("SELECT COUNT(*), COALESCE(SUM(length(bytes)), 0) FROM file_chunks WHERE name = ?");
  TERSE_RETURN_IF_ERROR(row.Text(path).Step().status());
  if (row.GetInt(0) == 0) return NoFile(db);
  return row.GetInt(1);
}

// The bytes from `begin` to `end`, which the file has.
absl::StatusOr<std::string> BytesBetween(SqlDb& db, absl::string_view path, int64_t begin, int64_t end) {
  std::string bytes;
  for (int64_t at = begin; at < end;) {
    Statement row = db.Prepare("SELECT bytes FROM file_chunks WHERE name = ? AND chunk = ?");
    TERSE_ASSIGN_OR_RETURN(const bool found, row.Text(path).Int(at / kChunkBytes).Step());
    const absl::string_view chunk = found ? row.GetBlob(0) : absl::string_view();
    const int64_t chunk_begin = at / kChunkBytes * kChunkBytes;
    const int64_t part_end = std::min(end, chunk_begin + kChunkBytes);
    if (static_cast<int64_t>(chunk.size()) < part_end - chunk_begin) {
      return absl::DataLossError(absl::StrCat(db.place(), " lacks chunk ", at / kChunkBytes, db.remedy()));
    }
    const absl::string_view part =
        chunk.substr(static_cast<size_t>(at - chunk_begin), static_cast<size_t>(part_end - at));
    bytes.append(part.data(), part.size());
    at = part_end;
  }
  return bytes;
}

class OpeningIsTheLock final : public DirectoryLock {};

}  // namespace

class PostgresFiles::BufferedFile final : public WritableFile {
 public:
  BufferedFile(PostgresFiles* files, std::string path) : files_(files), path_(std::move(path)) {}

  absl::Status Append(absl::string_view bytes) override {
    absl::StrAppend(&bytes_, bytes);
    return absl::OkStatus();
  }
  absl::Status Sync() override { return files_->Write(path_, bytes_); }

 private:
  PostgresFiles* const files_;
  const std::string path_;
  std::string bytes_;
};

PostgresFiles::PostgresFiles(std::string address, std::string schema, Id128 writer, absl::Duration patience)
    : address_(std::move(address)), schema_(std::move(schema)), writer_(writer), patience_(patience) {}

absl::StatusOr<std::unique_ptr<PostgresFiles>> PostgresFiles::Open(const std::string& address,
                                                                   const std::string& schema,
                                                                   const PostgresLease* lease,
                                                                   absl::Duration patience) {
  std::unique_ptr<PostgresFiles> files(new PostgresFiles(address, schema, Id128::Random(), patience));
  TERSE_ASSIGN_OR_RETURN(std::unique_ptr<PostgresDb> db, PostgresDb::Open(address, schema, PostgresDb::Mode::kWriter));
  TERSE_RETURN_IF_ERROR(db->InTransaction([&]() -> absl::Status {
    TERSE_RETURN_IF_ERROR(LockMigrations(*db));
    TERSE_RETURN_IF_ERROR(
        db->Script(absl::StrCat("CREATE SCHEMA IF NOT EXISTS ", PostgresDb::Quoted(schema), "; ", kTables)));
    if (lease != nullptr) TERSE_RETURN_IF_ERROR(lease->CheckHeld(*db));
    // Waits for a transaction of the writer before, which nobody can begin any more when this is committed.
    return db
        ->Prepare(
            "INSERT INTO writer VALUES (1, ?, 0) ON CONFLICT (id) DO UPDATE SET process = excluded.process, changes = "
            "0")
        .Id(files->writer_)
        .Run();
  }));
  absl::MutexLock lock(&files->mutex_);
  files->db_ = std::move(db);
  return files;
}

absl::StatusOr<int64_t> PostgresFiles::NewestChange(const char* locking) const {
  Statement row = db_->Prepare(absl::StrCat("SELECT process, changes FROM writer", locking));
  TERSE_ASSIGN_OR_RETURN(const bool found, row.Step());
  if (found && row.GetId(0) == writer_) return row.GetInt(1);
  return absl::FailedPreconditionError(
      absl::StrCat(db_->place(), " was taken over by another process; stop one of the two"));
}

absl::Status PostgresFiles::Patiently(absl::FunctionRef<absl::Status()> work) {
  const absl::Time end = absl::Now() + patience_;
  while (true) {
    // An attempt that begins late is the last one. One that only ends late is followed by another: it may have waited
    // in a transaction, or in a process that was stopped.
    const bool is_last = absl::Now() >= end;
    absl::Status status;
    if (db_ == nullptr) {
      absl::StatusOr<std::unique_ptr<PostgresDb>> db = PostgresDb::Open(address_, schema_, PostgresDb::Mode::kWriter);
      status = db.status();
      if (status.ok()) db_ = *std::move(db);
    }
    if (status.ok()) status = work();
    if (!absl::IsUnavailable(status)) return status;
    db_ = nullptr;
    if (is_last) return status;
    absl::SleepFor(kPause);
  }
}

absl::Status PostgresFiles::Change(absl::FunctionRef<absl::Status(SqlDb&)> body) {
  absl::MutexLock lock(&mutex_);
  const int64_t number = changes_ + 1;
  bool in_doubt = false;
  const auto attempt = [&]() -> absl::Status {
    mutex_.AssertHeld();
    // Behind the row's lock there is no earlier attempt of which a COMMIT could still arrive.
    TERSE_ASSIGN_OR_RETURN(const int64_t newest, NewestChange(" FOR UPDATE"));
    if (newest == number) return absl::OkStatus();
    in_doubt = false;
    if (newest != changes_) {
      return absl::FailedPreconditionError(
          absl::StrCat(db_->place(), " has change ", newest, " for the newest, and ", changes_,
                       " was made: the server is another one, which lacks the rest; start again with what it has"));
    }
    TERSE_RETURN_IF_ERROR(body(*db_));
    TERSE_RETURN_IF_ERROR(db_->Prepare("UPDATE writer SET changes = ?").Int(number).Run());
    in_doubt = true;
    return absl::OkStatus();
  };
  const absl::Status status = Patiently([&] {
    mutex_.AssertHeld();
    return db_->InTransaction(attempt);
  });
  if (status.ok()) changes_ = number;
  if (!in_doubt || !absl::IsUnavailable(status)) return status;
  return absl::UnknownError(absl::StrCat(status.message(), "; whether the newest change was made is not known"));
}

absl::Status PostgresFiles::Look(absl::FunctionRef<absl::Status(SqlDb&)> body) {
  absl::MutexLock lock(&mutex_);
  return Patiently([&]() -> absl::Status {
    mutex_.AssertHeld();
    TERSE_RETURN_IF_ERROR(db_->BeginReading());
    absl::Status status = NewestChange("").status();
    if (status.ok()) status = body(*db_);
    const absl::Status end = db_->EndReading();
    return status.ok() ? end : status;
  });
}

absl::StatusOr<std::unique_ptr<WritableFile>> PostgresFiles::Create(const std::string& path) {
  return std::make_unique<BufferedFile>(this, path);
}

absl::Status PostgresFiles::Write(const std::string& path, absl::string_view bytes) {
  const absl::Status written = Change([&](SqlDb& db) -> absl::Status {
    TERSE_RETURN_IF_ERROR(RemoveFile(db, path));
    int64_t chunk = 0;
    do {
      TERSE_RETURN_IF_ERROR(db.Prepare("INSERT INTO file_chunks (name, chunk, bytes) VALUES (?, ?, ?)")
                                .Text(path)
                                .Int(chunk)
                                .Blob(bytes.substr(static_cast<size_t>(chunk * kChunkBytes), kChunkBytes))
                                .Run());
    } while (++chunk * kChunkBytes < static_cast<int64_t>(bytes.size()));
    return absl::OkStatus();
  });
  return Annotate(written, path);
}

absl::StatusOr<std::string> PostgresFiles::Read(const std::string& path, int64_t max_bytes) {
  std::string bytes;
  const absl::Status read = Look([&](SqlDb& db) -> absl::Status {
    TERSE_ASSIGN_OR_RETURN(const int64_t size, SizeOf(db, path));
    if (size > max_bytes) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the file has ", size, " bytes and may have ", max_bytes, "; it is not one of Terse's"));
    }
    TERSE_ASSIGN_OR_RETURN(bytes, BytesBetween(db, path, 0, size));
    return absl::OkStatus();
  });
  if (!read.ok()) return Annotate(read, path);
  return bytes;
}

absl::StatusOr<std::string> PostgresFiles::ReadPart(const std::string& path, int64_t offset, int64_t bytes) {
  std::string part;
  const absl::Status read = Look([&](SqlDb& db) -> absl::Status {
    TERSE_ASSIGN_OR_RETURN(const int64_t size, SizeOf(db, path));
    TERSE_ASSIGN_OR_RETURN(part, BytesBetween(db, path, offset, std::min(size, offset + bytes)));
    return absl::OkStatus();
  });
  if (!read.ok()) return Annotate(read, path);
  return part;
}

absl::Status PostgresFiles::Rename(const std::string& from, const std::string& to) {
  const absl::Status renamed = Change([&](SqlDb& db) -> absl::Status {
    TERSE_RETURN_IF_ERROR(SizeOf(db, from).status());
    if (from == to) return absl::OkStatus();
    TERSE_RETURN_IF_ERROR(RemoveFile(db, to));
    return db.Prepare("UPDATE file_chunks SET name = ? WHERE name = ?").Text(to).Text(from).Run();
  });
  return Annotate(renamed, from);
}

absl::Status PostgresFiles::Remove(const std::string& path) {
  return Annotate(Change([&](SqlDb& db) { return RemoveFile(db, path); }), path);
}

absl::StatusOr<std::vector<std::string>> PostgresFiles::List(const std::string& path) {
  const std::string folder = absl::StrCat(path, "/");
  std::vector<std::string> names;
  const absl::Status listed = Look([&](SqlDb& db) -> absl::Status {
    names.clear();
    Statement rows = db.Prepare("SELECT name FROM file_chunks WHERE chunk = 0 AND starts_with(name, ?)");
    rows.Text(folder);
    while (true) {
      TERSE_ASSIGN_OR_RETURN(const bool row, rows.Step());
      if (!row) return absl::OkStatus();
      const absl::string_view name = rows.GetText(0).substr(folder.size());
      names.emplace_back(name.substr(0, name.find('/')));
    }
  });
  if (!listed.ok()) return Annotate(listed, path);
  // Not by the database, whose order of texts may be a language's.
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

absl::StatusOr<std::unique_ptr<DirectoryLock>> PostgresFiles::Lock(const std::string& directory) {
  TERSE_RETURN_IF_ERROR(Annotate(Look([](SqlDb&) { return absl::OkStatus(); }), directory));
  return std::make_unique<OpeningIsTheLock>();
}

}  // namespace terse
