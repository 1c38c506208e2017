#include "client/rpc/backoff.h"

#include <gtest/gtest.h>

namespace terse {
namespace {

constexpr absl::Duration kFirst = absl::Seconds(1);

TEST(Backoff, DoublesUpToAMinuteWithJitter) {
  Backoff backoff(kFirst, /*seed=*/1);
  for (const int seconds : {1, 2, 4, 8, 16, 32, 60, 60}) {
    const absl::Duration wait = backoff.Next();
    EXPECT_GE(wait, absl::Seconds(seconds) / 2);
    EXPECT_LE(wait, absl::Seconds(seconds));
  }
}

TEST(Backoff, BeginsAnewAfterWhatWasOfUse) {
  Backoff backoff(kFirst, /*seed=*/1);
  for (int i = 0; i < 4; ++i) backoff.Next();
  backoff.Reset();
  EXPECT_LE(backoff.Next(), kFirst);
}

}  // namespace
}  // namespace terse
