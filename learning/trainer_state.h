// The bytes of LocalTrainer::SaveState.
//
//   8 bytes  "TERSETS1"
//   16       identity: a hash of what the state belongs to (model, optimizer, data, shard, seed)
//   8 each   epoch, offset, optimizer step, little-endian
//   4 each   every float of every optimizer slot, little-endian; the sizes are the reader's own
//            the bytes of every extra; the sizes are the reader's own
//   16       XXH3-128 of everything before it
#ifndef TERSE_LEARNING_TRAINER_STATE_H_
#define TERSE_LEARNING_TRAINER_STATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/id128.h"
#include "learning/batch_stream.h"
#include "learning/optimizers.h"

namespace terse {

struct TrainerState {
  BatchStream::Position position;
  OptimizerState optimizer;
  // The tensors that a client keeps from round to round as well: buffers that stay with it, the hidden state of its
  // text. Each is a tensor's elements as they lie in memory.
  std::vector<std::string> extras;
};

// The sizes that a reader expects.
struct TrainerStateShape {
  int slots = 0;
  int64_t parameters = 0;       // floats of each slot
  std::vector<int64_t> extras;  // bytes of each
};

// The parts of a TrainerState as bytes; apart, because the optimizer's is as large as the model and stays where it is.
std::string EncodeTrainerState(const BatchStream::Position& position, const OptimizerState& optimizer,
                               const std::vector<std::string>& extras, Id128 identity);

// DATA_LOSS, with the reason, when the bytes are damaged, cut short, or of another identity or size.
absl::StatusOr<TrainerState> DecodeTrainerState(absl::string_view bytes, Id128 identity,
                                                const TrainerStateShape& shape);

}  // namespace terse

#endif  // TERSE_LEARNING_TRAINER_STATE_H_
