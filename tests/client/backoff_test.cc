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

TEST(Backoff, StaysShortWhileSomebodyElseMayAnswerSoon) {
  Backoff backoff(absl::Seconds(0.5), /*seed=*/1, Backoff::Expects::kSoon);
  absl::Duration waited;
  for (const double seconds : {0.5, 1.0, 2.0, 4.0, 4.0, 4.0, 4.0}) {
    const absl::Duration wait = backoff.Next();
    EXPECT_GE(wait, absl::Seconds(seconds) / 2);
    EXPECT_LE(wait, absl::Seconds(seconds));
    waited += wait;
  }
  while (waited < absl::Minutes(2)) waited += backoff.Next();
  for (int i = 0; i < 4; ++i) backoff.Next();
  EXPECT_GE(backoff.Next(), absl::Seconds(30)) << "after two minutes it is no takeover";
  backoff.Reset();
  EXPECT_LE(backoff.Next(), absl::Seconds(0.5));
  for (int i = 0; i < 20; ++i) EXPECT_LE(backoff.Next(), absl::Seconds(4));
}

TEST(Backoff, IsNotShorterThanItsFirstWait) {
  Backoff backoff(absl::Seconds(30), /*seed=*/1, Backoff::Expects::kSoon);
  backoff.Next();
  EXPECT_GE(backoff.Next(), absl::Seconds(15));
}

}  // namespace
}  // namespace terse
