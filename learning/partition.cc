#include "learning/partition.h"

#include <limits>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "core/random.h"
#include "learning/batch_stream.h"

namespace terse {
namespace {

// Keeps the partition's shuffle apart from the other uses of a run's seed.
constexpr uint64_t kPartitionSalt = 0x706172746974696fULL;

absl::Status CheckShard(int64_t examples, const Shard& shard) {
  if (shard.count < 1 || shard.index < 0 || shard.index >= shard.count) {
    return absl::InvalidArgumentError(
        absl::StrCat("shard ", shard.index, " of ", shard.count, " does not exist; shards are numbered from 0"));
  }
  if (examples < shard.count || examples > std::numeric_limits<uint32_t>::max()) {
    return absl::InvalidArgumentError(absl::StrCat(examples, " training examples cannot be cut into ", shard.count,
                                                   " shards; have fewer clients or more data"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<uint32_t>> PartitionExamples(const std::string& partition, int64_t examples,
                                                        const Shard& shard, uint64_t seed) {
  if (absl::Status status = CheckShard(examples, shard); !status.ok()) return status;
  std::vector<uint32_t> order(examples);
  std::iota(order.begin(), order.end(), 0u);
  if (partition == "all") return order;
  if (partition != "iid") {
    return absl::InvalidArgumentError(
        absl::StrCat("partition '", partition, "' is not known; data.partition may be: iid, all"));
  }
  Shuffle(Random(seed ^ kPartitionSalt), &order);
  // The first `longer` shards have one example more.
  const int64_t size = examples / shard.count, longer = examples % shard.count;
  const int64_t begin = shard.index * size + std::min(shard.index, longer);
  const int64_t end = begin + size + (shard.index < longer ? 1 : 0);
  return std::vector<uint32_t>(order.begin() + begin, order.begin() + end);
}

}  // namespace terse
