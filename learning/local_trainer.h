// SGD_n (SBC Algorithm 1) on one client's shard, with LibTorch. This header does not include LibTorch.
#ifndef TERSE_LEARNING_LOCAL_TRAINER_H_
#define TERSE_LEARNING_LOCAL_TRAINER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/run_config.h"
#include "core/trainer.h"
#include "learning/blueprint.h"
#include "learning/datasets/dataset.h"

namespace terse {

// A trainer of `blueprint`, which is config's, with its optimizer, batch size, partition and seed on `shard` of the
// training data. On the same machine, with the same LibTorch and one thread, the same calls give the same bits, also
// after SaveState and RestoreState in another process. `device` is "auto", "cpu" or "cuda"; with CUDA weights, gradient
// and optimizer state stay on it. INVALID_ARGUMENT for an unknown optimizer, loss, partition or device, a batch size
// below 1, a shard that does not exist, no training data, or, with file and example, data that do not fit the model
// (their shape, the range and kind of their targets); FAILED_PRECONDITION for "cuda" where there is none; INTERNAL when
// LibTorch fails.
absl::StatusOr<std::unique_ptr<LocalTrainer>> MakeLocalTrainer(const RunConfig& config, const Shard& shard,
                                                               std::shared_ptr<const Blueprint> blueprint,
                                                               std::shared_ptr<const Dataset> dataset,
                                                               absl::string_view device);

// The factory that a client hands to its engine: loads the run's data set from `data_dir` once (LoadDataset) and makes
// trainers as above. Copies share the loaded data. Thread-safe. Also returns what LoadDataset and MakeBlueprint return.
// A device that MakeLocalTrainer would not take is refused here already, as there.
absl::StatusOr<TrainerFactory> MakeTrainerFactory(const std::string& data_dir, const std::string& device);

}  // namespace terse

#endif  // TERSE_LEARNING_LOCAL_TRAINER_H_
