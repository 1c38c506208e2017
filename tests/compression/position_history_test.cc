#include "compression/position_history.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "compression/simd.h"
#include "tests/compression/positions.h"

namespace terse {
namespace {

using Masses = std::vector<uint8_t>;

Masses MassesOf(const PositionHistory& history, int side) {
  Masses masses(history.size());
  history.Masses(side, 0, absl::MakeSpan(masses));
  return masses;
}

Positions Range(uint32_t begin, uint32_t end) {
  Positions positions;
  for (uint32_t i = begin; i < end; ++i) positions.push_back(i);
  return positions;
}

TEST(PositionHistory, GivesEveryElementTheMeanMassAtFirst) {
  const PositionHistory history(20, 30);
  EXPECT_TRUE(history.empty());
  EXPECT_EQ(MassesOf(history, 0), Masses(600, 1 << PositionHistory::kMeanMassBits));
}

TEST(PositionHistory, IsNotChangedByAMessageThatSendsNothing) {
  PositionHistory history(20, 30);
  history.Add({}, 0);
  EXPECT_TRUE(history.empty());
  history.Add({1, 2, 3}, 0);
  EXPECT_FALSE(history.empty());
}

TEST(PositionHistory, AnyPartOfTheMassesIsThatPart) {
  Random random(1);
  PositionHistory history(37, 110);
  for (int message = 0; message < 6; ++message) history.Add(ClusteredPositions(37, 110, 0.05, 1.0, &random), 0);
  const Masses all = MassesOf(history, 1);
  for (int64_t begin : {0, 1, 63, 109, 110, 2000}) {
    for (int64_t count : {0, 1, 16, 64, 65, 333, 2070}) {
      Masses part(count);
      history.Masses(1, begin, absl::MakeSpan(part));
      EXPECT_TRUE(std::equal(part.begin(), part.end(), all.begin() + begin)) << begin << " + " << count;
    }
  }
}

TEST(PositionHistory, RowsAndColumnsThatWereSentAreLikelier) {
  PositionHistory history(10, 100);
  for (int message = 0; message < 3; ++message) history.Add(Range(300, 330), 0);
  const Masses masses = MassesOf(history, 0);
  EXPECT_GT(masses[399], masses[599]);  // the row
  EXPECT_GT(masses[510], masses[599]);  // the column
}

// Two halves of an update, each sent by every other message, which the other side's messages never send.
TEST(PositionHistory, TellsTheSidesApart) {
  PositionHistory history(1, 1000);
  for (int message = 0; message < 20; ++message) {
    const int side = message % 2;
    history.Add(side == 0 ? Range(0, 20) : Range(500, 520), side);
  }
  EXPECT_GT(MassesOf(history, 0)[10], 4 * MassesOf(history, 0)[510]);
  EXPECT_GT(MassesOf(history, 1)[510], 4 * MassesOf(history, 1)[10]);
}

// Each message sends what was not sent for longest.
TEST(PositionHistory, LearnsThatWhatWasSentDoesNotReturnSoon) {
  PositionHistory history(1, 10000);
  for (int message = 0; message < 150; ++message) {
    const uint32_t begin = message % 100 * 100;
    history.Add(Range(begin, begin + 100), 0);
  }
  const Masses masses = MassesOf(history, 0);
  EXPECT_EQ(masses[4950], 1);             // just sent
  EXPECT_EQ(masses[2000], 1);             // 30 messages ago
  EXPECT_GT(masses[5050], 20);            // 99 messages ago
  EXPECT_EQ(masses[5050], masses[9999]);  // 50 messages ago are as old
}

// Numbers of blocks come round after 128 of them; an element that was sent once must not become young again.
TEST(PositionHistory, WhatIsOldStaysOld) {
  PositionHistory history(1, 12800);
  history.Add({12700}, 0);
  for (int message = 0; message < 1000; ++message) {
    const uint32_t begin = message % 60 * 100;
    history.Add(Range(begin, begin + 100), 0);
    if (message < 70) continue;
    const Masses masses = MassesOf(history, 0);
    ASSERT_EQ(masses[12700], masses[12701]) << message;
  }
}

TEST(PositionHistory, IsTheSameOnEveryTarget) {
  for (const std::string& target : SimdTargets()) {
    Random random(4);
    PositionHistory one(60, 90), other(60, 90);
    for (int message = 0; message < 300; ++message) {
      const Positions positions = ClusteredPositions(60, 90, 0.02, 0.8, &random);
      ASSERT_TRUE(UseSimdTarget(target).ok());
      one.Add(positions, message % 2);
      ASSERT_TRUE(UseSimdTarget("scalar").ok());
      other.Add(positions, message % 2);
    }
    const Masses expected = MassesOf(other, 0);
    ASSERT_TRUE(UseSimdTarget(target).ok());
    EXPECT_EQ(MassesOf(one, 0), expected) << target;
  }
  ASSERT_TRUE(UseSimdTarget("").ok());
}

}  // namespace
}  // namespace terse
