#include "client/rpc/silence.h"

#include <gtest/gtest.h>

namespace terse {
namespace {

TEST(Silence, OfOneAddressIsLong) {
  Silence silence(/*seconds=*/0, /*addresses=*/1);
  EXPECT_EQ(silence.seconds(), 300);
  for (int i = 0; i < 3; ++i) silence.OnEnd("a:1", /*fell_silent=*/true);
  EXPECT_EQ(silence.seconds(), 300);
}

TEST(Silence, StaysWhereTheUserNamedIt) {
  Silence silence(/*seconds=*/7, /*addresses=*/2);
  for (int i = 0; i < 3; ++i) silence.OnEnd("a:1", /*fell_silent=*/true);
  EXPECT_EQ(silence.seconds(), 7);
}

TEST(Silence, StaysShortFromOneCoordinatorToTheNext) {
  Silence silence(/*seconds=*/0, /*addresses=*/2);
  for (const char* const address : {"a:1", "b:1", "a:1"}) {
    silence.OnEnd(address, /*fell_silent=*/true);
    EXPECT_EQ(silence.seconds(), 5);
  }
}

TEST(Silence, StaysShortWhenConnectionsEndOtherwise) {
  Silence silence(/*seconds=*/0, /*addresses=*/2);
  for (int i = 0; i < 3; ++i) silence.OnEnd("a:1", /*fell_silent=*/false);
  EXPECT_EQ(silence.seconds(), 5);
}

TEST(Silence, DoublesWhileTheSilentOneServesAgain) {
  Silence silence(/*seconds=*/0, /*addresses=*/2);
  silence.OnEnd("a:1", /*fell_silent=*/true);
  for (const double seconds : {10, 20, 40, 60, 60}) {
    silence.OnEnd("a:1", /*fell_silent=*/true);
    EXPECT_EQ(silence.seconds(), seconds);
  }
  silence.OnEnd("a:1", /*fell_silent=*/false);
  EXPECT_EQ(silence.seconds(), 60);
  silence.OnEnd("b:1", /*fell_silent=*/false);
  EXPECT_EQ(silence.seconds(), 5);
}

}  // namespace
}  // namespace terse
