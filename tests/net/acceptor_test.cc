// Connections to a port of this machine, within bounds and beyond them.
#include "net/acceptor.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "tests/net/address.h"
#include "tests/testing/wait_until.h"

namespace terse {
namespace {

using ::testing::HasSubstr;

// A peer's end of a connection.
class Caller {
 public:
  // Connects from the loopback address `from`.
  Caller(int port, const std::string& from = "127.0.0.1") : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const sockaddr_storage own = Address(from), peer = Address("127.0.0.1", port);
    EXPECT_EQ(bind(fd_, reinterpret_cast<const sockaddr*>(&own), sizeof(sockaddr_in)), 0) << std::strerror(errno);
    EXPECT_EQ(connect(fd_, reinterpret_cast<const sockaddr*>(&peer), sizeof(sockaddr_in)), 0) << std::strerror(errno);
  }
  ~Caller() { close(fd_); }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  bool IsReset() const {
    pollfd polled = {fd_, POLLIN, 0};
    char byte = 0;
    return poll(&polled, 1, static_cast<int>(absl::ToInt64Milliseconds(kPatience))) == 1 &&
           recv(fd_, &byte, 1, 0) < 0 && errno == ECONNRESET;
  }

 private:
  const int fd_;
};

class AcceptorTest : public ::testing::Test {
 protected:
  ~AcceptorTest() override {
    acceptor_.reset();
    CloseTaken();
  }
  void Listen(const Acceptor::Bounds& bounds) {
    absl::StatusOr<std::unique_ptr<Acceptor>> acceptor = Acceptor::Listen({"127.0.0.1:0", bounds});
    ASSERT_TRUE(acceptor.ok()) << acceptor.status();
    acceptor_ = *std::move(acceptor);
    ASSERT_TRUE(absl::SimpleAtoi(acceptor_->address().substr(acceptor_->address().rfind(':') + 1), &port_));
    acceptor_->Start([this](int listening, int connected) {
      EXPECT_GE(listening, 0);
      absl::MutexLock lock(&mutex_);
      taken_.push_back(connected);
    });
  }
  bool WaitForTaken(size_t count) {
    absl::MutexLock lock(&mutex_);
    const auto are_there = [this, count]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return taken_.size() >= count; };
    return mutex_.AwaitWithTimeout(absl::Condition(&are_there), kPatience) && taken_.size() == count;
  }
  void CloseTaken() {
    absl::MutexLock lock(&mutex_);
    for (const int fd : taken_) close(fd);
    taken_.clear();
  }

  std::unique_ptr<Acceptor> acceptor_;
  int port_ = 0;
  absl::Mutex mutex_;
  std::vector<int> taken_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(AcceptorTest, HandsConnectionsOverAsGrpcWantsThem) {
  Listen({10, 5});
  const Caller caller(port_);
  ASSERT_TRUE(WaitForTaken(1));
  absl::MutexLock lock(&mutex_);
  EXPECT_NE(fcntl(taken_[0], F_GETFL) & O_NONBLOCK, 0);
  EXPECT_NE(fcntl(taken_[0], F_GETFD) & FD_CLOEXEC, 0);
  int no_delay = 0;
  socklen_t size = sizeof(no_delay);
  EXPECT_EQ(getsockopt(taken_[0], IPPROTO_TCP, TCP_NODELAY, &no_delay, &size), 0);
  EXPECT_EQ(no_delay, 1);
}

TEST_F(AcceptorTest, ResetsWhatIsBeyondTheBoundUntilOthersClose) {
  Listen({3, 1});  // the loopback addresses may have all
  const Caller one(port_), two(port_), three(port_);
  ASSERT_TRUE(WaitForTaken(3));
  EXPECT_TRUE(Caller(port_).IsReset());
  EXPECT_TRUE(Caller(port_).IsReset());
  {
    absl::MutexLock lock(&mutex_);
    close(taken_.back());
    taken_.pop_back();
  }
  absl::SleepFor(absl::Milliseconds(150));  // it looks again every 100 ms
  const Caller four(port_);
  EXPECT_TRUE(WaitForTaken(3));
  EXPECT_TRUE(Caller(port_).IsReset());
}

TEST_F(AcceptorTest, AnAddressLeavesPlaceForOthers) {
  Listen({10, 2, /*loopback_too=*/true});
  const Caller one(port_, "127.0.0.2"), two(port_, "127.0.0.2");
  ASSERT_TRUE(WaitForTaken(2));
  EXPECT_TRUE(Caller(port_, "127.0.0.2").IsReset());
  const Caller other(port_, "127.0.0.3");
  EXPECT_TRUE(WaitForTaken(3));
  CloseTaken();
  absl::SleepFor(absl::Milliseconds(150));
  const Caller again(port_, "127.0.0.2");
  EXPECT_TRUE(WaitForTaken(1));
}

// gRPC's own listener never takes a connection again after this.
TEST_F(AcceptorTest, GoesOnAfterTheProcessHadNoFileToOpen) {
  Listen({10, 10});
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  // The caller's own socket takes the lowest number that is free, which is the last one from then on.
  const int caller = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const rlimit none = {static_cast<rlim_t>(caller) + 1, before.rlim_max};
  const sockaddr_storage peer = Address("127.0.0.1", port_);
  // A sanitizer cannot do all its checks without files, so the test judges afterwards what it saw.
  const int limited = setrlimit(RLIMIT_NOFILE, &none);
  const int connected = connect(caller, reinterpret_cast<const sockaddr*>(&peer), sizeof(sockaddr_in));
  absl::SleepFor(absl::Milliseconds(300));
  bool is_waiting = false;
  {
    absl::MutexLock lock(&mutex_);
    is_waiting = taken_.empty();
  }
  const int restored = setrlimit(RLIMIT_NOFILE, &before);
  ASSERT_EQ(limited, 0);
  ASSERT_EQ(connected, 0);
  ASSERT_EQ(restored, 0);
  EXPECT_TRUE(is_waiting);
  EXPECT_TRUE(WaitForTaken(1)) << "the connection that waited";
  close(caller);
  const Caller after(port_);
  EXPECT_TRUE(WaitForTaken(2));
}

TEST_F(AcceptorTest, APortIsOneProcesss) {
  Listen({10, 10});
  const auto second = Acceptor::Listen({acceptor_->address(), {10, 10}});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("the port is in use"));
}

TEST(Acceptor, AddressesThatAreNone) {
  for (const char* bad : {"", "7700", ":7700", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536", "h:-1"}) {
    EXPECT_EQ(Acceptor::Listen({bad, {1, 1}}).status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
  EXPECT_EQ(Acceptor::Listen({"192.0.2.1:0", {1, 1}}).status(),
            absl::UnavailableError("the address is not this machine's"));
}

TEST(ConnectionBounds, LeaveFilesForOthers) {
  rlimit files = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
  const int64_t all = static_cast<int64_t>(std::min<rlim_t>(files.rlim_max, 1'000'000));
  const auto most = ConnectionBounds(0, 0);
  ASSERT_TRUE(most.ok()) << most.status();
  EXPECT_EQ(most->connections, all - kFilesForOthers);
  EXPECT_EQ(most->per_address, (most->connections + 1) / 2);
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
  EXPECT_EQ(files.rlim_cur, files.rlim_max);
  const auto few = ConnectionBounds(7, 0);
  EXPECT_EQ(few->connections, 7);
  EXPECT_EQ(few->per_address, 4);
  EXPECT_EQ(ConnectionBounds(7, 2)->per_address, 2);
  const auto too_many = ConnectionBounds(all, 0);
  EXPECT_EQ(too_many.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(too_many.status().message()), HasSubstr("LimitNOFILE="));
}

}  // namespace
}  // namespace terse
