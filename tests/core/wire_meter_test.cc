#include "core/wire_meter.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace terse {
namespace {

// Holds both ends of a loopback connection in this process.
class WireMeterTest : public testing::Test {
 protected:
  void SetUp() override {
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(listen(listener, 1), 0);
    client_ = socket(AF_INET, SOCK_STREAM, 0);
    socklen_t length = sizeof address;
    getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length);
    ASSERT_EQ(connect(client_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    server_ = accept(listener, reinterpret_cast<sockaddr*>(&address), &length);
    ASSERT_GE(server_, 0);
    peer_of_server_ = absl::StrCat("ipv4:127.0.0.1:", ntohs(address.sin_port));
    close(listener);
  }
  void TearDown() override {
    close(client_);
    if (server_ >= 0) close(server_);
  }

  void Transfer(int from, int to, size_t bytes) {
    const std::string data(bytes, 'x');
    ASSERT_EQ(send(from, data.data(), bytes, 0), static_cast<ssize_t>(bytes));
    std::string got(bytes, '\0');
    ASSERT_EQ(recv(to, &got[0], bytes, MSG_WAITALL), static_cast<ssize_t>(bytes));
  }

  int client_ = -1;
  int server_ = -1;
  std::string peer_of_server_;
};

TEST_F(WireMeterTest, CountsBothDirectionsExactly) {
  WireMeter meter(peer_of_server_);
  Transfer(client_, server_, 1000);
  Transfer(server_, client_, 77);
  EXPECT_EQ(meter.Read().received, 1000);
  EXPECT_EQ(meter.Read().sent, 77);
  Transfer(client_, server_, 1);
  EXPECT_EQ(meter.Read().received, 1001);
}

TEST_F(WireMeterTest, TheEndOfTheConnectionIsNoByte) {
  WireMeter meter(peer_of_server_);
  Transfer(client_, server_, 1000);
  shutdown(client_, SHUT_WR);
  char nothing;
  EXPECT_EQ(recv(server_, &nothing, 1, 0), 0) << "the FIN has arrived";
  EXPECT_EQ(meter.Read().received, 1000);
}

TEST_F(WireMeterTest, AClosedConnectionKeepsItsLastReading) {
  WireMeter meter(peer_of_server_);
  Transfer(client_, server_, 1000);
  EXPECT_EQ(meter.Read().received, 1000);
  close(server_);
  server_ = -1;
  EXPECT_EQ(meter.Read().received, 1000);
}

TEST_F(WireMeterTest, WithAcceptedSocketsItLooksAmongThemAlone) {
  AcceptedSockets accepted;
  WireMeter meter(peer_of_server_, &accepted);
  Transfer(client_, server_, 1000);
  EXPECT_EQ(meter.Read().received, 0);
  accepted.Add(server_);
  EXPECT_EQ(meter.Read().received, 1000);
}

TEST_F(WireMeterTest, AcceptedSocketsForgetWhatWasClosed) {
  AcceptedSockets accepted;
  const int idle = socket(AF_INET, SOCK_STREAM, 0);
  accepted.Add(idle);
  EXPECT_EQ(accepted.size(), 0) << "it has no peer";
  close(idle);
  for (int i = 0; i < 2000; ++i) {
    accepted.Add(server_);
    const std::string peer = peer_of_server_;
    EXPECT_TRUE(accepted.Find(peer).has_value());
    EXPECT_TRUE(IsOpen(*accepted.Find(peer)));
    TearDown();
    EXPECT_FALSE(IsOpen(*accepted.Find(peer)));
    SetUp();
  }
  EXPECT_LE(accepted.size(), 1024);
}

TEST(WireMeterWithoutConnection, ReadsZero) {
  EXPECT_EQ(WireMeter("ipv4:127.0.0.1:1").Read().sent, 0);
  EXPECT_EQ(WireMeter("unix:/nowhere").Read().received, 0);
}

}  // namespace
}  // namespace terse
