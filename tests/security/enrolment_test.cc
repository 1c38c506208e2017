// Enrolment over real TLS: an authority that serves, and devices that come with invitations.
#include "security/enrolment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/synchronization/mutex.h"
#include "client/rpc/enrol_once.h"
#include "grpcpp/grpcpp.h"
#include "security/authority.h"
#include "security/enrolment_desk.h"
#include "security/invitation_book.h"
#include "security/tls_directory.h"
#include "security/transport.h"
#include "terse/v1/enrolment.grpc.pb.h"
#include "terse/v1/fleet.grpc.pb.h"
#include "tests/security/security_testing.h"
#include "tests/testing/wait_until.h"

namespace terse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Tests call the address: Debian 12's c-ares, which gRPC resolves names with, leaks 10 bytes for each "localhost".
class EnrolmentTest : public ::testing::Test {
 protected:
  EnrolmentTest() { EXPECT_TRUE(Authority::Create(PathOf("pki"), "test", absl::Hours(24 * 3650)).ok()); }

  std::string PathOf(const std::string& name) const { return absl::StrCat(directory_.path(), "/", name); }

  void Serve(const std::vector<std::string>& hosts = {"127.0.0.1"}) {
    EnrolmentDeskOptions options = {PathOf("pki"), "127.0.0.1:0", hosts};
    options.log = [this](absl::string_view line) {
      absl::MutexLock lock(&mutex_);
      log_.emplace_back(line);
    };
    auto desk = EnrolmentDesk::Start(std::move(options));
    ASSERT_TRUE(desk.ok()) << desk.status();
    desk_ = *std::move(desk);
  }

  Invitation Invite(int64_t guests = 1) {
    const auto authority = Authority::Open(PathOf("pki"));
    InvitationTerms terms;
    terms.guests = guests;
    const int port = desk_ == nullptr ? 1 : desk_->port();
    const auto made = InvitationBook(authority->get()).Invite(absl::StrCat("127.0.0.1:", port), terms);
    EXPECT_TRUE(made.ok()) << made.status();
    return *made;
  }

  DaemonOptions Daemon(const Invitation& invitation, const std::string& folder) {
    DaemonOptions options;
    options.invitation = PathOf("invitation");
    WriteFile(options.invitation, InvitationText(invitation));
    options.transport.tls_directory = PathOf(folder);
    options.first_backoff_seconds = 0.02;
    return options;
  }

  // The desk's lines so far. Those of failed handshakes come in threads of gRPC.
  std::vector<std::string> Log() {
    absl::MutexLock lock(&mutex_);
    return log_;
  }

  TempDirectory directory_;
  absl::Mutex mutex_;
  std::vector<std::string> log_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<EnrolmentDesk> desk_;
  std::atomic<bool> stop_{false};
};

TEST_F(EnrolmentTest, ADeviceBecomesAClient) {
  Serve();
  const auto facts = Enrol(PathOf("edge"), Invite(), "edge-1");
  ASSERT_TRUE(facts.ok()) << facts.status();
  const auto folder = OpenTlsDirectory(PathOf("edge"), {Role::kClient});
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_EQ(folder->certificate.identity.name, "edge-1");
  EXPECT_THAT(Log(), ElementsAre(HasSubstr("enrolled client 'edge-1' from ipv4:127.0.0.1")));
  const auto again = Enrol(PathOf("edge"), Invite(), "edge-1");
  EXPECT_TRUE(absl::IsAlreadyExists(again.status())) << again.status();
}

TEST_F(EnrolmentTest, RefusalsReachTheDevice) {
  Serve();
  Invitation invitation = Invite();
  invitation.secret = std::string(kSecretDigits, '0');
  const auto refused = Enrol(PathOf("edge"), invitation, "edge-1");
  EXPECT_TRUE(absl::IsPermissionDenied(refused.status()));
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("knows no such invitation"));
  EXPECT_FALSE(std::filesystem::exists(PathOf("edge/node.crt")));
  EXPECT_THAT(Log(), ElementsAre(StartsWith("refused ipv4:127.0.0.1")));
}

// A guest is not told what is wrong with the authority; the authority's own log says it.
TEST_F(EnrolmentTest, DamageIsNotTold) {
  Serve();
  const Invitation invitation = Invite();
  for (const auto& file : std::filesystem::recursive_directory_iterator(PathOf("pki/invitations"))) {
    if (file.is_regular_file()) WriteFile(file.path().string(), "damaged");
  }
  const auto failed = Enrol(PathOf("edge"), invitation, "edge-1");
  EXPECT_TRUE(absl::IsInternal(failed.status())) << failed.status();
  EXPECT_THAT(std::string(failed.status().message()), Not(HasSubstr(directory_.path())));
  EXPECT_THAT(Log(), ElementsAre(HasSubstr(directory_.path())));
}

TEST_F(EnrolmentTest, OnlyTheInvitationsAuthorityIsBelieved) {
  Serve();
  Invitation invitation = Invite();
  const auto other = Authority::Create(PathOf("other"), "other", absl::Hours(24));
  invitation.authority = (*other)->certificate();
  const auto refused = Enrol(PathOf("edge"), invitation, "edge-1", absl::Seconds(5));
  EXPECT_TRUE(absl::IsUnavailable(refused.status())) << refused.status();
  EXPECT_TRUE(WaitUntil([this] { return !Log().empty(); }, absl::Seconds(10)));
  EXPECT_THAT(Log(), testing::Each(StartsWith("TLS handshake of 127.0.0.1 failed"))) << "nobody has asked";
}

TEST_F(EnrolmentTest, OnlyForTheHostOfTheInvitation) {
  Serve({"authority.example"});
  const auto refused = Enrol(PathOf("edge"), Invite(), "edge-1", absl::Seconds(5));
  EXPECT_TRUE(absl::IsUnavailable(refused.status())) << refused.status();
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("pki serve"));
  EXPECT_THAT(Log(), ElementsAre());
}

TEST_F(EnrolmentTest, AFolderOfAnotherAuthorityIsLeftAlone) {
  Serve();
  std::filesystem::create_directory(PathOf("edge"));
  WriteFile(PathOf("edge/ca.crt"), "another");
  EXPECT_TRUE(absl::IsFailedPrecondition(Enrol(PathOf("edge"), Invite(), "edge-1").status()));
  EXPECT_FALSE(std::filesystem::exists(PathOf("edge/node.key")));
}

// The answer was lost: the key that the attempt left is the one that the certificate is for.
TEST_F(EnrolmentTest, ABrokenAttemptIsGoneOnWith) {
  Serve();
  const Invitation invitation = Invite();
  ASSERT_TRUE(Enrol(PathOf("edge"), invitation, "edge-1").ok());
  const std::string certificate = ReadFile(PathOf("edge/node.crt"));
  std::filesystem::remove(PathOf("edge/node.crt"));
  std::filesystem::remove(PathOf("edge/ca.crt"));
  ASSERT_TRUE(Enrol(PathOf("edge"), invitation, "edge-1").ok());
  EXPECT_EQ(ReadFile(PathOf("edge/node.crt")), certificate);
}

TEST_F(EnrolmentTest, ItWaitsForACommandThatWorksInTheFolder) {
  Serve();
  const Invitation invitation = Invite();
  auto authority = Authority::Open(PathOf("pki"));
  ASSERT_TRUE(authority.ok());
  std::thread other([&] {
    absl::SleepFor(absl::Milliseconds(300));
    authority->reset();
  });
  EXPECT_TRUE(Enrol(PathOf("edge"), invitation, "edge-1").ok());
  other.join();
}

// A caller without an invitation neither waits for the lock on the authority's folder nor takes it.
TEST_F(EnrolmentTest, AWrongSecretIsCheckedWithoutTheLock) {
  Serve();
  Invitation invitation = Invite();
  const auto authority = Authority::Open(PathOf("pki"));
  ASSERT_TRUE(authority.ok());
  invitation.secret = std::string(kSecretDigits, '0');
  const auto refused = Enrol(PathOf("edge"), invitation, "edge-1");
  EXPECT_TRUE(absl::IsPermissionDenied(refused.status())) << refused.status();
}

TEST_F(EnrolmentTest, WrongSecretsWithoutEndAreToldToWaitAndOthersComeIn) {
  Serve();
  const Invitation good = Invite();
  Invitation wrong = good;
  wrong.secret = std::string(kSecretDigits, '0');
  constexpr int kTries = 60;
  int refused = 0, told_to_wait = 0;
  for (int i = 0; i < kTries; ++i) {
    const absl::Status status = Enrol(PathOf("edge"), wrong, "edge-1").status();
    refused += absl::IsPermissionDenied(status) ? 1 : 0;
    told_to_wait += absl::IsUnavailable(status) && absl::StrContains(status.message(), "too many") ? 1 : 0;
  }
  EXPECT_EQ(refused + told_to_wait, kTries);
  EXPECT_GE(refused, kRefusalsAtOnce);
  EXPECT_GT(told_to_wait, kTries / 2);
  EXPECT_EQ(Log().size(), static_cast<size_t>(refused + 1)) << "one line says that there are more";
  EXPECT_THAT(Log(), testing::Contains(HasSubstr("refused 127.0.0.1 too often")));
  EXPECT_TRUE(Enrol(PathOf("edge"), good, "edge-1").ok());
}

// A TCP connection from 127.0.0.2 that says nothing.
class Idle {
 public:
  explicit Idle(int port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(port));
    EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  ~Idle() { close(fd_); }
  Idle(const Idle&) = delete;
  Idle& operator=(const Idle&) = delete;

  // Whether the other end resets it within `patience`.
  bool IsReset(absl::Duration patience) const {
    pollfd polled = {fd_, POLLIN, 0};
    char byte = 0;
    return poll(&polled, 1, static_cast<int>(absl::ToInt64Milliseconds(patience))) == 1 && recv(fd_, &byte, 1, 0) < 0 &&
           errno == ECONNRESET;
  }

 private:
  const int fd_;
};

TEST_F(EnrolmentTest, IdleConnectionsOfAnAddressHaveABound) {
  Serve();
  const Invitation invitation = Invite();
  std::vector<std::unique_ptr<Idle>> idle;
  for (int i = 0; i < 64; ++i) idle.push_back(std::make_unique<Idle>(desk_->port()));
  EXPECT_TRUE(Idle(desk_->port()).IsReset(absl::Seconds(5)));
  EXPECT_TRUE(Enrol(PathOf("edge"), invitation, "edge-1").ok()) << "another address has a place";
  EXPECT_TRUE(absl::c_all_of(Log(), [](const std::string& line) {
    return absl::StartsWith(line, "1 connection(s) to 127.0.0.1:") || absl::StartsWith(line, "enrolled client");
  }));
}

TEST_F(EnrolmentTest, ManyComeAtOnceAndNoneTooMany) {
  Serve();
  constexpr int kDevices = 12;
  constexpr int kPlaces = 7;
  const DaemonOptions options = Daemon(Invite(kPlaces), "");
  std::atomic<int> in{0}, out{0};
  std::vector<std::thread> devices;
  for (int i = 0; i < kDevices; ++i) {
    devices.emplace_back([&, i] {
      DaemonOptions own = options;
      own.name = absl::StrCat("edge-", i);
      own.transport.tls_directory = PathOf(own.name);
      const absl::Status status = EnrolOnce(own, &stop_);
      ++(status.ok() ? in : out);
      EXPECT_TRUE(status.ok() || absl::IsPermissionDenied(status)) << status;
    });
  }
  for (std::thread& device : devices) device.join();
  EXPECT_EQ(in, kPlaces);
  EXPECT_EQ(out, kDevices - kPlaces);
}

// The desk's certificate is a coordinator's, but it has none of a coordinator's services, nor has a coordinator its.
TEST_F(EnrolmentTest, TheDeskDoesNothingElse) {
  Serve();
  const Invitation invitation = Invite();
  const auto channel = grpc::CreateChannel(invitation.address, ConnectAsGuest(invitation.authority));
  grpc::ClientContext context;
  const auto stream = v1::Fleet::NewStub(channel)->Session(&context);
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNIMPLEMENTED);
  grpc::ClientContext too_much;
  v1::EnrolRequest request;
  request.set_request_pem(std::string(1 << 20, 'x'));
  v1::EnrolReply reply;
  EXPECT_EQ(v1::Enrolment::NewStub(channel)->Enrol(&too_much, request, &reply).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
}

// Answers with what it was given, whatever is asked.
class Liar : public v1::Enrolment::Service {
 public:
  grpc::Status Enrol(grpc::ServerContext*, const v1::EnrolRequest*, v1::EnrolReply* reply) override {
    reply->set_certificate_pem(answer);
    return grpc::Status::OK;
  }
  std::string answer;
};

TEST_F(EnrolmentTest, AnswersAreChecked) {
  auto authority = Authority::Open(PathOf("pki"));
  const auto issue = [&](const CertificateRequest& request, const std::string& key) {
    return *(*authority)->Issue(*MakeRequest(request, key), absl::Hours(1));
  };
  const std::string server_key = *MakeKey();
  Liar liar;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(
      "127.0.0.1:0", ListenForGuests(issue({{Role::kCoordinator, "x"}, {"127.0.0.1"}}, server_key), server_key), &port);
  builder.RegisterService(&liar);
  const auto server = builder.BuildAndStart();
  Invitation invitation = {absl::StrCat("127.0.0.1:", port), std::string(kSecretDigits, '0'),
                           (*authority)->certificate()};
  std::filesystem::create_directory(PathOf("edge"));
  const std::string key = *MakeKey();
  WriteFile(PathOf("edge/node.key"), key);
  const std::string another_key = issue({{Role::kClient, "edge-1"}, {}}, *MakeKey());
  const std::string another_name = issue({{Role::kClient, "edge-2"}, {}}, key);
  const std::string another_role = issue({{Role::kOperator, "edge-1"}, {}}, key);
  for (const std::string& answer : {std::string(), another_key, another_name, another_role}) {
    liar.answer = answer;
    const auto enrolled = Enrol(PathOf("edge"), invitation, "edge-1");
    EXPECT_TRUE(absl::IsDataLoss(enrolled.status())) << enrolled.status();
    EXPECT_FALSE(std::filesystem::exists(PathOf("edge/node.crt")));
  }
  liar.answer = issue({{Role::kClient, "edge-1"}, {}}, key);
  EXPECT_TRUE(Enrol(PathOf("edge"), invitation, "edge-1").ok());
}

TEST_F(EnrolmentTest, ADaemonEnrolsOnce) {
  Serve();
  DaemonOptions options = Daemon(Invite(), "edge");
  options.name = "edge-1";
  ASSERT_EQ(EnrolOnce(options, &stop_), absl::OkStatus());
  const std::string certificate = ReadFile(PathOf("edge/node.crt"));
  desk_.reset();
  std::filesystem::remove(options.invitation);
  EXPECT_EQ(EnrolOnce(options, &stop_), absl::OkStatus()) << "the certificate is there: nothing is asked or read";
  EXPECT_EQ(ReadFile(PathOf("edge/node.crt")), certificate);
}

TEST_F(EnrolmentTest, ADaemonWaitsForTheAuthority) {
  DaemonOptions options = Daemon(Invite(), "edge");  // nobody listens there
  options.name = "edge-1";
  std::thread stopper([&] {
    absl::SleepFor(absl::Milliseconds(300));
    stop_ = true;
  });
  EXPECT_TRUE(absl::IsCancelled(EnrolOnce(options, &stop_)));
  stopper.join();
  stop_ = false;
  Serve();
  options = Daemon(Invite(), "edge");
  options.name = "edge-1";
  EXPECT_EQ(EnrolOnce(options, &stop_), absl::OkStatus());
}

TEST_F(EnrolmentTest, ADaemonEndsWhenItIsRefused) {
  Serve();
  Invitation invitation = Invite();
  invitation.secret = std::string(kSecretDigits, 'f');
  DaemonOptions options = Daemon(invitation, "edge");
  EXPECT_TRUE(absl::IsPermissionDenied(EnrolOnce(options, &stop_)));
  std::filesystem::remove(options.invitation);
  EXPECT_TRUE(absl::IsNotFound(EnrolOnce(options, &stop_)));
}

}  // namespace
}  // namespace terse
