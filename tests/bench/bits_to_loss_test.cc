#include "bench/paper/bits_to_loss.h"

#include <limits>

#include "gtest/gtest.h"

namespace terse {
namespace {

// Epochs of 9 inner rounds, each of 3 bytes up and 2 down; the round of a gradient has 1,000 up. `losses` of the
// snapshots; those of inner rounds count for nothing.
std::vector<v1::Round> Rounds(const std::vector<double>& losses) {
  std::vector<v1::Round> rounds;
  for (size_t version = 0; version < 10 * losses.size(); ++version) {
    v1::Round round;
    round.set_state("committed");
    round.set_base_version(version);
    round.set_train_loss(version % 10 == 0 ? losses[version / 10] : 0.001);
    round.set_payload_bytes_up(version % 10 == 0 ? 1000 : 3);
    round.set_payload_bytes_down(2);
    rounds.push_back(round);
  }
  return rounds;
}

constexpr int64_t kEpochBits = 8 * (1002 + 9 * 5);

TEST(BitsToLoss, LiesBetweenTheSnapshots) {
  const auto found = BitsToLoss(Rounds({2, 1, 0.6, 0.2, 0.1}), 0.3, 9);
  EXPECT_EQ(found["snapshot_bits"], 3 * kEpochBits) << "what was sent before its gradient";
  EXPECT_EQ(found["bits"], 2 * kEpochBits + 3 * kEpochBits / 4);
  EXPECT_EQ(found["target_rounds"], 28);  // 27.5
  EXPECT_EQ(found["least_loss"], 0.1);
}

TEST(BitsToLoss, TheFirstSnapshotThatIsLowCounts) {
  const auto found = BitsToLoss(Rounds({2, 0.2, 0.6, 0.1}), 0.3, 9);
  EXPECT_EQ(found["snapshot_bits"], kEpochBits);
  EXPECT_EQ(BitsToLoss(Rounds({0.2}), 0.3, 9)["bits"], 0);
}

TEST(BitsToLoss, AbortedRoundsBytesCount) {
  std::vector<v1::Round> rounds = Rounds({2, 1, 0.6, 0.2});
  v1::Round aborted;
  aborted.set_state("aborted");
  aborted.set_payload_bytes_up(50);
  rounds.insert(rounds.begin(), aborted);
  EXPECT_EQ(BitsToLoss(rounds, 0.3, 9)["snapshot_bits"], 3 * kEpochBits + 400);
}

TEST(BitsToLoss, SaysHowNearItCame) {
  const auto found = BitsToLoss(Rounds({2, 1, 1.5}), 0.5, 9);
  EXPECT_TRUE(found["bits"].is_null());
  EXPECT_TRUE(found["target_rounds"].is_null());
  EXPECT_TRUE(found["snapshot_bits"].is_null());
  EXPECT_EQ(found["least_loss"], 1.0);
  EXPECT_TRUE(BitsToLoss({}, 0.5, 9)["least_loss"].is_null());
}

// A snapshot whose clients had no loss is neither the least nor a place to measure from.
TEST(BitsToLoss, SnapshotsWithoutALossAreLeftOut) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  const auto found = BitsToLoss(Rounds({none, 1, none, 0.2, 0.1}), 0.3, 9);
  EXPECT_EQ(found["least_loss"], 0.1);
  EXPECT_EQ(found["snapshot_bits"], 3 * kEpochBits);
  EXPECT_EQ(found["bits"], 3 * kEpochBits) << "all of the way to it";
  EXPECT_EQ(found["target_rounds"], 30);
  EXPECT_TRUE(BitsToLoss(Rounds({none, none}), 0.3, 9)["least_loss"].is_null());
}

}  // namespace
}  // namespace terse
