// The edges beside the fleet's port: the enrolment desk, the operators' port (docs/THREATS.md).
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "security/authority.h"
#include "security/enrolment.h"
#include "security/invitation_book.h"
#include "security/transport.h"
#include "terse/v1/admin.grpc.pb.h"
#include "tests/attack/attacked_fleet.h"
#include "tests/testing/paths.h"

namespace terse {
namespace {

using ::testing::HasSubstr;

// A TCP connection of 127.0.0.`own` that says nothing.
class Idle {
 public:
  Idle(int port, int own) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl((INADDR_LOOPBACK & ~0xffu) | static_cast<uint32_t>(own));
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(port));
    // The other end may reset it at once.
    connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address);
  }
  ~Idle() { close(fd_); }
  Idle(const Idle&) = delete;
  Idle& operator=(const Idle&) = delete;

 protected:
  int fd() const { return fd_; }

 private:
  const int fd_;
};

// An authority whose desk is a real process that may open few files.
class EnrolmentAttack : public ::testing::Test {
 protected:
  EnrolmentAttack() : folder_(scratch_ / "pki") {
    EXPECT_TRUE(Authority::Create(folder_, "attacked", absl::Hours(24 * 3650)).ok());
    desk_ = std::make_unique<Process>(
        std::vector<std::string>{"/usr/bin/prlimit", "--nofile=256:256", Program("tersectl"), "pki", "--pki", folder_,
                                 "serve", "--host", "127.0.0.1", "--listen", "127.0.0.1:0"},
        scratch_ / "desk.log");
    EXPECT_TRUE(WaitUntil([&] { return Port() != 0; }, kAttackPatience)) << desk_->Output();
  }
  // From "answers invitations on port N as ...".
  int Port() const {
    const std::vector<std::string> parts = absl::StrSplit(desk_->Output(), "on port ");
    int port = 0;
    if (parts.size() > 1) (void)absl::SimpleAtoi(parts[1].substr(0, parts[1].find(' ')), &port);
    return port;
  }
  Invitation Invite() {
    const auto authority = Authority::Open(folder_);
    return *InvitationBook(authority->get()).Invite(absl::StrCat("127.0.0.1:", Port()), InvitationTerms());
  }

  ScratchDirectory scratch_;
  const std::string folder_;
  std::unique_ptr<Process> desk_;
};

TEST_F(EnrolmentAttack, IdleConnectionsDoNotShutTheDesk) {
  const Invitation invitation = Invite();
  std::vector<std::unique_ptr<Idle>> idle;
  for (int i = 0; i < 330; ++i) idle.push_back(std::make_unique<Idle>(Port(), 2));
  const auto enrolled = Enrol(scratch_ / "edge", invitation, "edge-1", kAttackPatience);
  EXPECT_TRUE(enrolled.ok()) << enrolled.status() << "\n" << desk_->Output();
}

TEST_F(EnrolmentAttack, WrongSecretsDoNotKeepCommandsOut) {
  Invitation wrong = Invite();
  wrong.secret = std::string(kSecretDigits, '0');
  std::atomic<bool> over{false};
  std::atomic<int> tries{0};
  std::vector<std::thread> guessers;
  for (int i = 0; i < 4; ++i) {
    guessers.emplace_back([&, i] {
      while (!over) {
        EXPECT_FALSE(Enrol(scratch_ / absl::StrCat("guess-", i), wrong, "mallory").ok());
        ++tries;
      }
    });
  }
  int failed = 0;
  for (int i = 0; i < 12 || tries < 100; ++i) {
    int code = -1;
    const std::string said = RunCommand({Program("tersectl"), "pki", "--pki", folder_, "list"}, &code);
    failed += code == 0 ? 0 : 1;
    if (code != 0) ADD_FAILURE() << said;
  }
  over = true;
  for (std::thread& guesser : guessers) guesser.join();
  EXPECT_EQ(failed, 0);
  EXPECT_THAT(desk_->Output(), HasSubstr("too often"));
}

constexpr char kRun[] =
    "name = 'attacked'\n[train]\nlocal_steps = 1\noptimizer.learning_rate = 1.0\n[codec]\nname = 'sbc'\n"
    "density = 0.02\n[rounds]\ncount = 1000000\nclients = 3\nevaluate_every = 1000000\n";

// Each of them holds a thread of the coordinator.
TEST(OperatorAttack, StreamsOfOneOperatorHaveABound) {
  AttackedFleet fleet;
  fleet.Serve(kRun);
  const std::string folder = fleet.TlsFolder(Role::kOperator, "mallory");
  grpc::ChannelArguments arguments;
  const std::string& admin = fleet.processes().addresses().admin;
  const auto credentials = ConnectWith(fleet.authority().Transport(folder), admin, {Role::kOperator}, &arguments);
  ASSERT_TRUE(credentials.ok()) << credentials.status();
  const auto stub = v1::Admin::NewStub(grpc::CreateCustomChannel(admin, *credentials, arguments));
  constexpr int kStreams = 100;
  std::atomic<int> refused{0};
  std::array<grpc::ClientContext, kStreams> contexts;
  std::vector<std::thread> watchers;
  for (grpc::ClientContext& context : contexts) {
    watchers.emplace_back([&stub, &refused, &context] {
      context.set_deadline(absl::ToChronoTime(absl::Now() + kAttackPatience));
      const auto stream = stub->Watch(&context, v1::WatchRequest());
      for (v1::Round round; stream->Read(&round);) continue;
      const grpc::Status status = stream->Finish();
      if (status.error_code() != grpc::StatusCode::RESOURCE_EXHAUSTED) return;
      ++refused;
      EXPECT_THAT(status.error_message(), HasSubstr("16 of one caller; end one of yours first"));
    });
  }
  EXPECT_TRUE(WaitUntil([&] { return refused == kStreams - 16; }, kAttackPatience));
  for (grpc::ClientContext& context : contexts) context.TryCancel();
  for (std::thread& watcher : watchers) watcher.join();
  EXPECT_EQ(refused, kStreams - 16);
  int code = -1;
  EXPECT_THAT(fleet.Ctl({"status"}, &code), HasSubstr("attacked"));
  EXPECT_EQ(code, 0);
}

// A TCP connection of 127.0.0.`own` that speaks to the dashboard.
class Visitor : public Idle {
 public:
  using Idle::Idle;
  void Say(const std::string& text) { (void)send(fd(), text.data(), text.size(), MSG_NOSIGNAL); }
  // Returns the answer, up to `last`, or to the end of the connection or of 10 s.
  std::string Hear(const std::string& last) {
    const timeval patience = {10, 0};
    setsockopt(fd(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    std::string heard;
    char bytes[1024];
    while (!absl::StrContains(heard, last)) {
      const ssize_t size = recv(fd(), bytes, sizeof bytes, 0);
      if (size <= 0) break;
      heard.append(bytes, static_cast<size_t>(size));
    }
    return heard;
  }
};

TEST(DashboardAttack, SlowConnectionsOfOneAddressDoNotShutIt) {
  AttackedFleet fleet;
  fleet.Serve(kRun, {"--http", "127.0.0.1:0"});
  const std::string& url = fleet.processes().addresses().http;
  int port = 0;
  ASSERT_TRUE(absl::SimpleAtoi(url.substr(url.rfind(':') + 1), &port)) << url;
  std::vector<std::unique_ptr<Visitor>> slow;
  for (int i = 0; i < 256; ++i) {
    slow.push_back(std::make_unique<Visitor>(port, 2));
    slow.back()->Say("GET / HTTP/1.1\r\nX: ");
  }
  Visitor other(port, 1);
  other.Say("GET /api/v1/runs HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  EXPECT_THAT(other.Hear("attacked"), HasSubstr("200 OK"));
}

}  // namespace
}  // namespace terse
