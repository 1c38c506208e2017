#include "net/peer_places.h"

#include <gtest/gtest.h>

#include <vector>

namespace terse {
namespace {

TEST(PeerPlaces, NobodyTakesTooMany) {
  PeerPlaces places(/*most=*/5, /*most_of_one=*/2);
  std::vector<std::unique_ptr<PeerPlaces::Place>> taken;
  const auto take = [&](const char* peer) {
    auto place = places.Take(peer);
    const bool ok = place != nullptr;
    if (ok) taken.push_back(std::move(place));
    return ok;
  };
  EXPECT_TRUE(take("a") && take("a"));
  EXPECT_FALSE(take("a"));
  EXPECT_TRUE(take("b") && take("b"));
  EXPECT_TRUE(take("c"));
  EXPECT_FALSE(take("d")) << "all are taken";
  taken.erase(taken.begin());
  EXPECT_TRUE(take("a")) << "a place that was given back";
  taken.clear();
  EXPECT_TRUE(take("d") && take("d"));
  EXPECT_FALSE(take("d"));
}

}  // namespace
}  // namespace terse
