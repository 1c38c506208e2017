// Every method of every service, called by every kind of credential: what docs/SECURITY.md, "Roles" says and nothing
// more.
#include "coordinator/rpc/access.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/security/secure_fleet.h"

namespace terse {
namespace {

// Returns the roles that may call each method, written down apart from the table that is tested.
const std::map<std::string, std::set<std::string>>& Allowed() {
  static const auto* const allowed = new std::map<std::string, std::set<std::string>>{
      {"/terse.v1.Fleet/Session", {"client", "relay"}},
      {"/terse.v1.Fleet/DownloadCheckpoint", {"client", "relay"}},
      {"/terse.v1.Fleet/DownloadModule", {"client", "relay"}},
      {"/terse.v1.Admin/CreateRun", {"operator"}},
      {"/terse.v1.Admin/ListRuns", {"observer", "operator"}},
      {"/terse.v1.Admin/GetStatus", {"observer", "operator"}},
      {"/terse.v1.Admin/ListRounds", {"observer", "operator"}},
      {"/terse.v1.Admin/ListClients", {"observer", "operator"}},
      {"/terse.v1.Admin/ListLedger", {"observer", "operator"}},
      {"/terse.v1.Admin/ListMetrics", {"observer", "operator"}},
      {"/terse.v1.Admin/ListTraces", {"observer", "operator"}},
      {"/terse.v1.Admin/ListEvents", {"observer", "operator"}},
      {"/terse.v1.Admin/Watch", {"observer", "operator"}},
      {"/terse.v1.Admin/DeleteRun", {"operator"}},
      {"/terse.v1.Admin/Stop", {"operator"}},
      {"/terse.v1.Admin/Pause", {"operator"}},
      {"/terse.v1.Admin/Resume", {"operator"}},
      {"/terse.v1.Admin/AbortRound", {"operator"}},
      {"/terse.v1.Admin/SetAside", {"operator"}},
      {"/terse.v1.Admin/Backup", {"operator"}},
      {"/terse.v1.Admin/Export", {"operator"}},
      {"/terse.v1.Admin/ListAudit", {"operator"}},
      {"/grpc.health.v1.Health/Check", {"client", "relay", "observer", "operator"}},
      {"/grpc.health.v1.Health/Watch", {"client", "relay", "observer", "operator"}},
      {"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", {"observer", "operator"}},
  };
  return *allowed;
}

// The methods that the program's own descriptors have; the health service has none, it is inside gRPC.
std::set<std::string> DescribedMethods() {
  std::set<std::string> methods = {"/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch"};
  for (const char* name : {"terse.v1.Fleet", "terse.v1.Admin", "grpc.reflection.v1alpha.ServerReflection"}) {
    const auto* const service = google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(name);
    if (service == nullptr) {
      ADD_FAILURE() << name << " is not described";
      continue;
    }
    for (int i = 0; i < service->method_count(); ++i) {
      methods.insert(absl::StrCat("/", name, "/", service->method(i)->name()));
    }
  }
  return methods;
}

std::string ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

// Returns the credentials of a peer that does not use our library: gRPC's plain TLS with the folder's files, or without
// a certificate.
std::shared_ptr<grpc::ChannelCredentials> PlainTls(const std::string& folder, bool with_certificate) {
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = ReadText(folder + "/ca.crt");
  if (with_certificate) {
    options.pem_cert_chain = ReadText(folder + "/node.crt");
    options.pem_private_key = ReadText(folder + "/node.key");
  }
  return grpc::SslCredentials(options);
}

// The status with which a call ends that sends one empty message; OK once it has got a message back.
grpc::Status CallWithNothing(const std::shared_ptr<grpc::Channel>& channel, const std::string& method) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  grpc::CompletionQueue queue;
  grpc::GenericStub stub(channel);
  const auto call = stub.PrepareCall(&context, method, &queue);
  const auto wait = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  call->StartCall(nullptr);
  wait();
  call->WriteLast(grpc::ByteBuffer(nullptr, 0), grpc::WriteOptions(), nullptr);
  wait();
  grpc::ByteBuffer reply;
  call->Read(&reply, nullptr);
  const bool answered = wait();
  if (answered) context.TryCancel();
  grpc::Status status;
  call->Finish(&status, nullptr);
  wait();
  return answered ? grpc::Status::OK : status;
}

bool IsRefusal(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::UNAUTHENTICATED ||
         status.error_code() == grpc::StatusCode::PERMISSION_DENIED ||
         status.error_code() == grpc::StatusCode::UNAVAILABLE;
}

struct Caller {
  std::string what;
  std::string role;  // of a certificate that is good; empty: nothing is allowed
  std::shared_ptr<grpc::ChannelCredentials> credentials;
};

class Access : public testing::Test {
 protected:
  std::vector<Caller> Callers() {
    const std::string expired = fleet_.Issue(Role::kOperator, "late", absl::Seconds(1));
    const std::string revoked = fleet_.Issue(Role::kOperator, "former");
    fleet_.Revoke("former");
    const std::string operator_tls = fleet_.Issue(Role::kOperator, "ops");
    std::vector<Caller> callers = {
        {"cleartext", "", grpc::InsecureChannelCredentials()},
        {"no certificate", "", PlainTls(operator_tls, false)},
        {"self-signed", "", PlainTls(fleet_.SelfSigned(Role::kOperator, "self"), true)},
        {"another authority's", "", PlainTls(fleet_.IssueElsewhere(Role::kOperator, "stranger"), true)},
        {"expired", "", PlainTls(expired, true)},
        {"revoked", "", PlainTls(revoked, true)},
        {"of the authority, for nobody", "", PlainTls(fleet_.WithoutIdentity(), true)},
        {"coordinator", "", PlainTls(fleet_.Issue(Role::kCoordinator, "twin", absl::Hours(1), {"127.0.0.1"}), true)},
        {"client", "client", PlainTls(fleet_.Issue(Role::kClient, "berlin"), true)},
        {"relay", "relay", PlainTls(fleet_.Issue(Role::kRelay, "hub", absl::Hours(1), {"127.0.0.1"}), true)},
        {"observer", "observer", PlainTls(fleet_.Issue(Role::kObserver, "eyes"), true)},
        {"operator", "operator", PlainTls(operator_tls, true)},
    };
    absl::SleepFor(absl::Seconds(2));  // until one has expired
    return callers;
  }

  SecureFleet fleet_;
};

TEST_F(Access, TheTablesKnowEveryMethod) {
  std::set<std::string> in_table, in_test;
  for (const MethodAccess& row : AccessTable()) in_table.insert(std::string(row.method));
  for (const auto& [method, roles] : Allowed()) in_test.insert(method);
  EXPECT_EQ(in_table, DescribedMethods());
  EXPECT_EQ(in_test, DescribedMethods());
}

TEST_F(Access, EveryMethodByEveryCredential) {
  fleet_.Serve();
  int calls = 0, allowed = 0, unexpected = 0;
  for (const Caller& caller : Callers()) {
    for (const bool is_admin : {false, true}) {
      const std::string& address = is_admin ? fleet_.addresses().admin : fleet_.addresses().fleet;
      const auto channel = grpc::CreateChannel(address, caller.credentials);
      for (const auto& [method, roles] : Allowed()) {
        const grpc::Status status = CallWithNothing(channel, method);
        const bool may = roles.count(caller.role) == 1;
        ++calls;
        allowed += !IsRefusal(status);
        unexpected += IsRefusal(status) == may;
        EXPECT_EQ(IsRefusal(status), !may) << caller.what << " called " << method << " at " << address << ": "
                                           << status.error_code() << " " << status.error_message();
      }
    }
  }
  std::cout << calls << " calls, " << allowed << " allowed, " << unexpected << " not as decided\n";
  EXPECT_EQ(unexpected, 0);

  EXPECT_EQ(calls, static_cast<int>(12 * 2 * Allowed().size()));
}

}  // namespace
}  // namespace terse
