#include "bench/paper/thin_link.h"

#include <memory>
#include <string>

#include "absl/time/time.h"
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
  void SetMaxDownstreamBytes(int64_t bytes) override { max_downstream_bytes = bytes; }
  absl::StatusOr<std::string> DownloadCheckpoint(Id128, int64_t, int64_t) override { return file; }
  absl::StatusOr<std::string> DownloadModule(Id128, int64_t) override { return file; }

  int sent = 0;
  int64_t max_downstream_bytes = 0;
  FromServer next = Receipt{};
  std::string file = std::string(20000, 'f');
};

class ThinLinkTest : public ::testing::Test {
 protected:
  ThinLinkTest() { link_.SetMaxDownstreamBytes(7); }

  // Seconds of the clock that `call` waited.
  template <typename Call>
  double Waited(Call call) {
    const absl::Time start = now_;
    call();
    return absl::ToDoubleSeconds(now_ - start);
  }
  absl::Status SendUpdate(size_t bytes) {
    Update update;
    update.message = std::string(bytes, 'u');
    return link_.Send(update);
  }

  absl::Time now_ = absl::UnixEpoch();
  InstantLink inner_;
  ThinLink link_{&inner_, 1e5, {[this] { return now_; }, [this](absl::Duration time) { now_ += time; }}};
};

TEST_F(ThinLinkTest, AnUpdateTakesItsTime) {
  EXPECT_DOUBLE_EQ(Waited([&] { EXPECT_EQ(SendUpdate(20000), absl::OkStatus()); }), 0.2);
  EXPECT_DOUBLE_EQ(Waited([&] { EXPECT_EQ(SendUpdate(5000), absl::OkStatus()); }), 0.05);
  EXPECT_EQ(inner_.sent, 2);
  EXPECT_EQ(inner_.max_downstream_bytes, 7);
}

TEST_F(ThinLinkTest, ADownstreamMessageAndFilesTakeTheirTime) {
  inner_.next = Downstream{1, {}, std::make_shared<const std::string>(15000, 'd')};
  EXPECT_DOUBLE_EQ(Waited([&] { EXPECT_TRUE(link_.Receive().ok()); }), 0.15);
  EXPECT_DOUBLE_EQ(Waited([&] { EXPECT_EQ(*link_.DownloadCheckpoint({}, 1, 1), inner_.file); }), 0.2);
  EXPECT_DOUBLE_EQ(Waited([&] { EXPECT_EQ(*link_.DownloadModule({}, 1), inner_.file); }), 0.2);
}

TEST_F(ThinLinkTest, OtherMessagesTakeNone) {
  EXPECT_EQ(Waited([&] {
              EXPECT_EQ(link_.Send(Progress{1, 2}), absl::OkStatus());
              EXPECT_TRUE(link_.Receive().ok());
            }),
            0);
}

TEST_F(ThinLinkTest, AnIdleLinkSavesNothingUp) {
  EXPECT_EQ(SendUpdate(10000), absl::OkStatus());
  now_ += absl::Seconds(60);
  EXPECT_DOUBLE_EQ(Waited([&] { EXPECT_EQ(SendUpdate(10000), absl::OkStatus()); }), 0.1);
}

}  // namespace
}  // namespace terse
