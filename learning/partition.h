// Which training examples belong to which client.
#ifndef TERSE_LEARNING_PARTITION_H_
#define TERSE_LEARNING_PARTITION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/trainer.h"

namespace terse {

// Indices, in 0..examples-1, of the examples that `shard` trains on.
//   "iid"  SBC section IV: the data is shuffled (the same way for all, by `seed`) and cut into shard.count pieces whose
//   sizes
//          differ by at most one; the shards are disjoint and cover everything.
//   "all"  every example, in order, whatever the shard.
// INVALID_ARGUMENT for another partition, a shard outside its count, or fewer examples than shards.
absl::StatusOr<std::vector<uint32_t>> PartitionExamples(const std::string& partition, int64_t examples,
                                                        const Shard& shard, uint64_t seed);

}  // namespace terse

#endif  // TERSE_LEARNING_PARTITION_H_
