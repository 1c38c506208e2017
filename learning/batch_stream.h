// The order in which a client sees its examples.
#ifndef TERSE_LEARNING_BATCH_STREAM_H_
#define TERSE_LEARNING_BATCH_STREAM_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "core/random.h"

namespace terse {

// Shuffles by Fisher and Yates, the same on every machine.
void Shuffle(Random random, std::vector<uint32_t>* values);

// Endless mini-batches over a fixed set of examples. Every epoch is a fresh shuffle by (seed, shard index, epoch) and
// shows each example once; a batch that reaches the end of an epoch goes on in the next, so all batches have the same
// size. Not thread-safe.
class BatchStream {
 public:
  struct Position {
    int64_t epoch = 0;
    int64_t offset = 0;  // examples of the epoch already seen, below its length
  };

  // `examples` must not be empty, batch_size at least 1.
  BatchStream(std::vector<uint32_t> examples, int64_t batch_size, uint64_t seed, int64_t shard_index);

  // The next batch_size example indices; valid until the next call.
  absl::Span<const uint32_t> Next();

  Position position() const { return position_; }
  // Continues at `position`; returns false, and changes nothing, when there is no such position in this stream.
  bool Seek(Position position);
  int64_t size() const { return static_cast<int64_t>(examples_.size()); }

 private:
  void ShuffleEpoch();

  const std::vector<uint32_t> examples_;
  const uint64_t seed_;
  Position position_;
  int64_t shuffled_epoch_ = -1;  // the epoch that order_ is for
  std::vector<uint32_t> order_;
  std::vector<uint32_t> batch_;
};

}  // namespace terse

#endif  // TERSE_LEARNING_BATCH_STREAM_H_
