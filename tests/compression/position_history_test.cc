#include "compression/position_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
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

// Each message sends the elements that were not sent for the longest time.
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

// The offsets of the fields of a state (FORMAT.md, "State of a history").
constexpr size_t kNowAt = 0, kFadeAt = 8, kMessagesAt = 16, kBlocksAt = 24, kSentAt = kBlocksAt + 4 * 128;
constexpr size_t kCells = 7 * 16, kSeenAt = kSentAt + 8 * kCells;

PositionHistory WithThreeMessages() {
  PositionHistory history(20, 30);
  for (uint32_t message = 0; message < 3; ++message) history.Add(Range(10 * message, 10 * message + 25), message % 2);
  return history;
}

std::string StateOf(const PositionHistory& history) {
  std::string state;
  history.AppendState(&state);
  return state;
}

std::string With(std::string state, size_t at, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) state[at + i] = static_cast<char>(value >> (8 * i));
  return state;
}

TEST(PositionHistoryState, RefusesFieldsThatNoHistoryHas) {
  const std::string state = StateOf(WithThreeMessages());
  EXPECT_EQ(static_cast<int64_t>(state.size()), WithThreeMessages().StateBytes());
  ASSERT_TRUE(PositionHistory::FromState(20, 30, state).ok());
  const auto expect_refused = [](const std::string& bytes, const char* reason) {
    EXPECT_THAT(PositionHistory::FromState(20, 30, bytes).status().ToString(), ::testing::HasSubstr(reason));
  };
  expect_refused(state.substr(1), "bytes; this tensor's state has");
  expect_refused(state + '\0', "bytes; this tensor's state has");
  expect_refused(With(state, kNowAt, 4, 8), "counters");
  expect_refused(With(With(state, kNowAt, uint64_t{1} << 49, 8), kMessagesAt, uint64_t{1} << 49, 8), "counters");
  expect_refused(With(state, kMessagesAt, ~uint64_t{0}, 8), "counters");
  expect_refused(With(state, kFadeAt, 0, 8), "fade");
  expect_refused(With(state, kFadeAt, 8 * 30 + 1, 8), "fade");
  expect_refused(With(state, kBlocksAt, 1201, 4), "a block");
  expect_refused(With(state, kBlocksAt + 4 * 3, 5, 4), "growing block");
  expect_refused(With(state, kSentAt, (uint64_t{1} << 44) + 1, 8), "a cell");
  expect_refused(With(state, kSeenAt + 8 * (kCells - 1), (uint64_t{1} << 44) + 1, 8), "a cell");
  expect_refused(With(state, kSentAt, uint64_t{1} << 40, 8), "more positions than elements");
}

// A state that is accepted is safe to use, whatever it means: masses are 1 or more, and messages can be added.
TEST(PositionHistoryState, IsSafeToUseHoweverItIsDamaged) {
  const std::string state = StateOf(WithThreeMessages());
  Random random(8);
  int taken = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    std::string damaged = state;
    const int changes = 1 + static_cast<int>(random.Below(6));
    for (int i = 0; i < changes; ++i) damaged[random.Below(state.size())] = static_cast<char>(random.Next());
    auto history = PositionHistory::FromState(20, 30, damaged);
    if (!history.ok()) continue;
    ++taken;
    EXPECT_EQ(StateOf(*history), damaged);
    for (int message = 0; message < 3; ++message) {
      for (uint8_t mass : MassesOf(*history, message % 2)) ASSERT_GE(mass, 1);
      history->Add(Range(7, 300), message % 2);
    }
  }
  EXPECT_GT(taken, 300);
}

}  // namespace
}  // namespace terse
