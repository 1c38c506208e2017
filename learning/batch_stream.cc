#include "learning/batch_stream.h"

#include <algorithm>
#include <utility>

namespace terse {
namespace {

// Keeps the order of batches apart from the other uses of a run's seed.
constexpr uint64_t kBatchSalt = 0x6261746368657321ULL;

}  // namespace

void Shuffle(Random random, std::vector<uint32_t>* values) {
  for (size_t i = values->size(); i > 1; --i) std::swap((*values)[i - 1], (*values)[random.Below(i)]);
}

BatchStream::BatchStream(std::vector<uint32_t> examples, int64_t batch_size, uint64_t seed, int64_t shard_index)
    : examples_(std::move(examples)), seed_(Random(seed ^ kBatchSalt, shard_index).Next()), batch_(batch_size) {}

void BatchStream::ShuffleEpoch() {
  if (shuffled_epoch_ == position_.epoch) return;
  order_ = examples_;
  Shuffle(Random(seed_, position_.epoch), &order_);
  shuffled_epoch_ = position_.epoch;
}

absl::Span<const uint32_t> BatchStream::Next() {
  for (size_t filled = 0; filled < batch_.size();) {
    ShuffleEpoch();
    const int64_t take = std::min<int64_t>(batch_.size() - filled, size() - position_.offset);
    std::copy_n(order_.begin() + position_.offset, take, batch_.begin() + filled);
    filled += take;
    position_.offset += take;
    if (position_.offset == size()) position_ = {position_.epoch + 1, 0};
  }
  return batch_;
}

bool BatchStream::Seek(Position position) {
  if (position.epoch < 0 || position.offset < 0 || position.offset >= size()) return false;
  position_ = position;
  return true;
}

}  // namespace terse
