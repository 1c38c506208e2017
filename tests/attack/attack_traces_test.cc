// The traces of an attack: records that nobody pushes out, who was refused and from where, handshakes that failed,
// texts that steer no terminal, and files that others cannot read (docs/SECURITY.md).
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "security/authority.h"
#include "security/transport.h"
#include "terse/v1/admin.grpc.pb.h"
#include "tests/attack/attacked_fleet.h"
#include "tests/testing/paths.h"

namespace terse {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kRun[] =
    "name = 'attacked'\n[train]\nlocal_steps = 1\noptimizer.learning_rate = 1.0\n[codec]\nname = 'sbc'\n"
    "density = 0.02\n[rounds]\ncount = 1000000\nclients = 1\nevaluate_every = 1000000\n";

class AttackTraces : public ::testing::Test {
 protected:
  int64_t Audit(const std::string& sql) {
    return QueryNumber(fleet_.processes().coordinator_state() + "/audit.sqlite", sql);
  }
  std::unique_ptr<v1::Admin::Stub> Operator(const std::string& name) {
    const std::string folder = fleet_.TlsFolder(Role::kOperator, name);
    const std::string& admin = fleet_.processes().addresses().admin;
    grpc::ChannelArguments arguments;
    const auto credentials = ConnectWith(fleet_.authority().Transport(folder), admin, {Role::kOperator}, &arguments);
    EXPECT_TRUE(credentials.ok()) << credentials.status();
    return v1::Admin::NewStub(grpc::CreateCustomChannel(admin, *credentials, arguments));
  }
  static grpc::Status Pause(v1::Admin::Stub* stub, const std::string& reason) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + kAttackPatience));
    v1::PauseRequest request;
    request.set_reason(reason);
    v1::StateReply reply;
    return stub->Pause(&context, request, &reply);
  }

  AttackedFleet fleet_;
};

// Everybody's first pause is kept, whatever an operator does afterwards that changes nothing.
TEST_F(AttackTraces, CallsThatChangeNothingFlushNothing) {
  constexpr int kThreads = 4, kSame = 25, kOthers = 1600;
  fleet_.Serve(kRun);
  fleet_.Ctl({"pause", "--reason", "maintenance"});
  std::atomic<int> failed{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < kThreads; ++i) {
    // Connected here: the authority that issues the certificate serves one thread.
    callers.emplace_back([&failed, i, stub = Operator("mallory")] {
      for (int call = 0; call < kSame; ++call) failed += Pause(stub.get(), "noise").ok() ? 0 : 1;
      for (int call = 0; call < kOthers; ++call) {
        failed += Pause(stub.get(), absl::StrCat("noise ", i, "-", call)).ok() ? 0 : 1;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(Audit("SELECT count(*) FROM audit WHERE who = 'operator anna' AND detail = 'maintenance'"), 1);
  EXPECT_EQ(Audit("SELECT sum(times) FROM audit WHERE who = 'operator mallory'"), kThreads * (kSame + kOthers));
  // Repeats are one row for as long as they are counted together, which a slow machine may begin anew.
  EXPECT_LE(Audit("SELECT count(*) FROM audit WHERE detail = 'noise'"), kThreads);
  // A sixteenth of the log, with the calls under way and the first of those that are counted coarsely.
  EXPECT_LE(Audit("SELECT count(*) FROM audit WHERE who = 'operator mallory'"), 100'000 / 16 + 2 * kThreads + 2);
}

TEST_F(AttackTraces, RefusedCallsHaveAnAddress) {
  fleet_.Serve(kRun);
  const std::string folder = fleet_.TlsFolder(Role::kObserver, "eve");
  int code = -1;
  fleet_.processes().Ctl({"--tls", folder, "pause"}, &code);
  EXPECT_EQ(code, 1);
  const char kRefused[] =
      "SELECT count(*) FROM audit WHERE who = 'observer eve' AND action = 'Pause' AND address = '127.0.0.1'";
  EXPECT_TRUE(WaitUntil([&] { return Audit(kRefused) == 1; }, kAttackPatience)) << fleet_.Ctl({"audit"});
  EXPECT_THAT(fleet_.Ctl({"--json", "audit"}), HasSubstr("\"address\": \"127.0.0.1\""));
  EXPECT_THAT(fleet_.processes().coordinator().Output(), HasSubstr("refused Pause of observer eve from 127.0.0.1"));
}

// Peers that speak TLS as a command line of openssl says, each from a loopback address of its own.
class Peers {
 public:
  void Connect(const std::string& address, int own, const std::vector<std::string>& options = {}) {
    std::vector<std::string> argv = {
        "/usr/bin/openssl", "s_client", "-quiet", "-alpn", "h2", "-bind", absl::StrCat("127.0.0.", own, ":0"),
        "-connect",         address};
    argv.insert(argv.end(), options.begin(), options.end());
    processes_.push_back(std::make_unique<Process>(argv, directory_ / absl::StrCat("peer-", processes_.size())));
    processes_.back()->Wait(absl::Seconds(2));
  }
  static std::vector<std::string> With(const std::string& folder) {
    return {"-cert", folder + "/node.crt", "-key", folder + "/node.key"};
  }

 private:
  const ScratchDirectory directory_;
  std::vector<std::unique_ptr<Process>> processes_;
};

// As 127.0.0.`own`, somebody who looks for web servers. Returns when the other end has closed the connection.
void SpeakPlainText(const std::string& address, int own) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const absl::Cleanup close_socket = [fd] { close(fd); };
  sockaddr_in place = {};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl((INADDR_LOOPBACK & ~0xffu) | static_cast<uint32_t>(own));
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&place), sizeof place), 0);
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  place.sin_port = htons(static_cast<uint16_t>(std::atoi(address.c_str() + address.rfind(':') + 1)));
  ASSERT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&place), sizeof place), 0);
  constexpr char kRequest[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
  EXPECT_GT(send(fd, kRequest, sizeof kRequest - 1, MSG_NOSIGNAL), 0);
  char bytes[64];
  while (recv(fd, bytes, sizeof bytes, 0) > 0) continue;
}

TEST_F(AttackTraces, FailedHandshakesAreInTheAuditLog) {
  fleet_.Serve(kRun, {"--http", "127.1:0"});  // an address that the dashboard does not know for its machine's own
  const std::string http = fleet_.processes().addresses().http;
  ASSERT_THAT(http, HasSubstr("https://127.1:"));
  const std::string dashboard = "127.0.0.1" + http.substr(http.rfind(':'));
  const std::string elsewhere = fleet_.authority().IssueElsewhere(Role::kClient, "elsewhere");
  const std::string expired = fleet_.authority().Issue(Role::kClient, "expired", absl::Seconds(1));
  absl::SleepFor(absl::Seconds(3));
  Peers peers;
  int own = 10;
  std::vector<std::pair<int, std::string>> expected;
  for (const std::string& address : {fleet_.address(), fleet_.processes().addresses().admin, dashboard}) {
    peers.Connect(address, own);
    peers.Connect(address, own + 1, Peers::With(elsewhere));
    peers.Connect(address, own + 2, Peers::With(expired));
    peers.Connect(address, own + 3, {"-tls1_2"});
    SpeakPlainText(address, own + 4);
    peers.Connect(address, own + 5, {"-verify_return_error", "-CAfile", elsewhere + "/node.crt"});
    const char* const reasons[] = {"it has shown no certificate",
                                   "its certificate is of an unknown authority",
                                   "its certificate has expired",
                                   "it has no version or cipher of TLS 1.3",
                                   "it does not speak TLS, and this port wants TLS 1.3",
                                   "it has ended the handshake with the alert \"unknown CA\""};
    for (const char* reason : reasons) expected.emplace_back(own++, reason);
  }
  for (const auto& [host, reason] : expected) {
    const std::string sql = absl::StrCat("SELECT count(*) FROM audit WHERE action = 'TLS handshake' AND address = '",
                                         "127.0.0.", host, "' AND result = 'UNAUTHENTICATED: ", reason, "'");
    EXPECT_TRUE(WaitUntil([&, &sql = sql] { return Audit(sql) == 1; }, absl::Seconds(10))) << sql;
  }
  EXPECT_EQ(Audit("SELECT count(*) FROM audit WHERE action = 'TLS handshake'"), static_cast<int64_t>(expected.size()))
      << fleet_.Ctl({"audit"});
  EXPECT_THAT(
      fleet_.processes().coordinator().Output(),
      HasSubstr("refused TLS handshake of nobody of this fleet from 127.0.0.10: UNAUTHENTICATED: it has shown"));
}

TEST_F(AttackTraces, RepeatedHandshakesAreCounted) {
  constexpr int kTimes = 100;
  fleet_.Serve(kRun);
  for (int i = 0; i < kTimes; ++i) SpeakPlainText(fleet_.address(), 9);
  fleet_.processes().coordinator().Signal(SIGTERM);
  EXPECT_EQ(fleet_.processes().coordinator().Wait(kAttackPatience), absl::optional<int>(0));
  EXPECT_EQ(Audit("SELECT sum(times) FROM audit WHERE address = '127.0.0.9'"), kTimes);
  EXPECT_LE(Audit("SELECT count(*) FROM audit"), 4) << "one a minute";
}

// The failures of which the desk's lines say that no line tells.
int FailuresWithoutALine(const std::string& log) {
  const std::string before = "; before it ";
  int failures = 0;
  for (size_t at = log.find(before); at != std::string::npos; at = log.find(before, at + 1)) {
    failures += std::atoi(log.c_str() + at + before.size());
  }
  return failures;
}

TEST_F(AttackTraces, FailedHandshakesAtTheDeskAreInItsLog) {
  const ScratchDirectory scratch;
  const std::string folder = scratch / "pki";
  ASSERT_TRUE(Authority::Create(folder, "attacked", absl::Hours(24 * 3650)).ok());
  Process desk({Program("tersectl"), "pki", "--pki", folder, "serve", "--host", "127.0.0.1", "--listen", "127.0.0.1:0"},
               scratch / "desk.log");
  const auto port = [&] {
    const std::string said = desk.Output();
    const size_t at = said.find("on port ");
    return at == std::string::npos ? 0 : std::atoi(said.c_str() + at + 8);
  };
  ASSERT_TRUE(WaitUntil([&] { return port() != 0; }, kAttackPatience)) << desk.Output();
  const std::string address = absl::StrCat("127.0.0.1:", port());
  for (int i = 0; i < 20; ++i) SpeakPlainText(address, 7);
  SpeakPlainText(address, 8);
  EXPECT_TRUE(WaitUntil(
      [&] { return absl::StrContains(desk.Output(), "TLS handshake of 127.0.0.8 failed: it does not speak TLS"); },
      kAttackPatience))
      << desk.Output();
  EXPECT_THAT(desk.Output(), HasSubstr("TLS handshake of 127.0.0.7 failed"));
  // The desk hears of a failure after the connection is closed: the line of a later address may tell of the last ones.
  for (int from = 9; from < 16 && FailuresWithoutALine(desk.Output()) < 19; ++from) {
    SpeakPlainText(address, from);
    const std::string line = absl::StrCat("TLS handshake of 127.0.0.", from, " failed");
    EXPECT_TRUE(WaitUntil([&] { return absl::StrContains(desk.Output(), line); }, kAttackPatience)) << desk.Output();
  }
  EXPECT_EQ(FailuresWithoutALine(desk.Output()), 19) << desk.Output();
}

// Whatever a terminal could obey, apart from the ends of lines.
bool CanSteer(const std::string& text) {
  for (const char c : text) {
    if ((absl::ascii_iscntrl(static_cast<unsigned char>(c)) && c != '\n') || c == '\x7f') return true;
  }
  return absl::StrContains(text, "\u009b") || absl::StrContains(text, "\u202e");
}

// Clears the screen, in two ways, sets the window's title and turns the direction of writing.
constexpr char kEscapes[] = "x\033[2J\033]0;owned\a\u009b2J\u202e\x7f";

TEST_F(AttackTraces, NobodysTextsSteerTheTerminal) {
  fleet_.Serve(kRun);
  const auto mallory = fleet_.Hostile("mallory");
  v1::ClientMessage message;
  message.mutable_check_in()->set_protocol_version(kProtocolVersion);
  message.mutable_check_in()->set_name(kEscapes);
  message.mutable_check_in()->set_run(kEscapes);
  const auto session = mallory->Open();
  session->Write(message);
  EXPECT_FALSE(CanSteer(session->Refusal())) << session->Refusal();
  EXPECT_TRUE(Pause(Operator("eve").get(), kEscapes).ok());
  const ScratchDirectory scratch;
  Process follows({Program("tersectl"), "--admin", fleet_.processes().addresses().admin, "--tls",
                   fleet_.TlsFolder(Role::kOperator, "anna"), "events", "-f"},
                  scratch / "events.log");
  const bool is_shown = WaitUntil([&] { return absl::StrContains(follows.Output(), "x\\u001b[2J"); }, kAttackPatience);
  EXPECT_TRUE(is_shown) << follows.Output();
  EXPECT_FALSE(CanSteer(follows.Output())) << follows.Output();
  for (const char* command : {"status", "events", "clients", "audit"}) {
    EXPECT_FALSE(CanSteer(fleet_.Ctl({command}))) << command;
  }
  EXPECT_FALSE(CanSteer(fleet_.processes().coordinator().Output())) << fleet_.processes().coordinator().Output();
}

// Fails the test for each path below `folder` that others than its owner may do something with; how many there are.
int ExpectOwnersAlone(const std::string& folder) {
  int paths = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    struct stat found = {};
    if (lstat(entry.path().c_str(), &found) != 0) {  // a checkpoint's file may have been replaced since it was listed
      EXPECT_EQ(errno, ENOENT) << entry.path();
      continue;
    }
    EXPECT_EQ(found.st_mode & 07777, S_ISDIR(found.st_mode) ? 0700u : 0600u) << entry.path();
    ++paths;
  }
  struct stat found = {};
  EXPECT_EQ(stat(folder.c_str(), &found), 0) << folder;
  EXPECT_EQ(found.st_mode & 07777, 0700u) << folder;
  return paths;
}

TEST_F(AttackTraces, StateIsItsOwnersAloneWhateverTheUmask) {
  const std::vector<std::string> lax = {"/bin/sh", "-c", "umask 0 && exec \"$0\" \"$@\""};
  FleetProcesses& processes = fleet_.processes();
  const std::string run = processes.directory() / "run.toml";
  WriteText(run, absl::StrCat(kRun, "[checkpoints]\nevery = 2\n"));
  processes.StartCoordinator(run, {lax, "", {"--tls", fleet_.authority().coordinator_tls()}});
  processes.StartClient(0, {lax, "", {"--tls", fleet_.TlsFolder(Role::kClient, "client-0")}});
  ASSERT_TRUE(processes.WaitForRounds(5, kAttackPatience)) << processes.client(0).Output();
  fleet_.Ctl({"pause"});  // a record of the audit log
  EXPECT_GE(ExpectOwnersAlone(processes.coordinator_state()), 6);
  processes.client(0).Signal(SIGTERM);
  EXPECT_EQ(processes.client(0).Wait(kAttackPatience), absl::optional<int>(0));
  EXPECT_GE(ExpectOwnersAlone(processes.client_state(0)), 2);
}

}  // namespace
}  // namespace terse
