#include "bench/fleet/update_pool.h"

#include <algorithm>
#include <utility>

#include "bench/synthetic.h"
#include "core/random.h"
#include "core/status.h"

namespace terse {

absl::StatusOr<UpdatePool> UpdatePool::Prepare(const Codec& codec, uint64_t seed) {
  std::vector<float> update = Gaussian(codec.layout().size(), seed);
  for (float& value : update) value *= kDeviation;
  Random random(seed, /*stream=*/1);
  UpdatePool pool;
  int64_t bytes = 0;
  for (int64_t i = 0; i < kMessages; ++i) {
    // The same numbers in other places: as many draws would take longer than all the rest.
    const auto middle = update.begin() + static_cast<int64_t>(random.Below(update.size()));
    std::rotate(update.begin(), middle, update.end());
    EncodeOptions options;
    options.key = {seed, static_cast<uint64_t>(i), 0};
    TERSE_ASSIGN_OR_RETURN(std::string message, codec.Encode(update, options));
    bytes += static_cast<int64_t>(message.size());
    if (bytes > kMostBytes && i >= 2) break;
    pool.messages_.push_back(std::move(message));
  }
  return pool;
}

}  // namespace terse
