// A fleet over TLS: who is who, and what becomes of those whose certificate is wrong, ends or is taken back.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "client/rpc/connection_loop.h"
#include "client/rpc/grpc_link.h"
#include "security/transport.h"
#include "terse/v1/fleet.grpc.pb.h"
#include "tests/security/secure_fleet.h"
#include "tests/tersectl/run_tersectl.h"
#include "tests/testing/grid_learning.h"
#include "tests/testing/grid_trainer.h"
#include "tests/testing/wait_until.h"

namespace terse {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A client daemon in a thread of the test.
class ClientThread {
 public:
  explicit ClientThread(const DaemonOptions& options)
      : thread_([this, options] {
          status_ = ServeCoordinator(options, GridTrainerFactory(), &stop_);
          ended_.Notify();
        }) {}
  ~ClientThread() { Stop().IgnoreError(); }

  bool WaitForEnd(absl::Duration timeout = kPatience) { return ended_.WaitForNotificationWithTimeout(timeout); }
  // Stops the client and returns its status once it has ended.
  absl::Status Stop() {
    stop_.store(true);
    if (thread_.joinable()) thread_.join();
    return status_;
  }

 private:
  std::atomic<bool> stop_{false};
  absl::Notification ended_;
  absl::Status status_;
  std::thread thread_;
};

class Tls : public testing::Test {
 protected:
  std::string RunFile(int64_t rounds, int clients) {
    const std::string path = fleet_.Path("run.toml");
    std::ofstream(path) << "name = 'r'\n[train]\nlocal_steps = 1\noptimizer.learning_rate = 1.0\n[codec]\nname = "
                           "'sbc'\ndensity = 0.02\n[rounds]\ncount = "
                        << rounds << "\nclients = " << clients << "\nevaluate_every = 1000000\n";
    return path;
  }

  DaemonOptions Client(const std::string& name, const std::string& folder) {
    DaemonOptions options;
    options.coordinators = {fleet_.addresses().fleet};
    options.name = name;
    options.state_directory = fleet_.Path("client-" + name);
    options.transport = fleet_.Transport(folder);
    options.first_backoff_seconds = 0.05;
    return options;
  }

  CtlOutcome Ctl(const std::string& folder, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--admin", fleet_.addresses().admin, "--tls", folder});
    return Invoke(arguments);
  }

  // Rounds that are committed, as an operator sees them.
  int64_t Committed() {
    const CtlOutcome status = Ctl(operator_, {"status", "--json"});
    const size_t at = status.out.find("\"version\"");
    return at == std::string::npos ? -1 : std::atoll(status.out.c_str() + status.out.find(':', at) + 1);
  }
  // A line of the audit log that is like this.
  bool WaitForAudit(const testing::Matcher<const std::string&>& line) {
    return Soon([&] {
      const std::vector<std::string> lines = absl::StrSplit(Ctl(operator_, {"audit"}).out, '\n');
      return testing::Value(lines, testing::Contains(line));
    });
  }
  bool WaitForRoundsBeyond(int64_t rounds) {
    return Soon([&] { return Committed() > rounds; });
  }

  // `tersectl watch` in a thread of the test.
  class WatchThread {
   public:
    WatchThread(Tls* test, const std::string& folder)
        : thread_([this, test, folder] {
            outcome_ = test->Ctl(folder, {"watch"});
            ended_.Notify();
          }) {}
    ~WatchThread() { Join(); }

    bool WaitForEnd(absl::Duration timeout) { return ended_.WaitForNotificationWithTimeout(timeout); }
    const CtlOutcome& outcome() {
      Join();
      return outcome_;
    }

   private:
    void Join() {
      if (thread_.joinable()) thread_.join();
    }

    CtlOutcome outcome_;
    absl::Notification ended_;
    std::thread thread_;
  };

  SecureFleet fleet_;
  const std::string operator_ = fleet_.Issue(Role::kOperator, "ops");
};

TEST_F(Tls, AFleetFinishesItsRun) {
  fleet_.Serve(RunFile(5, 2));
  ClientThread first(Client("a", fleet_.Issue(Role::kClient, "a")));
  ClientThread second(Client("b", fleet_.Issue(Role::kClient, "b")));
  EXPECT_TRUE(first.WaitForEnd());
  EXPECT_TRUE(second.WaitForEnd());
  EXPECT_EQ(first.Stop(), absl::OkStatus());
  EXPECT_EQ(second.Stop(), absl::OkStatus());
  EXPECT_EQ(Committed(), 5);
}

TEST_F(Tls, AClientIsWhoItsCertificateSays) {
  fleet_.Serve(RunFile(5, 1));
  ClientThread liar(Client("b", fleet_.Issue(Role::kClient, "a")));
  ASSERT_TRUE(liar.WaitForEnd());
  EXPECT_THAT(std::string(liar.Stop().message()), HasSubstr("the certificate is for 'a', not for 'b'"));
  EXPECT_EQ(Committed(), 0);
  EXPECT_TRUE(WaitForAudit(AllOf(HasSubstr("client a"), HasSubstr("FAILED_PRECONDITION: the certificate is for 'a'"))));
}

TEST_F(Tls, AClientThatCallsTooOftenWaits) {
  fleet_.Serve(RunFile(5, 1), {/*calls_per_minute=*/3, /*calls_at_once=*/100, 0});
  const auto call = [this](const std::string& folder) {
    grpc::ChannelArguments arguments;
    const auto credentials =
        ConnectWith(fleet_.Transport(folder), fleet_.addresses().fleet, {Role::kClient}, &arguments);
    const auto stub =
        v1::Fleet::NewStub(grpc::CreateCustomChannel("dns:///" + fleet_.addresses().fleet, *credentials, arguments));
    grpc::ClientContext context;
    v1::CheckpointRequest request;
    request.set_lineage(Id128::Random().ToBytes());
    v1::FileChunk chunk;
    const auto reader = stub->DownloadCheckpoint(&context, request);
    EXPECT_FALSE(reader->Read(&chunk));
    return reader->Finish();
  };
  const std::string eager = fleet_.Issue(Role::kClient, "eager"), other = fleet_.Issue(Role::kClient, "other");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(call(eager).error_code(), grpc::StatusCode::NOT_FOUND) << i;
  const grpc::Status refused = call(eager);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(refused.error_message(), HasSubstr("budget of 3 calls a minute is used up"));
  EXPECT_EQ(call(other).error_code(), grpc::StatusCode::NOT_FOUND);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(Ctl(operator_, {"status"}).code, 0) << "operators have no budget";
  EXPECT_TRUE(
      WaitForAudit(AllOf(HasSubstr("client eager"), HasSubstr("DownloadCheckpoint"), HasSubstr("UNAVAILABLE"))));
}

TEST_F(Tls, AClientThatSpendsItsBytesIsServedMoreSlowly) {
  // The budget is enough for some hundred rounds at once, and for a few each second.
  fleet_.Serve(RunFile(1'000'000, 1), {1000, 100, /*bytes_per_minute=*/60'000});
  ClientThread client(Client("a", fleet_.Issue(Role::kClient, "a")));
  ASSERT_TRUE(WaitForRoundsBeyond(100));
  absl::SleepFor(absl::Seconds(1));
  const int64_t before = Committed();
  EXPECT_TRUE(WaitForRoundsBeyond(before + 2)) << "but it is";
  const absl::Time begin = absl::Now();
  const int64_t middle = Committed();
  absl::SleepFor(absl::Seconds(3));
  const double rounds_per_second =
      static_cast<double>(Committed() - middle) / absl::ToDoubleSeconds(absl::Now() - begin);
  EXPECT_LT(rounds_per_second, 30) << "1 kB a second, and a round has more than 33 bytes";
  EXPECT_FALSE(client.WaitForEnd(absl::ZeroDuration()));
  EXPECT_EQ(Ctl(operator_, {"clients", "--json"}).out.find("\"resets\": 1"), std::string::npos);
  EXPECT_EQ(client.Stop().code(), absl::StatusCode::kCancelled);
}

TEST_F(Tls, AnOperatorOfTheFleetIsNoClient) {
  fleet_.Serve(RunFile(5, 1));
  ClientThread client(Client("ops", operator_));
  EXPECT_FALSE(client.WaitForEnd(absl::Seconds(1)));
  EXPECT_EQ(Committed(), 0);
}

TEST_F(Tls, ARevokedClientIsEndedAndSaysWhy) {
  fleet_.Serve(RunFile(1'000'000, 1));
  ClientThread client(Client("a", fleet_.Issue(Role::kClient, "a")));
  ASSERT_TRUE(WaitForRoundsBeyond(3));
  fleet_.Revoke("a");
  ASSERT_TRUE(client.WaitForEnd());
  const absl::Status status = client.Stop();
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("is revoked"));
}

TEST_F(Tls, ACallWithoutEndEndsWithARevocation) {
  const std::string observer = fleet_.Issue(Role::kObserver, "eyes");
  fleet_.Serve(RunFile(1'000'000, 1));
  WatchThread watch(this, observer);
  EXPECT_FALSE(watch.WaitForEnd(absl::Seconds(2)));
  fleet_.Revoke("eyes");
  EXPECT_TRUE(watch.WaitForEnd(kPatience));
  if (!watch.WaitForEnd(absl::ZeroDuration())) fleet_.Stop().IgnoreError();
  EXPECT_NE(watch.outcome().code, 0);
  EXPECT_THAT(watch.outcome().err, HasSubstr("is revoked"));
}

TEST_F(Tls, ARenewedCertificateGoesOnWhereTheOldOneEnds) {
  fleet_.Serve(RunFile(1'000'000, 1));
  const std::string folder = fleet_.Issue(Role::kClient, "a", absl::Seconds(5));
  const absl::Time end = absl::Now() + absl::Seconds(5);
  ClientThread client(Client("a", folder));
  ASSERT_TRUE(WaitForRoundsBeyond(0));
  fleet_.Renew(folder, Role::kClient, "a", absl::Hours(1));
  absl::SleepFor(end + absl::Seconds(3) - absl::Now());
  const int64_t rounds = Committed();
  EXPECT_TRUE(WaitForRoundsBeyond(rounds));
  EXPECT_FALSE(client.WaitForEnd(absl::ZeroDuration()));
}

TEST_F(Tls, AnExpiredClientComesBackOnceItIsRenewed) {
  fleet_.Serve(RunFile(1'000'000, 1));
  const std::string folder = fleet_.Issue(Role::kClient, "a", absl::Seconds(4));
  const absl::Time end = absl::Now() + absl::Seconds(4);
  ClientThread client(Client("a", folder));
  ASSERT_TRUE(WaitForRoundsBeyond(0));
  absl::SleepFor(end + absl::Seconds(3) - absl::Now());
  const int64_t rounds = Committed();
  absl::SleepFor(absl::Seconds(1));
  EXPECT_EQ(Committed(), rounds) << "it trains with an expired certificate";
  fleet_.Renew(folder, Role::kClient, "a", absl::Hours(1));
  EXPECT_TRUE(WaitForRoundsBeyond(rounds));
}

// Returns the version that an independent program agrees on with the coordinator: "TLSv1.3"; "" when they cannot.
std::string Negotiate(const std::string& address, const std::string& folder, const std::string& version) {
  const std::string command =
      absl::StrCat("openssl s_client -connect ", address, " -alpn h2 -CAfile ", folder, "/ca.crt -cert ", folder,
                   "/node.crt -key ", folder, "/node.key -verify_return_error -brief ", version, " </dev/null 2>&1");
  FILE* const pipe = popen(command.c_str(), "r");
  std::string output(1 << 14, '\0');
  output.resize(fread(&output[0], 1, output.size(), pipe));
  pclose(pipe);
  const std::string label = "Protocol version: ";
  const size_t at = output.find(label);
  return at == std::string::npos ? "" : output.substr(at + label.size(), 7);
}

TEST_F(Tls, AWatchGoesOnOverARenewal) {
  const std::string observer = fleet_.Issue(Role::kObserver, "eyes", absl::Seconds(4));
  const absl::Time end = absl::Now() + absl::Seconds(4);
  fleet_.Serve(RunFile(1'000'000, 1));
  WatchThread watch(this, observer);
  absl::SleepFor(end + absl::Seconds(2) -
                 absl::Now());  // late: for a while it is told that its certificate has expired
  fleet_.Renew(observer, Role::kObserver, "eyes", absl::Hours(1));
  EXPECT_FALSE(watch.WaitForEnd(absl::Seconds(3)));
  EXPECT_EQ(Ctl(operator_, {"stop"}).code, 0);
  EXPECT_TRUE(watch.WaitForEnd(kPatience));
  EXPECT_EQ(watch.outcome().code, 0) << watch.outcome().err;
}

// Whether a new client gets in.
bool LetsIn(SecureFleet* fleet, const std::string& folder) {
  const std::atomic<bool> stop{false};
  return GrpcLink::Connect({fleet->addresses().fleet, fleet->Transport(folder), 60}, kPatience, &stop).ok();
}

TEST_F(Tls, FilesThatAreNotWholeChangeNothing) {
  fleet_.Serve();
  const std::string client = fleet_.Issue(Role::kClient, "a");
  const std::string live = fleet_.coordinator_tls();
  const std::string other = fleet_.Issue(Role::kCoordinator, "other", absl::Hours(1), {"127.0.0.1"});
  for (const char* name : {"/node.crt", "/node.key", "/ca.crt"}) {
    const std::string good = Slurp(live + name);
    for (const std::string& bad : {std::string(), good.substr(0, good.size() / 2), Slurp(other + "/node.key")}) {
      std::ofstream(live + name) << bad;
      absl::SleepFor(absl::Milliseconds(1500));
      EXPECT_TRUE(LetsIn(&fleet_, client)) << name << " with " << bad.size() << " bytes";
    }
    std::ofstream(live + name) << good;
  }
}

TEST_F(Tls, ANewKeyOfTheCoordinatorIsTakenUp) {
  fleet_.Serve();
  const std::string client = fleet_.Issue(Role::kClient, "a");
  const std::string live = fleet_.coordinator_tls();
  const std::string next = fleet_.Issue(Role::kCoordinator, "next", absl::Hours(1), {"127.0.0.1", "next.example"});
  TransportOptions transport = fleet_.Transport(client);
  transport.server_name = "next.example";
  const std::atomic<bool> stop{false};
  const GrpcLink::Peer peer = {fleet_.addresses().fleet, transport, 60};
  EXPECT_FALSE(GrpcLink::Connect(peer, kPatience, &stop).ok());
  for (const char* name : {"/node.key", "/node.crt"})
    std::filesystem::copy_file(next + name, live + name, std::filesystem::copy_options::overwrite_existing);
  absl::SleepFor(absl::Milliseconds(2500));
  EXPECT_TRUE(GrpcLink::Connect(peer, kPatience, &stop).ok());
}

TEST_F(Tls, ASocketInUseIsNotTaken) {
  CoordinatorOptions options;
  options.state_directory = fleet_.Path("one");
  options.listen = "127.0.0.1:0";
  options.admin = UnixSocketAddress(fleet_.Path("my admin.sock"));
  CoordinatorThread first(options, GridLearningFactory());
  options.state_directory = fleet_.Path("two");
  CoordinatorThread second(options, GridLearningFactory());
  const absl::Status status = second.Stop();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("another process listens on"));
  EXPECT_NE(Invoke({"--admin", options.admin, "runs"}).code, kExitUnreachable);
}

TEST_F(Tls, OnlyVersionOneThree) {
  fleet_.Serve();
  EXPECT_EQ(Negotiate(fleet_.addresses().fleet, operator_, "-tls1_3"), "TLSv1.3");
  EXPECT_EQ(Negotiate(fleet_.addresses().fleet, operator_, "-tls1_2"), "");
}

TEST_F(Tls, TheCoordinatorMustBeTheOneThatWasCalled) {
  fleet_.Serve();
  const std::atomic<bool> stop{false};
  GrpcLink::Peer peer = {fleet_.addresses().fleet, fleet_.Transport(fleet_.Issue(Role::kClient, "a")), 60};
  EXPECT_TRUE(GrpcLink::Connect(peer, kPatience, &stop).ok());
  peer.transport.server_name = "elsewhere.example";
  EXPECT_EQ(GrpcLink::Connect(peer, kPatience, &stop).status().code(), absl::StatusCode::kUnavailable);
  peer.transport.server_name = "localhost";
  EXPECT_TRUE(GrpcLink::Connect(peer, kPatience, &stop).ok());
}

TEST_F(Tls, AClientCannotPassForTheCoordinator) {
  // Everything fits but the purpose.
  const std::string thief = fleet_.Issue(Role::kClient, "thief", absl::Hours(1), {"127.0.0.1"});
  grpc::SslServerCredentialsOptions ssl;
  ssl.pem_key_cert_pairs.push_back({Slurp(thief + "/node.key"), Slurp(thief + "/node.crt")});
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::SslServerCredentials(ssl), &port);
  v1::Fleet::Service service;
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  const std::atomic<bool> stop{false};
  const auto link = GrpcLink::Connect(
      {absl::StrCat("127.0.0.1:", port), fleet_.Transport(fleet_.Issue(Role::kClient, "a")), 60}, kPatience, &stop);
  EXPECT_EQ(link.status().code(), absl::StatusCode::kUnavailable) << link.status();
  EXPECT_THAT(std::string(link.status().message()), HasSubstr("or is for another purpose"));
}

TEST_F(Tls, AnObserverLooksAndDoesNotTouch) {
  const std::string observer = fleet_.Issue(Role::kObserver, "eyes");
  fleet_.Serve(RunFile(5, 1));
  EXPECT_EQ(Ctl(observer, {"status"}).code, 0);
  const CtlOutcome refused = Ctl(observer, {"stop", "--shutdown"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("'eyes' is observer by its certificate, which may not call"));
  EXPECT_EQ(Ctl(operator_, {"pause"}).code, 0);
}

TEST_F(Tls, TheUnixSocketIsItsOwnersAlone) {
  CoordinatorOptions options;
  options.run_files = {RunFile(5, 1)};
  options.state_directory = fleet_.Path("my runs");
  options.listen = "127.0.0.1:0";
  CoordinatorThread coordinator(options, GridLearningFactory());
  const std::string socket = options.state_directory + "/admin.sock";
  EXPECT_EQ(coordinator.addresses().admin, UnixSocketAddress(socket));
  struct stat info = {};
  ASSERT_EQ(stat(socket.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_EQ(Invoke({"--admin", coordinator.addresses().admin, "status"}).code, 0);
}

TEST_F(Tls, CleartextStaysOnThisMachine) {
  CoordinatorOptions options;
  options.state_directory = fleet_.Path("plain");
  options.listen = "0.0.0.0:0";
  CoordinatorThread refused(options, GridLearningFactory());
  const absl::Status status = refused.Stop();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("0.0.0.0:0"), HasSubstr("--tls"), HasSubstr("--insecure")));
  options.transport.insecure = true;
  CoordinatorThread served(options, GridLearningFactory());
  EXPECT_EQ(served.Stop(), absl::OkStatus());
}

}  // namespace
}  // namespace terse
