// The client's end of the stream, against a server that says more than the client listens to.
#include "client/rpc/grpc_link.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/channel_settings.h"
#include "proto/session_wire.h"
#include "terse/v1/admin.grpc.pb.h"

namespace terse {
namespace {

constexpr int64_t kMessages = 256;
constexpr size_t kMessageBytes = size_t{1} << 20;

// Sends its messages as fast as they are taken, once the client has checked in.
class Talkative final : public v1::Fleet::Service {
 public:
  using Stream = grpc::ServerReaderWriter<v1::ServerMessages, v1::ClientMessage>;
  grpc::Status Session(grpc::ServerContext*, Stream* stream) override {
    v1::ClientMessage check_in;
    if (!stream->Read(&check_in)) return grpc::Status::OK;
    const auto payload = std::make_shared<const std::string>(kMessageBytes, 'x');
    for (int64_t version = 1; version <= kMessages; ++version) {
      for (v1::ServerMessage& chunk : ToWire(Downstream{version, HashBytes("model"), payload}, {})) {
        v1::ServerMessages messages;
        *messages.add_messages() = std::move(chunk);
        if (!stream->Write(messages)) return grpc::Status::OK;
      }
      ++sent;
    }
    while (stream->Read(&check_in)) {
    }
    return grpc::Status::OK;
  }

  std::atomic<int64_t> sent{0};
};

class GrpcLinkTest : public ::testing::Test {
 protected:
  GrpcLinkTest() {
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    link_ = GrpcLink::Connect({absl::StrCat("127.0.0.1:", port), {}}, absl::Seconds(30), &stopping_).value();
    link_->SetMaxDownstreamBytes(kMessageBytes);
    CheckIn message;
    message.name = "a";
    EXPECT_EQ(link_->Send(message), absl::OkStatus());
  }
  ~GrpcLinkTest() override {
    link_.reset();
    server_->Shutdown();
  }
  // Until the server is held up, or has said everything.
  int64_t SentUnheard() const {
    int64_t before = 0;
    do {
      before = service_.sent;
      absl::SleepFor(absl::Seconds(1));
    } while ((before == 0 || service_.sent != before) && before < kMessages);
    return service_.sent;
  }

  Talkative service_;
  std::unique_ptr<grpc::Server> server_;
  std::atomic<bool> stopping_{false};
  std::unique_ptr<GrpcLink> link_;
};

TEST_F(GrpcLinkTest, WhoTrainsDoesNotReadWithoutEnd) {
  // 16 MiB, and what the connection holds by itself.
  EXPECT_LT(SentUnheard(), 64);
  for (int64_t version = 1; version <= kMessages; ++version) {
    const absl::StatusOr<FromServer> message = link_->Receive();
    ASSERT_EQ(message.status(), absl::OkStatus()) << version;
    EXPECT_EQ(std::get<Downstream>(*message).version, version);
  }
}

TEST_F(GrpcLinkTest, EndsWithAFullInbox) {
  SentUnheard();
  const absl::Time begin = absl::Now();
  link_->Close();  // the server says the rest first
  link_.reset();
  EXPECT_LT(absl::Now() - begin, absl::Seconds(30));
}

TEST_F(GrpcLinkTest, IsGivenUpWithAFullInbox) {
  SentUnheard();
  link_.reset();
}

// Says nothing until the client does.
class Quiet final : public v1::Fleet::Service {
 public:
  grpc::Status Session(grpc::ServerContext*, Talkative::Stream* stream) override {
    v1::ClientMessage message;
    while (stream->Read(&message)) {
    }
    return grpc::Status::OK;
  }
};

// A client with several addresses pings so often by itself, and a little later than half of that is never too early. A
// third ping that comes too early would end the connection.
TEST(GrpcLink, EveryCoordinatorPermitsThePingsOfThoseWithSeveralAddresses) {
  constexpr double kPing = kSeveralKeepaliveSeconds / 2 + 0.1;
  Quiet service;
  int port = 0;
  grpc::ServerBuilder builder;
  SetFleetServerOptions(&builder);
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  std::atomic<bool> stopping{false};
  std::unique_ptr<GrpcLink> link =
      GrpcLink::Connect({absl::StrCat("127.0.0.1:", port), {}, kPing}, absl::Seconds(30), &stopping).value();
  std::thread stop([&stopping] {
    absl::SleepFor(absl::Seconds(5 * kPing));
    stopping = true;
  });
  EXPECT_EQ(link->Receive().status(), absl::CancelledError("stopping"));
  stop.join();
  link.reset();
  server->Shutdown();
}

// The address of the admin service, given in place of the one for clients.
TEST(GrpcLink, SaysThatTheAddressIsAnotherService) {
  v1::Admin::Service admin;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&admin);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  std::atomic<bool> stopping{false};
  std::unique_ptr<GrpcLink> link =
      GrpcLink::Connect({absl::StrCat("127.0.0.1:", port), {}}, absl::Seconds(30), &stopping).value();
  CheckIn message;
  message.name = "a";
  link->Send(message).IgnoreError();  // the stream may have ended already
  EXPECT_EQ(
      link->Receive().status(),
      absl::UnavailableError("there is no service for clients at this address: give the coordinator's --listen, and "
                             "not its --admin"));
  link.reset();
  server->Shutdown();
}

}  // namespace
}  // namespace terse
