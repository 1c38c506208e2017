#include "client/observations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace terse {
namespace {

TEST(Observations, AreStoredBesideTheTrainersState) {
  for (const char* trainer : {"", "momentum"}) {
    const std::string stored = WithObservations("seen", trainer);
    EXPECT_EQ(stored, std::string(kObservationsMark) + std::string("\4\0\0\0seen", 8) + trainer);
    const auto state = ReadObservations(stored);
    ASSERT_TRUE(state.ok()) << state.status();
    EXPECT_EQ(state->observations, "seen");
    EXPECT_EQ(state->trainer_state, trainer);
  }
}

TEST(Observations, ThatAreNoneLeaveTheStateAsItIs) {
  for (const char* trainer : {"", "momentum"}) {
    EXPECT_EQ(WithObservations("", trainer), trainer);
    EXPECT_EQ(ReadObservations(trainer)->trainer_state, trainer);
    EXPECT_EQ(ReadObservations(trainer)->observations, "");
  }
}

TEST(Observations, OfAnotherFormAreRefused) {
  const std::string stored = WithObservations("seen", "");
  for (size_t size = kObservationsMark.size(); size < stored.size(); ++size) {
    EXPECT_TRUE(absl::IsDataLoss(ReadObservations(stored.substr(0, size)).status())) << size;
  }
}

}  // namespace
}  // namespace terse
