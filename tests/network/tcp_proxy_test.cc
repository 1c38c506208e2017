// The proxy itself, with plain sockets on both sides: its scripts do what they say, to the byte.
#include "tests/network/tcp_proxy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace terse {
namespace {

constexpr int kPatienceMs = 30'000;

sockaddr_in Loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

// One end of a connection, closed with the object.
class Peer {
 public:
  explicit Peer(int fd) : fd_(fd) {}
  ~Peer() { close(fd_); }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  void Say(const std::string& bytes) const {
    ASSERT_EQ(send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  // Reads until so many bytes came or the connection ended.
  std::string Hear(size_t count) {
    std::string heard;
    char buffer[4096];
    while (heard.size() < count && error_ == 0 && !ended_) {
      if (!HasSomething(kPatienceMs)) break;
      const ssize_t got = recv(fd_, buffer, std::min(sizeof(buffer), count - heard.size()), 0);
      if (got > 0) heard.append(buffer, got);
      ended_ = got == 0;
      error_ = got < 0 ? errno : 0;
    }
    return heard;
  }
  bool HasSomething(int wait_ms) const {
    pollfd waiting = {fd_, POLLIN, 0};
    return poll(&waiting, 1, wait_ms) == 1;
  }
  void CloseWriting() const { shutdown(fd_, SHUT_WR); }
  bool ended() const { return ended_; }
  int error() const { return error_; }

 private:
  const int fd_;
  bool ended_ = false;
  int error_ = 0;
};

class TcpProxyTest : public testing::Test {
 protected:
  TcpProxyTest() : listener_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in here = Loopback(0);
    socklen_t size = sizeof(here);
    bind(listener_, reinterpret_cast<sockaddr*>(&here), size);
    listen(listener_, 16);
    getsockname(listener_, reinterpret_cast<sockaddr*>(&here), &size);
    target_ = absl::StrCat("127.0.0.1:", ntohs(here.sin_port));
  }
  ~TcpProxyTest() override { close(listener_); }

  void Start(const LinkScript& script, bool record = false) {
    proxy_ = std::make_unique<TcpProxy>(
        target_, [script](int) { return script; }, record);
    client_ = Dial();
  }
  std::unique_ptr<Peer> Dial() const {
    const sockaddr_in there = Loopback(std::stoi(proxy_->address().substr(proxy_->address().find(':') + 1)));
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&there), sizeof(there)), 0);
    return std::make_unique<Peer>(fd);
  }
  std::unique_ptr<Peer> Answer() const { return std::make_unique<Peer>(accept(listener_, nullptr, nullptr)); }

  int listener_;
  std::string target_;
  std::unique_ptr<TcpProxy> proxy_;
  std::unique_ptr<Peer> client_;
};

TEST_F(TcpProxyTest, ForwardsBytesAndEndsBothWays) {
  Start({}, /*record=*/true);
  const auto server = Answer();
  client_->Say("question");
  EXPECT_EQ(server->Hear(8), "question");
  server->Say("reply");
  EXPECT_EQ(client_->Hear(5), "reply");
  client_->CloseWriting();
  server->Hear(1);
  EXPECT_TRUE(server->ended());
  server->Say("last words");
  EXPECT_EQ(client_->Hear(10), "last words");
  EXPECT_EQ(proxy_->Delivered(0, /*up=*/true), "question");
  EXPECT_EQ(proxy_->Total().up, 8);
  EXPECT_EQ(proxy_->Total().down, 15);
}

TEST_F(TcpProxyTest, ResetsBothEndsAfterExactlySoManyBytes) {
  LinkScript script;
  script.up.reset_after = 5;
  Start(script);
  const auto server = Answer();
  client_->Say("question");
  EXPECT_EQ(server->Hear(8), "quest");
  EXPECT_EQ(server->error(), ECONNRESET);
  client_->Hear(1);
  EXPECT_EQ(client_->error(), ECONNRESET);
  EXPECT_TRUE(proxy_->Counts()[0].was_reset);
  EXPECT_EQ(proxy_->Counts()[0].up, 5);
}

TEST_F(TcpProxyTest, LosesOneDirectionAndItsEnd) {
  LinkScript script;
  script.down.lose_after = 3;
  Start(script);
  auto server = Answer();
  server->Say("reply");
  EXPECT_EQ(client_->Hear(3), "rep");
  client_->Say("still here");
  EXPECT_EQ(server->Hear(10), "still here");
  server.reset();
  client_->Say("and now?");
  EXPECT_FALSE(client_->HasSomething(50));  // neither bytes nor an end
}

TEST_F(TcpProxyTest, HoldsBytesBack) {
  LinkScript script;
  script.up.latency = absl::Milliseconds(150);
  const absl::Time begin = absl::Now();
  Start(script);
  const auto server = Answer();
  EXPECT_GE(absl::Now() - begin, absl::Milliseconds(150));  // the way of the first packet
  const absl::Time said = absl::Now();
  client_->Say("x");
  EXPECT_EQ(server->Hear(1), "x");
  EXPECT_GE(absl::Now() - said, absl::Milliseconds(150));
}

TEST_F(TcpProxyTest, ThinLinkTakesItsTime) {
  LinkScript script;
  script.up.bytes_per_second = 10'000;
  script.up.chunk_bytes = 100;
  Start(script);
  const auto server = Answer();
  const absl::Time begin = absl::Now();
  client_->Say(std::string(2000, 'x'));
  EXPECT_EQ(server->Hear(2000).size(), 2000);
  EXPECT_GE(absl::Now() - begin, absl::Milliseconds(180));
}

TEST_F(TcpProxyTest, HeldConnectionGoesOnWhenItIsLetGo) {
  LinkScript script;
  script.up.bytes_per_second = 0;
  Start(script);
  const auto server = Answer();
  client_->Say("patience");
  EXPECT_FALSE(server->HasSomething(50));
  proxy_->ForEachOpen([](int, LinkScript* open) { open->up = {}; });
  EXPECT_EQ(server->Hear(8), "patience");
}

TEST_F(TcpProxyTest, ForgottenConnectionResetsWhoSpeaksAndTellsNobodyElse) {
  LinkScript script;
  script.forget_after = absl::Milliseconds(100);
  Start(script);
  const auto server = Answer();
  client_->Say("x");
  EXPECT_EQ(server->Hear(1), "x");
  while (!proxy_->Counts()[0].forgotten) absl::SleepFor(absl::Milliseconds(1));
  server->Say("anybody?");
  server->Hear(1);
  EXPECT_EQ(server->error(), ECONNRESET);
  EXPECT_FALSE(client_->HasSomething(50));
  client_->Say("and here?");
  client_->Hear(1);
  EXPECT_EQ(client_->error(), ECONNRESET);
}

TEST_F(TcpProxyTest, ResetsAllAndLetsPeopleKnock) {
  Start({});
  const auto server = Answer();
  proxy_->SetAccepting(false);
  proxy_->ResetAll();
  client_->Hear(1);
  EXPECT_EQ(client_->error(), ECONNRESET);
  EXPECT_FALSE(proxy_->SomebodyKnocks());
  client_ = Dial();
  EXPECT_TRUE(proxy_->SomebodyKnocks());
  proxy_->SetAccepting(true);
  const auto again = Answer();
  client_->Say("hello");
  EXPECT_EQ(again->Hear(5), "hello");
}

}  // namespace
}  // namespace terse
