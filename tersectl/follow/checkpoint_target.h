// Checkpoints of a run's model, in a folder or in a bucket.
#ifndef TERSE_TERSECTL_FOLLOW_CHECKPOINT_TARGET_H_
#define TERSE_TERSECTL_FOLLOW_CHECKPOINT_TARGET_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "tersectl/admin_client.h"
#include "tersectl/follow/stop_signal.h"
#include "tersectl/follow/target.h"
#include "tersectl/objects/object_store.h"

namespace terse {

struct CheckpointOptions {
  uint64_t every = 50;  // versions between two
  int64_t keep = 3;     // newest that are kept of a run; 0: all
  // Connects with the rights of an operator, whom alone the coordinator gives a model.
  std::function<absl::StatusOr<AdminClient>(const std::string& run)> connect;
  StopSignal* stop = nullptr;  // ends the calls of the coordinator, unless it is null
};

// Stores the model whenever `every` versions have passed since the newest checkpoint that is there, and when the run
// has ended, as RUN-LINEAGE/NNNNNNNNNN.safetensors: the run's name, the first 8 digits of its lineage, and the version.
// It is always the newest model, so that versions may be left out when a run is quicker than the place. Older
// checkpoints of the same run are removed then.
std::unique_ptr<FollowTarget> MakeCheckpointTarget(std::unique_ptr<ObjectStore> store, CheckpointOptions options);

}  // namespace terse

#endif  // TERSE_TERSECTL_FOLLOW_CHECKPOINT_TARGET_H_
