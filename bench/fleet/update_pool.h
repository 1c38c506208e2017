// Updates that were encoded before a load begins, for all clients of a process.
#ifndef TERSE_BENCH_FLEET_UPDATE_POOL_H_
#define TERSE_BENCH_FLEET_UPDATE_POOL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compression/codec.h"

namespace terse {

// Valid messages of a run's codec, each of other random values. Their norms are alike, so no check of norms refuses
// one. Immutable.
class UpdatePool {
 public:
  // Encodes kMessages updates, fewer where those would have more than kMostBytes together, but at least two. Normal
  // draws of deviation kDeviation from `seed`: weights stay far from the bound of 1e15 for as long as a run may last.
  // Takes the memory of one update of 4 bytes an element meanwhile. Statuses of Codec::Encode.
  static absl::StatusOr<UpdatePool> Prepare(const Codec& codec, uint64_t seed);

  // The message that a client sends in a round, which is another one from round to round.
  const std::string& Take(int64_t client, int64_t round) const { return messages_[(client * 31 + round) % size()]; }
  int64_t size() const { return static_cast<int64_t>(messages_.size()); }

  static constexpr int64_t kMessages = 32;
  static constexpr int64_t kMostBytes = int64_t{64} << 20;
  static constexpr float kDeviation = 1e-3F;

 private:
  std::vector<std::string> messages_;
};

}  // namespace terse

#endif  // TERSE_BENCH_FLEET_UPDATE_POOL_H_
