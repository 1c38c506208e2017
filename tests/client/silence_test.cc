#include "client/rpc/silence.h"

#include <gtest/gtest.h>

namespace terse {
namespace {

constexpr bool kServed = true, kRefused = false, kSilent = true, kCut = false;

TEST(Silence, OfOneAddressIsLong) {
  Silence silence(/*seconds=*/0, /*addresses=*/1);
  EXPECT_EQ(silence.seconds(), 300);
  for (int i = 0; i < 3; ++i) silence.OnEnd("a:1", kServed, kSilent);
  EXPECT_EQ(silence.seconds(), 300);
}

TEST(Silence, StaysWhereTheUserNamedIt) {
  Silence silence(/*seconds=*/7, /*addresses=*/2);
  for (int i = 0; i < 3; ++i) silence.OnEnd("a:1", kServed, kSilent);
  EXPECT_EQ(silence.seconds(), 7);
}

TEST(Silence, StaysShortFromOneCoordinatorToTheNext) {
  Silence silence(/*seconds=*/0, /*addresses=*/2);
  for (const char* const address : {"a:1", "b:1", "a:1"}) {
    silence.OnEnd(address, kServed, kSilent);
    EXPECT_EQ(silence.seconds(), 5);
  }
}

TEST(Silence, StaysShortWhenConnectionsEndOtherwise) {
  Silence silence(/*seconds=*/0, /*addresses=*/2);
  for (int i = 0; i < 3; ++i) silence.OnEnd("a:1", kServed, kCut);
  silence.OnEnd("a:1", kServed, kSilent);
  silence.OnEnd("b:1", kServed, kCut);
  silence.OnEnd("a:1", kRefused, kCut);
  EXPECT_EQ(silence.seconds(), 5) << "it is there again, and stands by";
}

TEST(Silence, DoublesWhileTheSilentOneServesAgain) {
  Silence silence(/*seconds=*/0, /*addresses=*/2);
  silence.OnEnd("a:1", kServed, kSilent);
  for (const double seconds : {10, 20, 40, 60, 60}) {
    silence.OnEnd("b:1", kRefused, kCut);
    silence.OnEnd("a:1", kServed, kSilent);
    EXPECT_EQ(silence.seconds(), seconds);
  }
  for (const double seconds : {30.0, 15.0, 7.5, 5.0, 5.0}) {
    silence.OnEnd(seconds == 15 || seconds == 5 ? "a:1" : "b:1", kServed, kCut);
    EXPECT_EQ(silence.seconds(), seconds);
  }
}

// Not even a welcome, or a refusal, comes in time.
TEST(Silence, DoublesWhereNobodyIsHeard) {
  Silence silence(/*seconds=*/0, /*addresses=*/3);
  for (const double seconds : {5, 10, 20}) {
    for (const char* const address : {"a:1", "b:1", "c:1"}) {
      silence.OnEnd(address, kRefused, kSilent);
      EXPECT_EQ(silence.seconds(), seconds) << address;
    }
  }
  silence.OnEnd("a:1", kServed, kCut);
  EXPECT_EQ(silence.seconds(), 40);
}

}  // namespace
}  // namespace terse
