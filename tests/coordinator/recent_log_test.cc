#include "coordinator/recent_log.h"

#include <memory>
#include <string>

#include "gtest/gtest.h"

namespace terse {
namespace {

std::shared_ptr<const std::string> Message(size_t size) { return std::make_shared<const std::string>(size, 'x'); }

TEST(RecentLog, HasNothingAtFirst) {
  const RecentLog log(100);
  EXPECT_FALSE(log.ReachesBackTo(0));
}

TEST(RecentLog, CountsTheBytesAfterAVersion) {
  RecentLog log(100);
  log.Add(5, Id128(), Message(10));
  log.Add(6, Id128(), Message(20));
  log.Add(7, Id128(), Message(30));
  EXPECT_FALSE(log.ReachesBackTo(3));
  EXPECT_TRUE(log.ReachesBackTo(4));
  EXPECT_EQ(log.BytesAfter(4), 60);
  EXPECT_EQ(log.BytesAfter(5), 50);
  EXPECT_EQ(log.BytesAfter(6), 30);
  EXPECT_EQ(log.BytesAfter(7), 0);
  EXPECT_EQ(log.At(6).message->size(), 20);
}

TEST(RecentLog, ForgetsTheOldestForTheNewest) {
  RecentLog log(100);
  for (int64_t version = 1; version <= 10; ++version) log.Add(version, Id128(), Message(30));
  EXPECT_FALSE(log.ReachesBackTo(6));
  EXPECT_TRUE(log.ReachesBackTo(7));
  EXPECT_EQ(log.BytesAfter(7), 90);
  log.Add(11, Id128(), Message(1000));
  EXPECT_FALSE(log.ReachesBackTo(9));
  EXPECT_TRUE(log.ReachesBackTo(10)) << "the newest is always there";
}

}  // namespace
}  // namespace terse
