#include "storage/client_state.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/fault.h"
#include "core/status.h"
#include "storage/client_files.h"
#include "storage/manifest.h"
#include "storage/parted_lineages.h"

namespace terse {
namespace {

void PutSealed(const SealedUpdate& update, Manifest* manifest) {
  manifest->sealed = true;
  manifest->update_id = update.update_id;
  manifest->round = update.round;
  manifest->base_version = update.base_version;
  manifest->train_us = update.train_us;
  manifest->loss = update.loss;
  manifest->metrics = SerializeMetrics(update.metrics);
  manifest->cohort = update.cohort;
}

class FileClientState final : public ClientState {
 public:
  FileClientState(const std::string& directory, FileSystem& files, std::unique_ptr<DirectoryLock> lock)
      : files_(directory, files, std::move(lock)) {}

  absl::Status Load();

  const StoredHead& state() const override { return state_; }
  absl::StatusOr<StoredState> Read() const override;
  bool lost() const override { return lost_; }
  absl::Status Begin(Id128 lineage, Id128 family, Durability durability) override;
  absl::StatusOr<int64_t> Move(Id128 lineage, absl::Span<const float> dense) override;
  absl::Status Seal(absl::Span<const float> dense, SealedUpdate update, std::string trainer_state,
                    std::string history) override;
  absl::Status Settle(bool applied) override;
  absl::Status Reset(Id128 last_applied) override;
  absl::Status Flush() override;
  absl::Status SaveModel(const CachedModel& model) override { return files_.SaveModel(model); }
  absl::optional<CachedModel> LoadModel() override { return files_.LoadModel(); }
  absl::Status SaveModule(absl::string_view bytes) override { return files_.SaveModule(bytes); }
  absl::optional<std::string> LoadModule(const ModelSpec& model) override { return files_.LoadModule(model); }

 private:
  // Whether the manifest on disk is of this lineage of this family.
  bool IsOnDisk(Id128 lineage, Id128 family) const {
    return files_.manifest().lineage == lineage && files_.manifest().family == family;
  }
  // A manifest of the run and its last verdict, with no blobs and nothing sealed.
  Manifest Describe() const;
  // Writes the whole state.
  absl::Status WriteAll();
  // Makes state_, which has moved, the state on disk. The trainer's blob stays.
  absl::Status WriteMove(absl::Span<const float> dense);
  // Before the first change that is only in memory: from here on a crash loses the residual, and the disk says so.
  absl::Status MarkDirty();
  absl::Status CheckUsable() const;

  ClientFiles files_;
  StoredHead state_;
  absl::optional<LargeState> large_;  // with relaxed durability; otherwise the files have it
  Durability durability_ = Durability::kStrict;
  bool lost_ = false;
};

absl::Status FileClientState::Load() {
  TERSE_RETURN_IF_ERROR(files_.Load());
  const Manifest& disk = files_.manifest();
  TERSE_RETURN_IF_ERROR(files_.ReadLarge().status());  // looks at the checksums
  TERSE_ASSIGN_OR_RETURN(std::string outbox, files_.ReadOutbox());
  lost_ = disk.dirty;
  state_.lineage = disk.lineage;
  state_.family = disk.family;
  TERSE_ASSIGN_OR_RETURN(state_.parted, files_.ReadParted());
  state_.generation = disk.generation;
  state_.prev_applied = disk.prev_applied;
  state_.has_dense = !disk.dense.empty();
  if (disk.sealed) {
    TERSE_ASSIGN_OR_RETURN(std::vector<NamedMetric> metrics, ParseMetrics(disk.metrics));
    state_.sealed = SealedUpdate{disk.update_id, disk.round,         disk.base_version, disk.train_us,
                                 disk.loss,      std::move(metrics), disk.cohort,       std::move(outbox)};
  } else {
    state_.minus = std::move(outbox);
  }
  files_.RemoveUnnamed();
  return absl::OkStatus();
}

absl::StatusOr<StoredState> FileClientState::Read() const {
  LargeState large;
  if (large_.has_value()) {
    large = *large_;
  } else {
    TERSE_ASSIGN_OR_RETURN(large, files_.ReadLarge());
  }
  StoredState state;
  static_cast<StoredHead&>(state) = state_;
  state.dense = std::move(large.dense);
  state.trainer_state = std::move(large.trainer_state);
  state.history = std::move(large.history);
  return state;
}

Manifest FileClientState::Describe() const {
  Manifest manifest;
  manifest.lineage = state_.lineage;
  manifest.family = state_.family;
  manifest.generation = state_.generation;
  manifest.prev_applied = state_.prev_applied;
  return manifest;
}

absl::Status FileClientState::CheckUsable() const {
  TERSE_RETURN_IF_ERROR(files_.broken());
  if (!state_.lineage.IsZero()) return absl::OkStatus();
  return absl::FailedPreconditionError("the client's state belongs to no run; Begin first");
}

absl::Status FileClientState::MarkDirty() {
  if (files_.manifest().dirty && IsOnDisk(state_.lineage, state_.family)) return absl::OkStatus();
  Manifest manifest = Describe();
  manifest.dirty = true;
  return files_.Replace(manifest);
}

absl::Status FileClientState::Begin(Id128 lineage, Id128 family, Durability durability) {
  TERSE_RETURN_IF_ERROR(files_.broken());
  if (lineage.IsZero() || family.IsZero()) return absl::InvalidArgumentError("a run needs a lineage and a family");
  const bool relaxed = durability == Durability::kRelaxed;
  const bool fresh = lineage != state_.lineage || family != state_.family;
  const bool on_disk = IsOnDisk(lineage, family) && !files_.manifest().dirty;
  // A blob that the next manifest does not name must be read into memory first.
  const bool moves = fresh || (!large_.has_value() && (relaxed || !on_disk));
  StoredHead head = state_;
  absl::optional<LargeState> large;
  if (fresh) {
    head = StoredHead();
    head.lineage = lineage;
    head.family = family;
    large.emplace();
  } else if (moves) {
    TERSE_ASSIGN_OR_RETURN(large, files_.ReadLarge());
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
  if (state_.sealed) PutSealed(*state_.sealed, &manifest);
  const LargeState nothing;
  const LargeState& large = large_.has_value() ? *large_ : nothing;
  const std::string& outbox = state_.sealed ? state_.sealed->message : state_.minus;
  const std::string parted = SerializeParted(state_.parted);
  TERSE_RETURN_IF_ERROR(
      files_.WriteBlobs({large.dense, outbox, large.trainer_state, large.history, parted}, &manifest));
  return files_.Replace(manifest);
}

absl::Status FileClientState::WriteMove(absl::Span<const float> dense) {
  Manifest manifest = Describe();
  if (state_.sealed) PutSealed(*state_.sealed, &manifest);
  const std::string parted = SerializeParted(state_.parted);
  const absl::string_view outbox = state_.sealed ? absl::string_view(state_.sealed->message) : absl::string_view();
  TERSE_RETURN_IF_ERROR(files_.WriteBlobs({dense, outbox, {}, {}, parted}, &manifest));
  manifest.trainer = files_.manifest().trainer;
  TERSE_FAILPOINT("client.move.before_manifest");
  return files_.Replace(manifest);
}

absl::StatusOr<int64_t> FileClientState::Move(Id128 lineage, absl::Span<const float> dense) {
  TERSE_RETURN_IF_ERROR(CheckUsable());
  if (lineage.IsZero() || lineage == state_.lineage) return absl::InvalidArgumentError("a client moves to another one");
  StoredHead head = state_;
  const int64_t lost = MoveHead(lineage, &head);
  head.has_dense = !dense.empty();
  std::swap(state_, head);
  const bool relaxed = durability_ == Durability::kRelaxed;
  const absl::Status status = relaxed ? MarkDirty() : WriteMove(dense);
  if (!status.ok()) {
    std::swap(state_, head);
    return status;
  }
  if (relaxed) {
    LargeState& large = large_.has_value() ? *large_ : large_.emplace();
    large.dense = std::vector<float>(dense.begin(), dense.end());
    large.history.clear();
  }
  lost_ = false;
  TERSE_FAILPOINT("client.move.done");
  return lost;
}

absl::Status FileClientState::Seal(absl::Span<const float> dense, SealedUpdate update, std::string trainer_state,
                                   std::string history) {
  TERSE_RETURN_IF_ERROR(CheckUsable());
  if (update.update_id.IsZero()) return absl::InvalidArgumentError("an update needs an id to be sealed");
  if (state_.sealed) {
    return absl::FailedPreconditionError(absl::StrCat("update ", state_.sealed->update_id.ToHex(),
                                                      " is sealed and waits for its verdict; settle it first"));
  }
  TERSE_FAILPOINT("client.seal.before_blobs");
  if (durability_ == Durability::kRelaxed) {
    TERSE_RETURN_IF_ERROR(MarkDirty());
    LargeState& large = large_.has_value() ? *large_ : large_.emplace();
    large.dense.assign(dense.begin(), dense.end());
    large.trainer_state = std::move(trainer_state);
    large.history = std::move(history);
  } else {
    Manifest manifest = Describe();
    ++manifest.generation;
    PutSealed(update, &manifest);
    TERSE_RETURN_IF_ERROR(files_.WriteBlobs({dense, update.message, trainer_state, history}, &manifest));
    manifest.parted = files_.manifest().parted;
    TERSE_FAILPOINT("client.seal.before_manifest");
    TERSE_RETURN_IF_ERROR(files_.Replace(manifest));
  }
  ++state_.generation;
  state_.has_dense = !dense.empty();
  state_.minus.clear();
  state_.sealed = std::move(update);
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
    Manifest manifest = Describe();
    manifest.dense = files_.manifest().dense;
    manifest.trainer = files_.manifest().trainer;
    manifest.history = files_.manifest().history;
    manifest.parted = files_.manifest().parted;
    if (applied) {
      manifest.prev_applied = state_.sealed->update_id;
      manifest.outbox = files_.manifest().outbox;
    }
    TERSE_RETURN_IF_ERROR(files_.Replace(manifest));
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
    Manifest manifest = Describe();
    manifest.prev_applied = last_applied;
    manifest.trainer = files_.manifest().trainer;
    manifest.parted = files_.manifest().parted;
    TERSE_RETURN_IF_ERROR(files_.Replace(manifest));
  }
  state_.has_dense = false;
  if (large_.has_value()) {
    large_->dense.clear();
    large_->history.clear();
  }
  state_.minus.clear();
  state_.sealed.reset();
  state_.prev_applied = last_applied;
  lost_ = false;
  TERSE_FAILPOINT("client.reset.done");
  return absl::OkStatus();
}

absl::Status FileClientState::Flush() {
  TERSE_RETURN_IF_ERROR(files_.broken());
  // A loss that nobody has acknowledged with Begin or Reset must still be seen by the next process.
  if (!files_.manifest().dirty || lost_) return absl::OkStatus();
  return WriteAll();
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
