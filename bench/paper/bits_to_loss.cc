#include "bench/paper/bits_to_loss.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace terse {
namespace {

struct Snapshot {
  int64_t bits = 0;
  int64_t rounds = 0;  // committed before it
  double loss = 0;
};

std::vector<Snapshot> SnapshotsOf(const std::vector<v1::Round>& rounds, int64_t epoch_length) {
  std::vector<Snapshot> snapshots;
  int64_t bits = 0;
  for (const v1::Round& round : rounds) {
    const auto version = static_cast<int64_t>(round.base_version());
    if (round.state() == "committed" && version % (epoch_length + 1) == 0) {
      const double no_loss = std::numeric_limits<double>::quiet_NaN();
      snapshots.push_back({bits, version, round.has_train_loss() ? round.train_loss() : no_loss});
    }
    bits += 8 * static_cast<int64_t>(round.payload_bytes_up() + round.payload_bytes_down());
  }
  return snapshots;
}

int64_t Between(int64_t before, int64_t after, double share) {
  return before + std::llround(share * static_cast<double>(after - before));
}

}  // namespace

nlohmann::ordered_json BitsToLoss(const std::vector<v1::Round>& rounds, double target, int64_t epoch_length) {
  nlohmann::ordered_json found = {
      {"bits", nullptr}, {"target_rounds", nullptr}, {"snapshot_bits", nullptr}, {"least_loss", nullptr}};
  const std::vector<Snapshot> snapshots = SnapshotsOf(rounds, epoch_length);
  if (snapshots.empty()) return found;
  double least = std::numeric_limits<double>::infinity();
  for (const Snapshot& snapshot : snapshots) {
    if (snapshot.loss < least) least = snapshot.loss;  // false for NaN
  }
  if (std::isfinite(least)) found["least_loss"] = least;
  const auto below = std::find_if(snapshots.begin(), snapshots.end(),
                                  [target](const Snapshot& snapshot) { return snapshot.loss < target; });
  if (below == snapshots.end()) return found;
  const Snapshot& before = below == snapshots.begin() ? *below : *(below - 1);
  const double fall = before.loss - below->loss;
  // Without a finite loss before, nothing is known of the way, and all of it counts.
  const double share = !std::isfinite(fall) ? 1 : fall > 0 ? (before.loss - target) / fall : 0;
  found["bits"] = Between(before.bits, below->bits, share);
  found["target_rounds"] = Between(before.rounds, below->rounds, share);
  found["snapshot_bits"] = below->bits;
  return found;
}

}  // namespace terse
