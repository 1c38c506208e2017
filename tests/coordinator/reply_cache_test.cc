#include "web/reply_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "tests/testing/fake_clock.h"

namespace terse {
namespace {

// Makes numbered answers, each in `seconds`.
class Maker {
 public:
  Maker(FakeClock* clock, double seconds) : clock_(clock), seconds_(seconds) {}
  absl::StatusOr<std::string> operator()() {
    clock_->Advance(seconds_);
    return absl::StrCat("answer ", ++made_);
  }
  int made() const { return made_; }

 private:
  FakeClock* const clock_;
  const double seconds_;
  int made_ = 0;
};

class ReplyCacheTest : public testing::Test {
 protected:
  std::string Get(const std::string& key, Maker& maker) {
    const absl::StatusOr<ReplyCache::Body> body = cache_.Get(key, std::ref(maker));
    return body.ok() ? (*body)->plain : body.status().ToString();
  }

  FakeClock clock_;
  ReplyCache cache_{&clock_};
};

TEST_F(ReplyCacheTest, ACheapAnswerServesForHalfASecond) {
  Maker maker(&clock_, 0);
  EXPECT_EQ(Get("runs", maker), "answer 1");
  clock_.Advance(0.4999);
  EXPECT_EQ(Get("runs", maker), "answer 1");
  clock_.Advance(0.0002);
  EXPECT_EQ(Get("runs", maker), "answer 2");
}

TEST_F(ReplyCacheTest, ADearAnswerServesForTenTimesItsCost) {
  Maker maker(&clock_, 0.2);
  EXPECT_EQ(Get("clients", maker), "answer 1");
  clock_.Advance(1.99);
  EXPECT_EQ(Get("clients", maker), "answer 1");
  clock_.Advance(0.02);
  EXPECT_EQ(Get("clients", maker), "answer 2");
}

TEST_F(ReplyCacheTest, NoAnswerServesForMoreThanHalfAMinute) {
  Maker maker(&clock_, 60);
  Get("clients", maker);
  clock_.Advance(30.01);
  EXPECT_EQ(Get("clients", maker), "answer 2");
}

TEST_F(ReplyCacheTest, KeysHaveTheirOwnAnswers) {
  Maker maker(&clock_, 0);
  EXPECT_EQ(Get("a", maker), "answer 1");
  EXPECT_EQ(Get("b", maker), "answer 2");
  EXPECT_EQ(Get("a", maker), "answer 1");
}

TEST_F(ReplyCacheTest, ErrorsAreNotKept) {
  int calls = 0;
  const auto fail = [&]() -> absl::StatusOr<std::string> {
    ++calls;
    return absl::NotFoundError("no such run");
  };
  EXPECT_EQ(cache_.Get("runs/x", fail).status(), absl::NotFoundError("no such run"));
  EXPECT_EQ(cache_.Get("runs/x", fail).status(), absl::NotFoundError("no such run"));
  EXPECT_EQ(calls, 2);
}

TEST_F(ReplyCacheTest, AClockThatIsSetBackMakesAnswersNoFresher) {
  Maker maker(&clock_, 0);
  Get("runs", maker);
  clock_.Set(-3600);
  EXPECT_EQ(Get("runs", maker), "answer 1");
  clock_.Advance(3600);
  EXPECT_EQ(Get("runs", maker), "answer 2");
}

TEST_F(ReplyCacheTest, TheOldestAnswerGoesWhenThereAreTooMany) {
  Maker maker(&clock_, 0);
  for (size_t i = 0; i <= ReplyCache::kMostReplies; ++i) {
    Get(absl::StrCat(i), maker);
    clock_.Advance(0.001);
  }
  const int made = maker.made();
  Get("1", maker);
  EXPECT_EQ(maker.made(), made) << "the second one was forgotten";
  Get("0", maker);
  EXPECT_EQ(maker.made(), made + 1) << "the first one was kept";
}

TEST_F(ReplyCacheTest, LargeAnswersPushOthersOut) {
  int calls = 0;
  // Packed, it is not a thousandth more.
  const auto large = [&]() -> absl::StatusOr<std::string> {
    ++calls;
    return std::string(ReplyCache::kMostReplyBytes / 2 - (1 << 20), 'x');
  };
  for (const char* key : {"a", "b", "c"}) {
    ASSERT_TRUE(cache_.Get(key, large).ok());
    clock_.Advance(0.001);
  }
  ASSERT_TRUE(cache_.Get("c", large).ok());
  ASSERT_TRUE(cache_.Get("b", large).ok());
  EXPECT_EQ(calls, 3);
  ASSERT_TRUE(cache_.Get("a", large).ok());
  EXPECT_EQ(calls, 4);
}

TEST_F(ReplyCacheTest, OneThatIsTooLargeIsNotKept) {
  int calls = 0;
  const auto too_large = [&]() -> absl::StatusOr<std::string> {
    ++calls;
    return std::string(ReplyCache::kMostReplyBytes + 1, 'x');
  };
  Maker maker(&clock_, 0);
  Get("small", maker);
  EXPECT_EQ((*cache_.Get("a", too_large))->plain.size(), ReplyCache::kMostReplyBytes + 1);
  ASSERT_TRUE(cache_.Get("a", too_large).ok());
  EXPECT_EQ(calls, 2);
  Get("small", maker);
  EXPECT_EQ(maker.made(), 1) << "it pushed others out";
}

TEST_F(ReplyCacheTest, AnswersArePackedOnce) {
  const auto make = []() -> absl::StatusOr<std::string> { return std::string(10'000, 'x'); };
  const ReplyCache::Body first = *cache_.Get("a", make), second = *cache_.Get("a", make);
  EXPECT_EQ(first, second);
  EXPECT_LT(first->gzip.size(), 200);
  EXPECT_EQ(first->gzip.substr(0, 2), "\x1f\x8b");
}

TEST_F(ReplyCacheTest, OneQuestionDoesNotWaitForAnother) {
  absl::Notification begun, go;
  std::thread slow([&] {
    cache_
        .Get("slow",
             [&]() -> absl::StatusOr<std::string> {
               begun.Notify();
               go.WaitForNotification();
               return std::string("late");
             })
        .IgnoreError();
  });
  begun.WaitForNotification();
  Maker maker(&clock_, 0);
  EXPECT_EQ(Get("quick", maker), "answer 1");
  go.Notify();
  slow.join();
}

TEST_F(ReplyCacheTest, WhoWaitedForAFailureTriesItself) {
  absl::Notification begun, go;
  std::thread first([&] {
    EXPECT_FALSE(cache_
                     .Get("x",
                          [&]() -> absl::StatusOr<std::string> {
                            begun.Notify();
                            go.WaitForNotification();
                            return absl::UnavailableError("the disk");
                          })
                     .ok());
  });
  begun.WaitForNotification();
  std::thread second([&] {
    EXPECT_EQ((*cache_.Get("x", []() -> absl::StatusOr<std::string> { return std::string("there"); }))->plain, "there");
  });
  go.Notify();
  first.join();
  second.join();
}

TEST_F(ReplyCacheTest, ManyViewersShareOneAnswer) {
  std::atomic<int> calls{0};
  const auto make = [&]() -> absl::StatusOr<std::string> {
    ++calls;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return std::string("shared");
  };
  std::vector<std::thread> viewers;
  for (int i = 0; i < 8; ++i) viewers.emplace_back([&] { EXPECT_EQ((*cache_.Get("runs", make))->plain, "shared"); });
  for (std::thread& viewer : viewers) viewer.join();
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace terse
