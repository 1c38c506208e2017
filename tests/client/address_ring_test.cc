#include "client/rpc/address_ring.h"

#include <gtest/gtest.h>

namespace terse {
namespace {

TEST(AddressRing, AsksEveryoneBeforeItIsTimeToWait) {
  AddressRing ring({"a:1", "b:1", "c:1"});
  EXPECT_EQ(ring.current(), "a:1");
  EXPECT_FALSE(ring.Next());
  EXPECT_EQ(ring.current(), "b:1");
  EXPECT_FALSE(ring.Next());
  EXPECT_EQ(ring.rounds(), 0);
  EXPECT_TRUE(ring.Next());
  EXPECT_EQ(ring.rounds(), 1);
  EXPECT_EQ(ring.current(), "a:1");
  EXPECT_FALSE(ring.Next());
  ring.Reset();
  EXPECT_EQ(ring.rounds(), 0);
  EXPECT_TRUE(ring.has_several());
  EXPECT_FALSE(AddressRing({"a:1"}).has_several());
}

TEST(AddressRing, BeginsAnewAfterAConnectionThatWasOfUse) {
  AddressRing ring({"a:1", "b:1", "c:1"});
  EXPECT_FALSE(ring.Next());
  EXPECT_FALSE(ring.Next());
  ring.Reset();
  EXPECT_EQ(ring.current(), "c:1") << "it stays where it is";
  EXPECT_FALSE(ring.Next());
  EXPECT_FALSE(ring.Next());
  EXPECT_TRUE(ring.Next());
}

TEST(AddressRing, OfOneAddressWaitsEachTime) {
  AddressRing ring({"a:1"});
  EXPECT_TRUE(ring.Next());
  EXPECT_TRUE(ring.Next());
  EXPECT_EQ(ring.current(), "a:1");
}

}  // namespace
}  // namespace terse
