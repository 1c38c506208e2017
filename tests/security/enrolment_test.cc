// Enrolment over real TLS: an authority that serves, and devices that come with invitations.
#include "security/enrolment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

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
    options.log = [this](absl::string_view line) { log_.emplace_back(line); };
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

  TempDirectory directory_;
  std::vector<std::string> log_;
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
  EXPECT_THAT(log_, ElementsAre(HasSubstr("enrolled client 'edge-1' from ipv4:127.0.0.1")));
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
  EXPECT_THAT(log_, ElementsAre(StartsWith("refused ipv4:127.0.0.1")));
}

// What is wrong with the authority is for its own log.
TEST_F(EnrolmentTest, DamageIsNotTold) {
  Serve();
  const Invitation invitation = Invite();
  for (const auto& file : std::filesystem::recursive_directory_iterator(PathOf("pki/invitations"))) {
    if (file.is_regular_file()) WriteFile(file.path().string(), "damaged");
  }
  const auto failed = Enrol(PathOf("edge"), invitation, "edge-1");
  EXPECT_TRUE(absl::IsInternal(failed.status())) << failed.status();
  EXPECT_THAT(std::string(failed.status().message()), Not(HasSubstr(directory_.path())));
  EXPECT_THAT(log_, ElementsAre(HasSubstr(directory_.path())));
}

TEST_F(EnrolmentTest, OnlyTheInvitationsAuthorityIsBelieved) {
  Serve();
  Invitation invitation = Invite();
  const auto other = Authority::Create(PathOf("other"), "other", absl::Hours(24));
  invitation.authority = (*other)->certificate();
  const auto refused = Enrol(PathOf("edge"), invitation, "edge-1", absl::Seconds(5));
  EXPECT_TRUE(absl::IsUnavailable(refused.status())) << refused.status();
  EXPECT_THAT(log_, ElementsAre());
}

TEST_F(EnrolmentTest, OnlyForTheHostOfTheInvitation) {
  Serve({"authority.example"});
  const auto refused = Enrol(PathOf("edge"), Invite(), "edge-1", absl::Seconds(5));
  EXPECT_TRUE(absl::IsUnavailable(refused.status())) << refused.status();
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("pki serve"));
  EXPECT_THAT(log_, ElementsAre());
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
