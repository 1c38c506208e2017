// The epochs of variance-reduced training (SVRG): arithmetic over versions of the model. Yu, Wu, Huang, "Double
// Quantization for Communication-Efficient Distributed Optimization" (NeurIPS 2019), Algorithms 1 and 3.
//
// Epoch s = 0, 1, ... has m + 1 versions, m = server.epoch_length. With first = s * (m + 1):
//
//   version first            the snapshot x~: clients send the full gradient at it
//   version first + 1 + t    the inner iterate x_t, t = 0 .. m - 1: a client sends a variance-reduced gradient at it
//
// and x_m is the next snapshot. A client that has the snapshot needs one message to hold any version of the epoch.
#ifndef TERSE_CORE_EPOCHS_H_
#define TERSE_CORE_EPOCHS_H_

#include <cstdint>

#include "core/run_config.h"

namespace terse {

inline bool HasEpochs(const RunConfig& config) { return config.server.epoch_length > 0; }

inline int64_t VersionsOfEpoch(const RunConfig& config) { return config.server.epoch_length + 1; }

// The epoch of a version, from 0; the snapshot is the first of its own. Needs HasEpochs.
inline int64_t EpochOf(const RunConfig& config, int64_t version) { return version / VersionsOfEpoch(config); }

// The snapshot of the version's epoch. Needs HasEpochs.
inline int64_t SnapshotBefore(const RunConfig& config, int64_t version) {
  return version - version % VersionsOfEpoch(config);
}

// Whether a client needs nothing but its weights to hold the version: true of every version in a run without epochs,
// and of snapshots in one with them. Only such versions have checkpoints.
inline bool StandsAlone(const RunConfig& config, int64_t version) {
  return !HasEpochs(config) || SnapshotBefore(config, version) == version;
}

enum class ClientTask { kTrain, kFullGradient, kGradientStep };

// Returns the task of a client that starts from the weights of `base_version`.
inline ClientTask TaskFrom(const RunConfig& config, int64_t base_version) {
  if (!HasEpochs(config)) return ClientTask::kTrain;
  return StandsAlone(config, base_version) ? ClientTask::kFullGradient : ClientTask::kGradientStep;
}

// Whether an update that was made from the weights of `base_version` is still of use at version `head`, however few
// versions lie between: a gradient belongs to one epoch, and a full one to its snapshot. Once false, it stays false for
// every later head.
inline bool IsOfSameUse(const RunConfig& config, int64_t base_version, int64_t head) {
  if (!HasEpochs(config)) return true;
  return SnapshotBefore(config, base_version) == SnapshotBefore(config, head) &&
         StandsAlone(config, base_version) == StandsAlone(config, head);
}

}  // namespace terse

#endif  // TERSE_CORE_EPOCHS_H_
