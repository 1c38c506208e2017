#include "storage/client_state.h"

#include <cstring>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/fault.h"
#include "core/file_system.h"
#include "core/status.h"
#include "storage/byte_io.h"
#include "storage/manifest.h"
#include "storage/module_file.h"
#include "storage/weights_file.h"

namespace terse {
namespace {

constexpr absl::string_view kDense = "dense";
constexpr absl::string_view kOutbox = "outbox";
constexpr absl::string_view kTrainer = "trainer";

absl::Status Damaged(const std::string& path, absl::string_view reason) {
  return absl::DataLossError(absl::StrCat(path, " is damaged: ", reason,
                                          "; start over with `terse-client --state DIR --reset-state`: the client's "
                                          "residual is then lost, which is counted, and the run goes on"));
}

// A file that is missing or too long is damage; one that cannot be read now may be whole.
absl::Status DamagedUnlessDenied(const std::string& path, const absl::Status& status) {
  if (!absl::IsNotFound(status) && !absl::IsResourceExhausted(status)) return status;
  return Damaged(path, status.message());
}

std::string BlobName(absl::string_view kind, int64_t generation) { return absl::StrCat(kind, ".", generation); }

// Files that only this class makes; everything else in the directory is left alone.
bool IsBlobName(absl::string_view name) {
  const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(name, absl::MaxSplits('.', 1));
  int64_t generation = 0;
  return (parts.first == kDense || parts.first == kOutbox || parts.first == kTrainer) &&
         absl::SimpleAtoi(parts.second, &generation);
}

// For kRenameBeforeSync only.
absl::Status WriteUnsynced(FileSystem& files, absl::Span<const FileContents> contents) {
  for (const FileContents& blob : contents) {
    TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, files.Create(blob.path));
    for (absl::string_view part : blob.parts) TERSE_RETURN_IF_ERROR(file->Append(part));
  }
  return absl::OkStatus();
}

BlobRef RefTo(int64_t generation, absl::string_view contents) {
  if (contents.empty()) return BlobRef();
  return BlobRef{generation, contents.size(), HashBytes(contents)};
}

std::vector<float> FloatsOf(absl::string_view bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

class FileClientState final : public ClientState {
 public:
  FileClientState(const std::string& directory, FileSystem& files, std::unique_ptr<DirectoryLock> lock)
      : directory_(directory), files_(files), lock_(std::move(lock)) {}

  absl::Status Load();

  const StoredHead& state() const override { return state_; }
  absl::StatusOr<StoredState> Read() const override;
  bool lost() const override { return lost_; }
  absl::Status Begin(Id128 lineage, Durability durability) override;
  absl::Status Seal(absl::Span<const float> dense, const SealedUpdate& update, std::string trainer_state) override;
  absl::Status Settle(bool applied) override;
  absl::Status Reset(Id128 last_applied) override;
  absl::Status Flush() override;
  absl::Status SaveModel(const CachedModel& model) override;
  absl::optional<CachedModel> LoadModel() override;
  absl::Status SaveModule(absl::string_view bytes) override;
  absl::optional<std::string> LoadModule(const ModelSpec& model) override;

 private:
  std::string PathOf(absl::string_view name) const { return absl::StrCat(directory_, "/", name); }
  // The state's fields, without blobs.
  Manifest Describe() const;
  absl::StatusOr<std::string> ReadBlob(absl::string_view kind, const BlobRef& blob) const;
  // Writes the three blobs, and their names into `manifest`.
  absl::Status WriteBlobs(absl::Span<const float> dense, absl::string_view outbox, absl::string_view trainer,
                          Manifest* manifest);
  // Writes the whole state.
  absl::Status WriteAll();
  absl::Status ReplaceManifest(const Manifest& manifest);
  // Whether the manifest's file is still the one that `disk_` describes.
  bool ManifestIsUnchanged() const;
  // Passes on the status of a write; after a failed sync nothing may be written any more.
  absl::Status Watch(const absl::Status& status);
  // Before the first change that is only in memory: from here on a crash loses the residual, and the disk says so.
  absl::Status MarkDirty();
  absl::Status CheckUsable() const;
  // Removes the blobs that the manifest does not name, best effort: Open does it again.
  void RemoveUnnamed() const;

  const std::string directory_;
  FileSystem& files_;
  const std::unique_ptr<DirectoryLock> lock_;
  // What is as large as the model.
  struct Large {
    std::vector<float> dense;
    std::string trainer_state;
  };
  absl::StatusOr<Large> ReadLarge() const;

  StoredHead state_;
  absl::optional<Large> large_;  // with relaxed durability; otherwise the blobs of `disk_` have it
  Manifest disk_;                // the manifest as it is on disk; a zero lineage when there is none
  Durability durability_ = Durability::kStrict;
  bool lost_ = false;
  absl::Status broken_;  // UNKNOWN: what is on disk is not known, so nothing may be written any more
};

absl::StatusOr<std::string> FileClientState::ReadBlob(absl::string_view kind, const BlobRef& blob) const {
  if (blob.empty()) return std::string();
  const std::string path = PathOf(BlobName(kind, blob.generation));
  absl::StatusOr<std::string> bytes = files_.Read(path, static_cast<int64_t>(blob.size));
  if (!bytes.ok()) return DamagedUnlessDenied(path, bytes.status());
  if (bytes->size() != blob.size) {
    return Damaged(path, absl::StrCat("it has ", bytes->size(), " bytes instead of ", blob.size));
  }
  if (HashBytes(*bytes) != blob.hash) return Damaged(path, "it does not match its checksum");
  return bytes;
}

absl::Status FileClientState::Load() {
  const std::string path = PathOf("MANIFEST");
  TERSE_RETURN_IF_ERROR(files_.Remove(absl::StrCat(path, kTemporarySuffix)));
  absl::StatusOr<std::string> bytes = files_.Read(path, kManifestBytes);
  if (absl::IsNotFound(bytes.status())) {
    // Begin writes the manifest before Seal writes the first blob.
    TERSE_ASSIGN_OR_RETURN(const std::vector<std::string> names, files_.List(directory_));
    for (const std::string& name : names) {
      if (IsBlobName(name)) return Damaged(path, absl::StrCat("it is missing, though there is a ", name));
    }
    return absl::OkStatus();
  }
  if (!bytes.ok()) return DamagedUnlessDenied(path, bytes.status());
  absl::StatusOr<Manifest> manifest = ParseManifest(*bytes);
  if (!manifest.ok()) return Damaged(path, manifest.status().message());
  disk_ = *manifest;
  lost_ = disk_.dirty;
  state_.lineage = disk_.lineage;
  state_.generation = disk_.generation;
  state_.prev_applied = disk_.prev_applied;
  state_.has_dense = !disk_.dense.empty();
  TERSE_RETURN_IF_ERROR(ReadLarge().status());  // looks at the checksums
  TERSE_ASSIGN_OR_RETURN(std::string outbox, ReadBlob(kOutbox, disk_.outbox));
  if (disk_.sealed) {
    state_.sealed =
        SealedUpdate{disk_.update_id, disk_.round, disk_.base_version, disk_.train_us, disk_.loss, std::move(outbox)};
  } else {
    state_.minus = std::move(outbox);
  }
  RemoveUnnamed();
  return absl::OkStatus();
}

absl::StatusOr<FileClientState::Large> FileClientState::ReadLarge() const {
  Large large;
  {
    TERSE_ASSIGN_OR_RETURN(const std::string dense, ReadBlob(kDense, disk_.dense));
    large.dense = FloatsOf(dense);
  }
  TERSE_ASSIGN_OR_RETURN(large.trainer_state, ReadBlob(kTrainer, disk_.trainer));
  return large;
}

absl::StatusOr<StoredState> FileClientState::Read() const {
  Large large;
  if (large_.has_value()) {
    large = *large_;
  } else {
    TERSE_ASSIGN_OR_RETURN(large, ReadLarge());
  }
  StoredState state;
  static_cast<StoredHead&>(state) = state_;
  state.dense = std::move(large.dense);
  state.trainer_state = std::move(large.trainer_state);
  return state;
}

Manifest FileClientState::Describe() const {
  Manifest manifest;
  manifest.lineage = state_.lineage;
  manifest.generation = state_.generation;
  manifest.prev_applied = state_.prev_applied;
  if (state_.sealed) {
    manifest.sealed = true;
    manifest.update_id = state_.sealed->update_id;
    manifest.round = state_.sealed->round;
    manifest.base_version = state_.sealed->base_version;
    manifest.train_us = state_.sealed->train_us;
    manifest.loss = state_.sealed->loss;
  }
  return manifest;
}

absl::Status FileClientState::WriteBlobs(absl::Span<const float> dense, absl::string_view outbox,
                                         absl::string_view trainer, Manifest* manifest) {
  // A name that the manifest on disk does not use: its blobs have smaller generations, or it names none.
  const int64_t generation = manifest->generation;
  std::vector<FileContents> blobs;
  const auto add = [&](absl::string_view kind, absl::string_view contents) {
    if (!contents.empty()) blobs.push_back({PathOf(BlobName(kind, generation)), {contents}});
    return RefTo(generation, contents);
  };
  manifest->dense = add(kDense, BytesOf(dense));
  manifest->outbox = add(kOutbox, outbox);
  manifest->trainer = add(kTrainer, trainer);
  if (blobs.empty()) return absl::OkStatus();
  if (Mutated(Mutant::kRenameBeforeSync)) return WriteUnsynced(files_, blobs);
  TERSE_RETURN_IF_ERROR(Watch(WriteFilesSynced(files_, blobs)));
  return Watch(files_.SyncDirectory(directory_));
}

absl::Status FileClientState::Watch(const absl::Status& status) {
  if (IsSyncFailure(status))
    broken_ = Annotate(status, "the client's state may or may not be on disk; restart the client");
  return status;
}

bool FileClientState::ManifestIsUnchanged() const {
  const absl::StatusOr<std::string> bytes = files_.Read(PathOf("MANIFEST"), kManifestBytes);
  if (disk_.lineage.IsZero()) return absl::IsNotFound(bytes.status());
  return bytes.ok() && *bytes == SerializeManifest(disk_);
}

absl::Status FileClientState::ReplaceManifest(const Manifest& manifest) {
  const std::string bytes = SerializeManifest(manifest);
  absl::Status status = ReplaceFile(files_, PathOf("MANIFEST"), {bytes});
  // An error after the rename, or in it: the new manifest is there, and whether it stays is not known.
  if (!status.ok() && !ManifestIsUnchanged()) status = absl::UnknownError(status.message());
  TERSE_RETURN_IF_ERROR(Watch(status));
  disk_ = manifest;
  RemoveUnnamed();
  return absl::OkStatus();
}

void FileClientState::RemoveUnnamed() const {
  std::set<std::string> named;
  if (!disk_.dense.empty()) named.insert(BlobName(kDense, disk_.dense.generation));
  if (!disk_.outbox.empty()) named.insert(BlobName(kOutbox, disk_.outbox.generation));
  if (!disk_.trainer.empty()) named.insert(BlobName(kTrainer, disk_.trainer.generation));
  const absl::StatusOr<std::vector<std::string>> names = files_.List(directory_);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    if (IsBlobName(name) && named.count(name) == 0) files_.Remove(PathOf(name)).IgnoreError();
  }
}

absl::Status FileClientState::CheckUsable() const {
  TERSE_RETURN_IF_ERROR(broken_);
  if (!state_.lineage.IsZero()) return absl::OkStatus();
  return absl::FailedPreconditionError("the client's state belongs to no run; Begin first");
}

absl::Status FileClientState::MarkDirty() {
  if (disk_.dirty && disk_.lineage == state_.lineage) return absl::OkStatus();
  Manifest manifest;
  manifest.dirty = true;
  manifest.lineage = state_.lineage;
  manifest.generation = state_.generation;
  manifest.prev_applied = state_.prev_applied;
  return ReplaceManifest(manifest);
}

absl::Status FileClientState::Begin(Id128 lineage, Durability durability) {
  TERSE_RETURN_IF_ERROR(broken_);
  if (lineage.IsZero()) return absl::InvalidArgumentError("a run needs a lineage");
  const bool relaxed = durability == Durability::kRelaxed;
  const bool fresh = lineage != state_.lineage;
  const bool on_disk = disk_.lineage == lineage && !disk_.dirty;
  // What the next manifest does not name must be in memory before.
  const bool moves = fresh || (!large_.has_value() && (relaxed || !on_disk));
  StoredHead head = state_;
  absl::optional<Large> large;
  if (fresh) {
    head = StoredHead();
    head.lineage = lineage;
    large.emplace();
  } else if (moves) {
    TERSE_ASSIGN_OR_RETURN(large, ReadLarge());
  }
  std::swap(state_, head);
  if (moves) std::swap(large_, large);
  const absl::Status status = relaxed ? MarkDirty() : on_disk ? absl::OkStatus() : WriteAll();
  if (!status.ok()) {
    std::swap(state_, head);
    if (moves) std::swap(large_, large);
    return status;
  }
  if (!relaxed) large_.reset();
  durability_ = durability;
  lost_ = false;
  return absl::OkStatus();
}

absl::Status FileClientState::WriteAll() {
  Manifest manifest = Describe();
  const Large nothing;
  const Large& large = large_.has_value() ? *large_ : nothing;
  TERSE_RETURN_IF_ERROR(
      WriteBlobs(large.dense, state_.sealed ? state_.sealed->message : state_.minus, large.trainer_state, &manifest));
  return ReplaceManifest(manifest);
}

absl::Status FileClientState::Seal(absl::Span<const float> dense, const SealedUpdate& update,
                                   std::string trainer_state) {
  TERSE_RETURN_IF_ERROR(CheckUsable());
  if (update.update_id.IsZero()) return absl::InvalidArgumentError("an update needs an id to be sealed");
  if (state_.sealed) {
    return absl::FailedPreconditionError(absl::StrCat("update ", state_.sealed->update_id.ToHex(),
                                                      " is sealed and waits for its verdict; settle it first"));
  }
  TERSE_FAILPOINT("client.seal.before_blobs");
  if (durability_ == Durability::kRelaxed) {
    TERSE_RETURN_IF_ERROR(MarkDirty());
    // A fresh vector, because `dense` may be a view of the old one.
    large_ = Large{std::vector<float>(dense.begin(), dense.end()), std::move(trainer_state)};
  } else {
    Manifest manifest = Describe();
    ++manifest.generation;
    manifest.sealed = true;
    manifest.update_id = update.update_id;
    manifest.round = update.round;
    manifest.base_version = update.base_version;
    manifest.train_us = update.train_us;
    manifest.loss = update.loss;
    TERSE_RETURN_IF_ERROR(WriteBlobs(dense, update.message, trainer_state, &manifest));
    TERSE_FAILPOINT("client.seal.before_manifest");
    TERSE_RETURN_IF_ERROR(ReplaceManifest(manifest));
  }
  ++state_.generation;
  state_.has_dense = !dense.empty();
  state_.minus.clear();
  state_.sealed = update;
  TERSE_FAILPOINT("client.seal.done");
  return absl::OkStatus();
}

absl::Status FileClientState::Settle(bool applied) {
  TERSE_RETURN_IF_ERROR(CheckUsable());
  if (!state_.sealed) return absl::FailedPreconditionError("no update is sealed, so there is nothing to settle");
  TERSE_FAILPOINT("client.settle.before_manifest");
  if (durability_ == Durability::kRelaxed) {
    TERSE_RETURN_IF_ERROR(MarkDirty());
  } else {
    Manifest manifest;
    manifest.lineage = state_.lineage;
    manifest.generation = state_.generation;
    manifest.prev_applied = applied ? state_.sealed->update_id : state_.prev_applied;
    manifest.dense = disk_.dense;
    manifest.trainer = disk_.trainer;
    if (applied) manifest.outbox = disk_.outbox;
    TERSE_RETURN_IF_ERROR(ReplaceManifest(manifest));
  }
  if (applied) {
    state_.prev_applied = state_.sealed->update_id;
    state_.minus = std::move(state_.sealed->message);
  }
  state_.sealed.reset();
  TERSE_FAILPOINT("client.settle.done");
  return absl::OkStatus();
}

absl::Status FileClientState::Reset(Id128 last_applied) {
  TERSE_RETURN_IF_ERROR(CheckUsable());
  if (durability_ == Durability::kRelaxed) {
    TERSE_RETURN_IF_ERROR(MarkDirty());
  } else {
    Manifest manifest;
    manifest.lineage = state_.lineage;
    manifest.generation = state_.generation;
    manifest.prev_applied = last_applied;
    manifest.trainer = disk_.trainer;
    TERSE_RETURN_IF_ERROR(ReplaceManifest(manifest));
  }
  state_.has_dense = false;
  if (large_.has_value()) large_->dense.clear();
  state_.minus.clear();
  state_.sealed.reset();
  state_.prev_applied = last_applied;
  lost_ = false;
  TERSE_FAILPOINT("client.reset.done");
  return absl::OkStatus();
}

absl::Status FileClientState::Flush() {
  TERSE_RETURN_IF_ERROR(broken_);
  // A loss that nobody has acknowledged with Begin or Reset must still be seen by the next process.
  if (!disk_.dirty || lost_) return absl::OkStatus();
  return WriteAll();
}

absl::Status FileClientState::SaveModel(const CachedModel& model) {
  TERSE_RETURN_IF_ERROR(broken_);
  const std::string bytes = SerializeWeights(kCachedModelMagic, model.version, model.lineage, model.weights);
  return Watch(ReplaceFile(files_, PathOf("model"), {bytes}));
}

absl::optional<CachedModel> FileClientState::LoadModel() {
  const absl::StatusOr<std::string> bytes = files_.Read(PathOf("model"));
  if (!bytes.ok()) return absl::nullopt;
  absl::StatusOr<WeightsFile> file = ParseWeights(kCachedModelMagic, *bytes);
  if (!file.ok()) return absl::nullopt;
  return CachedModel{file->id, file->version, std::move(file->weights)};
}

absl::Status FileClientState::SaveModule(absl::string_view bytes) {
  TERSE_RETURN_IF_ERROR(broken_);
  return Watch(WriteModule(files_, directory_, bytes));
}

absl::optional<std::string> FileClientState::LoadModule(const ModelSpec& model) {
  absl::StatusOr<std::string> bytes = ReadModule(files_, directory_, model);
  if (!bytes.ok()) return absl::nullopt;
  return *std::move(bytes);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ClientState>> ClientState::Open(const std::string& directory, FileSystem& files) {
  TERSE_RETURN_IF_ERROR(files.MakeDirectory(directory));
  TERSE_ASSIGN_OR_RETURN(std::unique_ptr<DirectoryLock> lock, files.Lock(directory));
  // A process that died between a rename and this left names that are read but would not survive a power loss.
  TERSE_RETURN_IF_ERROR(files.SyncDirectory(directory));
  auto state = std::make_unique<FileClientState>(directory, files, std::move(lock));
  TERSE_RETURN_IF_ERROR(state->Load());
  TERSE_FAILPOINT("client.restart.loaded");
  return state;
}

}  // namespace terse
