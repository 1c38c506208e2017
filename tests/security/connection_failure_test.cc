// Tests the words for connections that fail: gRPC's texts as they were recorded, and those of real servers.
#include "security/connection_failure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "security/authority.h"
#include "security/certificate.h"
#include "security/transport.h"
#include "tests/testing/temp_directory.h"

namespace terse {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kAttempt[] = "failed to connect to all addresses; last error: ";

TEST(ConnectionFailureText, SaysGrpcsTextsInWords) {
  struct Row {
    const char* text;
    const char* words;
  };
  for (const Row& row : {
           Row{"UNKNOWN: ipv4:127.0.0.1:1: Failed to connect to remote host: Connection refused",
               "nobody listens there"},
           Row{"UNKNOWN: unix:/tmp/none.sock: No such file or directory", "there is no such socket"},
           Row{"UNKNOWN: ipv6:%5B::1%5D:1: Failed to connect to remote host: No route to host",
               "no network leads there"},
           Row{"UNKNOWN: ipv4:127.0.0.1:1: Peer name other is not in peer certificate",
               "its certificate is for another host; --server-name HOST names that one"},
           Row{"UNKNOWN: ipv4:127.0.0.1:1: Ssl handshake failed: SSL_ERROR_SSL: error:0A000086:SSL "
               "routines::certificate verify failed",
               "its certificate has expired, is of another authority, or is for another "
               "purpose"},
           Row{"UNKNOWN: ipv4:127.0.0.1:1: Ssl handshake failed: SSL_ERROR_SSL: error:0A000410:SSL "
               "routines::sslv3 alert handshake failure",
               "the TLS handshake failed (sslv3 alert handshake failure)"},
           Row{"UNKNOWN: ipv4:127.0.0.1:1: something new", "something new"},
       }) {
    EXPECT_EQ(ConnectionFailureText(absl::StrCat(kAttempt, row.text), Spoke::kTls), row.words);
  }
  EXPECT_EQ(ConnectionFailureText("Socket closed", Spoke::kCleartext), "the other side closed it");
  EXPECT_EQ(ConnectionFailureText("recvmsg:Connection reset by peer", Spoke::kCleartext), "the other side closed it");
  EXPECT_EQ(ConnectionFailureText("Deadline Exceeded", Spoke::kCleartext), "it did not answer in time");
  EXPECT_EQ(
      ConnectionFailureText("DNS resolution failed for h:1: C-ares status is not ARES_SUCCESS", Spoke::kCleartext),
      "the host's name is not known");
}

TEST(ConnectionFailureText, LeavesThePeersOwnWords) {
  for (const char* own : {"the coordinator is shutting down", "cannot write /x: Permission denied", ""}) {
    EXPECT_EQ(ConnectionFailureText(own, Spoke::kCleartext), own);
  }
}

TEST(ConnectionFailureText, HintsAtTlsWhereItIsMissing) {
  const std::string closed = absl::StrCat(kAttempt, "UNAVAILABLE: ipv4:127.0.0.1:1: Socket closed");
  EXPECT_THAT(ConnectionFailureText(closed, Spoke::kCleartext), HasSubstr("if it speaks TLS, give --tls DIR"));
  EXPECT_THAT(ConnectionFailureText(closed, Spoke::kTls), Not(HasSubstr("--tls")));
  EXPECT_EQ(ConnectionFailureText(closed, Spoke::kTlsAsGuest), "it closes the connection at once");
  const std::string on_socket = absl::StrCat(kAttempt, "UNAVAILABLE: unix:/run/x.sock: Socket closed");
  EXPECT_EQ(ConnectionFailureText(on_socket, Spoke::kCleartext), "it closes the connection at once");
}

// A server that has no service, with the credentials of a test.
class Server {
 public:
  explicit Server(const std::shared_ptr<grpc::ServerCredentials>& credentials) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", credentials, &port_);
    builder.RegisterAsyncGenericService(&service_);
    queue_ = builder.AddCompletionQueue();
    server_ = builder.BuildAndStart();
  }
  ~Server() {
    server_->Shutdown(std::chrono::system_clock::now());
    queue_->Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_->Next(&tag, &ok)) {
    }
  }
  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }

 private:
  int port_ = 0;
  grpc::AsyncGenericService service_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
};

// Why a call there fails, in words.
std::string Failure(const std::string& address, const std::shared_ptr<grpc::ChannelCredentials>& credentials,
                    Spoke spoke) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  grpc::GenericStub stub(grpc::CreateCustomChannel(address, credentials, arguments));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  grpc::CompletionQueue queue;
  grpc::Slice slice("x");
  grpc::ByteBuffer request(&slice, 1), reply;
  grpc::Status status;
  const auto call = stub.PrepareUnaryCall(&context, "/terse.v1.Admin/GetStatus", request, &queue);
  call->StartCall();
  call->Finish(&reply, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  EXPECT_TRUE(queue.Next(&tag, &ok));
  EXPECT_FALSE(status.ok());
  return ConnectionFailureText(status.error_message(), spoke);
}

class RealServers : public ::testing::Test {
 protected:
  RealServers() {
    authority_ = Authority::Create(directory_.path() + "/pki", "fleet", absl::Hours(24)).value();
    key_ = MakeKey().value();
    const std::string request = MakeRequest({{Role::kCoordinator, "c"}, {"127.0.0.1"}}, key_).value();
    certificate_ = authority_->Issue(request, absl::Hours(1)).value();
  }

  TempDirectory directory_;
  std::unique_ptr<Authority> authority_;
  std::string key_, certificate_;
};

TEST_F(RealServers, TlsMetWithoutTls) {
  const Server server(ListenForGuests(certificate_, key_));
  EXPECT_THAT(Failure(server.address(), grpc::InsecureChannelCredentials(), Spoke::kCleartext),
              HasSubstr("if it speaks TLS, give --tls DIR"));
}

TEST_F(RealServers, CleartextMetWithTls) {
  const Server server(grpc::InsecureServerCredentials());
  EXPECT_THAT(Failure(server.address(), ConnectAsGuest(authority_->certificate()), Spoke::kTls),
              HasSubstr("it speaks no TLS there; leave --tls away"));
}

TEST_F(RealServers, AnotherAuthority) {
  const auto other = Authority::Create(directory_.path() + "/other", "other", absl::Hours(24)).value();
  const Server server(ListenForGuests(certificate_, key_));
  EXPECT_THAT(Failure(server.address(), ConnectAsGuest(other->certificate()), Spoke::kTls),
              HasSubstr("of another authority"));
}

TEST_F(RealServers, Nobody) {
  EXPECT_EQ(Failure("127.0.0.1:1", grpc::InsecureChannelCredentials(), Spoke::kCleartext), "nobody listens there");
  EXPECT_EQ(Failure(absl::StrCat("unix:", directory_.path(), "/x.sock"), grpc::InsecureChannelCredentials(),
                    Spoke::kCleartext),
            "there is no such socket");
}

TEST(QuietGrpc, LeavesTheUsersChoice) {
  unsetenv("GRPC_VERBOSITY");
  QuietGrpc();
  EXPECT_STREQ(getenv("GRPC_VERBOSITY"), "NONE");
  setenv("GRPC_VERBOSITY", "DEBUG", 1);
  QuietGrpc();
  EXPECT_STREQ(getenv("GRPC_VERBOSITY"), "DEBUG");
  unsetenv("GRPC_VERBOSITY");
}

}  // namespace
}  // namespace terse
