#include "bench/paper/thin_link.h"

#include <memory>
#include <string>

#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace terse {
namespace {

// Says the same again and again, at once.
class InstantLink : public CoordinatorLink {
 public:
  absl::Status Send(const FromClient& message) override {
    ++sent;
    return absl::OkStatus();
  }
  absl::StatusOr<FromServer> Receive() override { return next; }
  void SetMaxDeltaBytes(int64_t bytes) override { max_delta_bytes = bytes; }
  absl::StatusOr<std::string> DownloadCheckpoint(Id128, int64_t, int64_t) override { return file; }
  absl::StatusOr<std::string> DownloadModule(Id128, int64_t) override { return file; }

  int sent = 0;
  int64_t max_delta_bytes = 0;
  FromServer next = Receipt{};
  std::string file = std::string(20000, 'f');
};

template <typename Call>
double Seconds(Call call) {
  const absl::Time start = absl::Now();
  call();
  return absl::ToDoubleSeconds(absl::Now() - start);
}

// 100 KB/s: so slow that a busy machine makes no difference to what is bounded from below.
class ThinLinkTest : public ::testing::Test {
 protected:
  InstantLink inner_;
  ThinLink link_{&inner_, 1e5};
};

TEST_F(ThinLinkTest, AnUpdateTakesItsTime) {
  Update update;
  update.message = std::string(20000, 'u');
  EXPECT_GE(Seconds([&] { EXPECT_EQ(link_.Send(update), absl::OkStatus()); }), 0.2);
  EXPECT_EQ(inner_.sent, 1);
}

TEST_F(ThinLinkTest, ADownstreamMessageAndFilesTakeTheirTime) {
  inner_.next = Delta{1, {}, std::make_shared<const std::string>(15000, 'd')};
  EXPECT_GE(Seconds([&] { EXPECT_TRUE(link_.Receive().ok()); }), 0.15);
  EXPECT_GE(Seconds([&] { EXPECT_EQ(*link_.DownloadCheckpoint({}, 1, 1), inner_.file); }), 0.2);
  EXPECT_GE(Seconds([&] { EXPECT_EQ(*link_.DownloadModule({}, 1), inner_.file); }), 0.2);
}

TEST_F(ThinLinkTest, OtherMessagesDoNot) {
  const double seconds = Seconds([&] {
    for (int i = 0; i < 1000; ++i) {
      EXPECT_EQ(link_.Send(Progress{1, 2}), absl::OkStatus());
      EXPECT_TRUE(link_.Receive().ok());
    }
  });
  EXPECT_LT(seconds, 10);
  link_.SetMaxDeltaBytes(7);
  EXPECT_EQ(inner_.max_delta_bytes, 7);
}

}  // namespace
}  // namespace terse
