#include "storage/postgres_blobs.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/fault.h"
#include "core/status.h"
#include "storage/byte_io.h"
#include "storage/weights_file.h"

namespace terse {
namespace {

// Parts of a checkpoint, as the column `part` has them.
constexpr int64_t kWeightsPart = 0;
constexpr int64_t kStatePart = 1;

absl::string_view ChunkOf(absl::string_view bytes, int64_t chunk) {
  return bytes.substr(static_cast<size_t>(chunk * kChunkBytes), static_cast<size_t>(kChunkBytes));
}

// Reads the chunks that `query` finds for its last parameter, from 0 on; `bind` binds the others. `bytes` is what there
// must be.
template <typename Bind>
absl::StatusOr<std::string> ReadChunks(SqlDb& db, const char* query, int64_t bytes, Bind bind) {
  std::string all;
  for (int64_t chunk = 0; static_cast<int64_t>(all.size()) < bytes; ++chunk) {
    Statement row = db.Prepare(query);
    bind(row);
    TERSE_ASSIGN_OR_RETURN(const bool found, row.Int(chunk).Step());
    const absl::string_view part = found ? row.GetBlob(0) : absl::string_view();
    const int64_t wanted = std::min(kChunkBytes, bytes - static_cast<int64_t>(all.size()));
    if (static_cast<int64_t>(part.size()) != wanted) {
      return absl::DataLossError(
          absl::StrCat(db.place(), " lacks chunk ", chunk, " of ", bytes, " bytes", db.remedy()));
    }
    all.append(part.data(), part.size());
  }
  return all;
}

// The bytes of `parts`, cut into chunks.
class Chunks {
 public:
  explicit Chunks(std::vector<absl::string_view> parts) : parts_(std::move(parts)) {}

  // False: there is none left.
  bool Next(std::string* chunk) {
    chunk->clear();
    while (part_ < parts_.size() && static_cast<int64_t>(chunk->size()) < kChunkBytes) {
      absl::string_view& rest = parts_[part_];
      const size_t taken = std::min(rest.size(), static_cast<size_t>(kChunkBytes) - chunk->size());
      chunk->append(rest.data(), taken);
      rest.remove_prefix(taken);
      if (rest.empty()) ++part_;
    }
    return !chunk->empty();
  }

 private:
  std::vector<absl::string_view> parts_;
  size_t part_ = 0;
};

absl::Status WritePart(StoreTransactions& store, int64_t version, int64_t part, const WeightsBytes& bytes) {
  Chunks chunks(bytes.parts());
  std::string chunk;
  for (int64_t number = 0; chunks.Next(&chunk); ++number) {
    TERSE_RETURN_IF_ERROR(store.Write([&](SqlDb& db) {
      return db
          .Prepare(
              "INSERT INTO checkpoint_chunks (version, part, chunk, bytes) VALUES (?, ?, ?, ?) "
              "ON CONFLICT (version, part, chunk) DO UPDATE SET bytes = excluded.bytes")
          .Int(version)
          .Int(part)
          .Int(number)
          .Blob(chunk)
          .Run();
    }));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadPart(SqlDb& db, int64_t version, int64_t part, int64_t bytes) {
  return ReadChunks(db, "SELECT bytes FROM checkpoint_chunks WHERE version = ? AND part = ? AND chunk = ?", bytes,
                    [&](Statement& row) { row.Int(version).Int(part); });
}

}  // namespace

absl::StatusOr<SegmentPlace> BlobMessages::Append(SqlDb& db, absl::string_view message) {
  SegmentPlace place;
  {
    Statement next = db.Prepare("SELECT COALESCE(MAX(segment), 0) + 1 FROM message_chunks");
    TERSE_RETURN_IF_ERROR(next.Step().status());
    place.segment = next.GetInt(0);
  }
  place.length = static_cast<int64_t>(message.size());
  place.hash = HashBytes(message);
  for (int64_t chunk = 0; chunk * kChunkBytes < place.length; ++chunk) {
    TERSE_RETURN_IF_ERROR(db.Prepare("INSERT INTO message_chunks (segment, chunk, bytes) VALUES (?, ?, ?)")
                              .Int(place.segment)
                              .Int(chunk)
                              .Blob(ChunkOf(message, chunk))
                              .Run());
  }
  return place;
}

absl::StatusOr<std::string> BlobMessages::Read(SqlDb& db, const SegmentPlace& place) {
  TERSE_ASSIGN_OR_RETURN(std::string message,
                         ReadChunks(db, "SELECT bytes FROM message_chunks WHERE segment = ? AND chunk = ?",
                                    place.length, [&](Statement& row) { row.Int(place.segment); }));
  if (HashBytes(message) == place.hash) return message;
  return absl::DataLossError(absl::StrCat(db.place(), " is damaged: the ", place.length, " bytes of message ",
                                          place.segment, " have another hash", db.remedy()));
}

absl::Status BlobMessages::RemoveUnnamed(SqlDb& db) {
  return db
      .Prepare(
          "DELETE FROM message_chunks c WHERE NOT EXISTS (SELECT 1 FROM downstream_log l WHERE l.segment = "
          "c.segment) AND NOT EXISTS (SELECT 1 FROM aggregates a WHERE a.segment = c.segment)")
      .Run();
}

absl::StatusOr<CheckpointBytes> BlobCheckpoints::Write(StoreTransactions& store, const CheckpointView& checkpoint) {
  CheckpointBytes sizes;
  if (!checkpoint.server_state.empty()) {
    const WeightsBytes state(kServerStateMagic, checkpoint.version, checkpoint.model_hash, checkpoint.server_state);
    TERSE_RETURN_IF_ERROR(WritePart(store, checkpoint.version, kStatePart, state));
    sizes.server_state = static_cast<int64_t>(state.size());
    TERSE_FAILPOINT("coordinator.checkpoint.state_written");
  }
  const WeightsBytes weights(kCheckpointMagic, checkpoint.version, checkpoint.model_hash, checkpoint.weights);
  TERSE_RETURN_IF_ERROR(WritePart(store, checkpoint.version, kWeightsPart, weights));
  sizes.weights = static_cast<int64_t>(weights.size());
  absl::MutexLock lock(&mutex_);
  TERSE_RETURN_IF_ERROR(MakeFile(checkpoint.version, weights.parts()));
  return sizes;
}

absl::StatusOr<Checkpoint> BlobCheckpoints::Load(StoreTransactions& store, const RecordedCheckpoint& recorded) {
  std::string weights, state;
  TERSE_RETURN_IF_ERROR(store.Read([&](SqlDb& db) -> absl::Status {
    TERSE_ASSIGN_OR_RETURN(weights, ReadPart(db, recorded.version, kWeightsPart, recorded.bytes.weights));
    if (recorded.bytes.server_state == 0) return absl::OkStatus();
    TERSE_ASSIGN_OR_RETURN(state, ReadPart(db, recorded.version, kStatePart, recorded.bytes.server_state));
    return absl::OkStatus();
  }));
  const std::string place = absl::StrCat(place_, ", checkpoint ", recorded.version);
  return JoinCheckpoint(recorded, weights, place, state, absl::StrCat(place, ", state of the server"));
}

absl::Status BlobCheckpoints::Remove(StoreTransactions& store, int64_t version) {
  return store.Write(
      [&](SqlDb& db) { return db.Prepare("DELETE FROM checkpoint_chunks WHERE version = ?").Int(version).Run(); });
}

absl::StatusOr<std::string> BlobCheckpoints::FileOf(StoreTransactions& store, const RecordedCheckpoint& recorded) {
  absl::MutexLock lock(&mutex_);
  if (file_version_ != recorded.version) {
    std::string weights;
    TERSE_RETURN_IF_ERROR(store.Read([&](SqlDb& db) -> absl::Status {
      TERSE_ASSIGN_OR_RETURN(weights, ReadPart(db, recorded.version, kWeightsPart, recorded.bytes.weights));
      return absl::OkStatus();
    }));
    TERSE_RETURN_IF_ERROR(MakeFile(recorded.version, {weights}));
  }
  return CheckpointPath(directory_, recorded.version);
}

absl::Status BlobCheckpoints::MakeFile(int64_t version, const std::vector<absl::string_view>& parts) {
  TERSE_RETURN_IF_ERROR(ReplaceFile(files_, CheckpointPath(directory_, version), parts));
  // The one before is downloaded until this one is recorded.
  const int64_t before = std::exchange(file_version_, version);
  return RemoveOtherCheckpoints(files_, directory_, {version, before});
}

absl::Status StoreFile(StoreTransactions& store, absl::string_view name, absl::string_view bytes) {
  const auto size = static_cast<int64_t>(bytes.size());
  for (int64_t chunk = 0; chunk * kChunkBytes < size; ++chunk) {
    TERSE_RETURN_IF_ERROR(store.Write([&](SqlDb& db) {
      return db
          .Prepare(
              "INSERT INTO file_chunks (name, chunk, bytes) VALUES (?, ?, ?) "
              "ON CONFLICT (name, chunk) DO UPDATE SET bytes = excluded.bytes")
          .Text(name)
          .Int(chunk)
          .Blob(ChunkOf(bytes, chunk))
          .Run();
    }));
  }
  return store.Write([&](SqlDb& db) {
    return db
        .Prepare(
            "INSERT INTO files (name, bytes) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET bytes = excluded.bytes")
        .Text(name)
        .Int(size)
        .Run();
  });
}

absl::Status FetchFiles(SqlDb& db, FileSystem& files, const std::string& directory) {
  TERSE_ASSIGN_OR_RETURN(const std::vector<std::string> there, files.List(directory));
  Statement rows = db.Prepare("SELECT name, bytes FROM files");
  while (true) {
    TERSE_ASSIGN_OR_RETURN(const bool row, rows.Step());
    if (!row) return absl::OkStatus();
    const std::string name(rows.GetText(0));
    if (std::find(there.begin(), there.end(), name) != there.end()) continue;
    TERSE_ASSIGN_OR_RETURN(const std::string bytes,
                           ReadChunks(db, "SELECT bytes FROM file_chunks WHERE name = ? AND chunk = ?", rows.GetInt(1),
                                      [&](Statement& chunk) { chunk.Text(name); }));
    TERSE_RETURN_IF_ERROR(ReplaceFile(files, FilePath(directory, name), {bytes}));
  }
}

absl::Status RemoveOrphanChunks(SqlDb& db) {
  return db.Prepare("DELETE FROM checkpoint_chunks WHERE version NOT IN (SELECT version FROM checkpoints)").Run();
}

}  // namespace terse
