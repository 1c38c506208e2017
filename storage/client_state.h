// The client's durable state: blobs and one small MANIFEST that names them and is replaced atomically
// (docs/PROTOCOL.md). Formats: storage/SCHEMA.md.
//
//   DIR/lock   DIR/MANIFEST   DIR/dense.G   DIR/outbox.G   DIR/trainer.G   DIR/history.G   DIR/parted.G   DIR/model
//   DIR/module.pt
#ifndef TERSE_STORAGE_CLIENT_STATE_H_
#define TERSE_STORAGE_CLIENT_STATE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "core/cohort.h"
#include "core/file_system.h"
#include "core/id128.h"
#include "core/named_metrics.h"
#include "core/run_config.h"

namespace terse {

// An update that was sealed and whose verdict is outstanding.
struct SealedUpdate {
  Id128 update_id;
  int64_t round = 0;
  int64_t base_version = 0;
  int64_t train_us = 0;  // for the report that goes with the update
  float loss = 0;
  std::vector<NamedMetric> metrics = {};
  CohortFacts cohort = {};
  std::string message = {};
};

// What is kept for a lineage that the client left for another one of its family (Welcome::family), to be there when it
// comes back.
struct PartedLineage {
  Id128 lineage;
  Id128 prev_applied;
  // Sealed for it, without a verdict that the client heard: neither part of the residual nor to be sent to anyone else.
  absl::optional<SealedUpdate> sealed;
};

// The small part of a client's state: everything but what is as large as the model.
struct StoredHead {
  Id128 lineage;           // zero: the directory is fresh
  Id128 family;            // of the lineage
  int64_t generation = 0;  // number of updates sealed so far; the next update has this number
  Id128 prev_applied;
  bool has_dense = false;  // false: all zero
  std::string minus;
  absl::optional<SealedUpdate> sealed;
  std::vector<PartedLineage> parted;  // the one that was left last comes last
};

// All that is stored. The effective residual is dense - decode(minus); while an update is sealed `dense` is the
// accumulated update and `minus` is empty.
struct StoredState : StoredHead {
  std::vector<float> dense;   // empty: all zero
  std::string trainer_state;  // empty before the first seal
  // The history of the applied updates, for packing: UpdateHistory::Serialize without the newest one, which is `minus`;
  // while an update is sealed, with it. Empty: no update was applied.
  std::string history;
};

// A model that was cached at the last orderly exit; only a way to save a download.
struct CachedModel {
  Id128 lineage;  // the family, whose lineages have the same versions
  int64_t version = 0;
  std::vector<float> weights;
};

// Not thread-safe. With Durability::kStrict every call is durable when it returns. With kRelaxed the state stays in
// memory until Flush, and the manifest says so: a process that starts after a crash finds a fresh residual and `lost()
// == true`.
//
// Any call that writes may fail as FileSystem does. RESOURCE_EXHAUSTED, UNAVAILABLE and others: nothing changed, and
// the same call may be made again. UNKNOWN (IsSyncFailure): a sync failed, or the manifest was replaced and its
// directory not synced; state() is as before the call, the disk holds either state, every later call that writes is
// refused with UNKNOWN, and the process must end.
class ClientState {
 public:
  virtual ~ClientState() = default;

  // Opens or creates DIR, takes its lock, verifies the manifest's checksum and the blobs' sizes and hashes, and removes
  // blobs that it does not name. FAILED_PRECONDITION when another client uses the directory. DATA_LOSS with the file
  // and the remedy (a reset: the residual is then lost, which is counted, and the run goes on) when it is damaged.
  static absl::StatusOr<std::unique_ptr<ClientState>> Open(const std::string& directory,
                                                           FileSystem& files = PosixFiles());

  virtual const StoredHead& state() const = 0;
  // Returns the whole state. With strict durability the large parts are on the disk alone, and are read from there.
  // DATA_LOSS with the file and the remedy when it is damaged; otherwise fails as FileSystem::Read does.
  virtual absl::StatusOr<StoredState> Read() const = 0;
  // The previous process had a residual in memory (relaxed) and did not exit in order. Cleared by Begin, Move and
  // Reset.
  virtual bool lost() const = 0;

  // Starts on a run: a fresh residual for `lineage` unless the state is already of that lineage and family (then it is
  // kept). What was parted with goes with the rest. INVALID_ARGUMENT when either is zero.
  virtual absl::Status Begin(Id128 lineage, Id128 family, Durability durability) = 0;

  // The most updates without a verdict that are kept for lineages that were left. One more takes the place of the
  // oldest, which is then lost.
  static constexpr size_t kMostParted = 16;
  // MOVE: leaves the lineage for another one of the family, in one step. What is sealed is parted with. An update that
  // was parted with for `lineage` is sealed again: `dense` is then the residual with it, and otherwise the residual, in
  // both cases without what was sealed until now. The trainer's state is kept, the history is not. Returns the number
  // of updates that are lost, 0 or 1. INVALID_ARGUMENT for a zero lineage, or the one that the state is of.
  virtual absl::StatusOr<int64_t> Move(Id128 lineage, absl::Span<const float> dense) = 0;

  // SEAL: writes dense, outbox, trainer state and history, syncs them and the directory, then replaces the manifest.
  // From that rename on, the delta counts. FAILED_PRECONDITION while another update is sealed.
  virtual absl::Status Seal(absl::Span<const float> dense, SealedUpdate update, std::string trainer_state,
                            std::string history = {}) = 0;

  // SETTLE: APPLIED: minus = outbox, prev_applied = update_id. NOT_APPLIED: minus empty. Writes only the manifest.
  virtual absl::Status Settle(bool applied) = 0;

  // RESET: zero residual, no history, no sealed update, `last_applied` as the server says. What was parted with stays.
  virtual absl::Status Reset(Id128 last_applied) = 0;

  // Writes everything that is still only in memory (relaxed). No effect when strict.
  virtual absl::Status Flush() = 0;

  virtual absl::Status SaveModel(const CachedModel& model) = 0;
  // nullopt when there is none or it is not whole.
  virtual absl::optional<CachedModel> LoadModel() = 0;

  // The TorchScript file of a run (module_file.h), kept to save a download.
  virtual absl::Status SaveModule(absl::string_view bytes) = 0;
  // nullopt when there is none with the hash of `model`.
  virtual absl::optional<std::string> LoadModule(const ModelSpec& model) = 0;
};

}  // namespace terse

#endif  // TERSE_STORAGE_CLIENT_STATE_H_
