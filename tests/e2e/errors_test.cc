// Tests the troubles around a client: each gives one clear line that says what to do, and loses nothing.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/session_messages.h"
#include "gmock/gmock.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "proto/channel_settings.h"
#include "terse/v1/fleet.grpc.pb.h"
#include "tests/e2e/fleet_processes.h"
#include "tests/e2e/health.h"
#include "tests/testing/paths.h"
#include "tests/testing/wait_until.h"

namespace terse {
namespace {

using ::testing::HasSubstr;

constexpr char kRun[] =
    "name = 'errors'\n[train]\nlocal_steps = 1\noptimizer.learning_rate = 0.001\n[codec]\nname = 'sbc'\n"
    "[rounds]\ncount = 1000000\nclients = 2\n";

std::string ClientOutput(std::vector<std::string> arguments, int* code) {
  arguments.insert(arguments.begin(), Program("terse-client"));
  return RunCommand(arguments, code);
}

TEST(ClientErrors, NoCoordinatorKeepsTryingAndStopsInOrder) {
  ScratchDirectory directory;
  Process client({Program("terse-client"), "--coordinator", "127.0.0.1:1", "--name", "a", "--state", directory / "a"},
                 directory / "log");
  // The first attempt takes ten seconds, the start of a cold program some more.
  const absl::Time until = absl::Now() + absl::Seconds(60);
  while (!absl::StrContains(client.Output(), "trying again in") && absl::Now() < until) {
    ASSERT_FALSE(client.Wait(absl::Milliseconds(200)).has_value()) << client.Output();
  }
  EXPECT_THAT(client.Output(), HasSubstr("no coordinator answers at 127.0.0.1:1"));
  EXPECT_THAT(client.Output(), HasSubstr("trying again in"));
  client.Signal(SIGTERM);
  EXPECT_EQ(client.Wait(absl::Seconds(5)), absl::optional<int>(0)) << client.Output();
}

TEST(ClientErrors, WrongDataPath) {
  ScratchDirectory directory;
  int code = -1;
  const std::string output = ClientOutput(
      {"--coordinator", "127.0.0.1:1", "--name", "a", "--state", directory / "a", "--data", directory / "none"}, &code);
  EXPECT_EQ(code, 2);
  EXPECT_THAT(output, HasSubstr(directory / "none"));
}

TEST(ClientErrors, UnusableName) {
  ScratchDirectory directory;
  int code = -1;
  const std::string output =
      ClientOutput({"--coordinator", "127.0.0.1:1", "--name", "../x", "--state", directory / "a"}, &code);
  EXPECT_EQ(code, 2);
  EXPECT_THAT(output, HasSubstr("client name '../x' is not usable"));
}

TEST(ClientErrors, DamagedStateDirectory) {
  ScratchDirectory directory;
  int code = -1;
  RunCommand({"/bin/mkdir", directory / "a"}, &code);
  WriteText(directory / "a/MANIFEST", "this is no manifest");
  const std::string output =
      ClientOutput({"--coordinator", "127.0.0.1:1", "--name", "a", "--state", directory / "a"}, &code);
  EXPECT_EQ(code, 1);
  EXPECT_THAT(output, HasSubstr(directory / "a/MANIFEST"));
  EXPECT_THAT(output, HasSubstr("--reset-state"));
}

TEST(ClientErrors, ResetStateRemovesADamagedDirectoryAndSaysWhatIsLost) {
  ScratchDirectory directory;
  int code = -1;
  RunCommand({"/bin/mkdir", directory / "a"}, &code);
  WriteText(directory / "a/MANIFEST", "this is no manifest");
  for (const char* name : {"dense.7", "history.7", "outbox.7", "trainer.7"})
    WriteText(directory / "a" + "/" + name, "x");
  WriteText(directory / "a/module.pt", "model");
  WriteText(directory / "a/notes.txt", "of the user");
  Process client({Program("terse-client"), "--coordinator", "127.0.0.1:1", "--name", "a", "--state", directory / "a",
                  "--reset-state"},
                 directory / "log");
  EXPECT_TRUE(WaitUntil([&] { return absl::StrContains(client.Output(), "trying again in"); }, absl::Seconds(60)))
      << client.Output();
  EXPECT_THAT(client.Output(), HasSubstr("removed 6 files, 28 bytes"));
  EXPECT_THAT(
      client.Output(),
      HasSubstr("MANIFEST, dense.7, history.7, module.pt, outbox.7, trainer.7; the residual that they held is lost"));
  RunCommand({"/bin/cat", directory / "a/notes.txt"}, &code);
  EXPECT_EQ(code, 0) << "only the client's own files go";
}

TEST(CoordinatorErrors, TruncatedIdxFile) {
  ScratchDirectory directory;
  WriteText(directory / "run.toml", kRun);
  int code = -1;
  RunCommand({"/bin/mkdir", directory / "data"}, &code);
  for (const char* name :
       {"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"}) {
    WriteText(directory / absl::StrCat("data/", name), std::string("\0\0\x08\x03\0\0", 6));
  }
  const std::string output =
      RunCommand({Program("terse-coordinator"), "--run-file", directory / "run.toml", "--state", directory / "state",
                  "--data", directory / "data", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"},
                 &code);
  EXPECT_EQ(code, 1);
  EXPECT_THAT(output, HasSubstr("idx3-ubyte"));
}

TEST(CoordinatorErrors, TheNameOfARunIsNoRunFile) {
  ScratchDirectory directory;
  WriteText(directory / "run.toml", kRun);
  int code = -1;
  const std::string output = RunCommand({Program("terse-coordinator"), "--run", directory / "run.toml", "--state",
                                         directory / "state", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"},
                                        &code);
  EXPECT_EQ(code, 2);
  EXPECT_EQ(output,
            "terse-coordinator: there is no option --run; did you mean '--run-file'? see `terse-coordinator --help`\n");
}

TEST(CoordinatorErrors, UnknownKeyInTheRunFile) {
  ScratchDirectory directory;
  WriteText(directory / "run.toml", absl::StrCat(kRun, "quroum = 3\n"));
  int code = -1;
  const std::string output = RunCommand({Program("terse-coordinator"), "--run-file", directory / "run.toml", "--state",
                                         directory / "state", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"},
                                        &code);
  EXPECT_EQ(code, 1);
  EXPECT_THAT(output, HasSubstr("run.toml:10"));
  EXPECT_THAT(output, HasSubstr("quroum"));
}

// A stranger needs no certificate for this, only connections.
TEST(CoordinatorErrors, AFloodOfConnectionsShutsNobodyOut) {
  FleetProcesses fleet(Program("terse-coordinator"), Program("terse-client"));
  const std::string run_file = fleet.directory() / "run.toml";
  WriteText(run_file, kRun);
  // Leaves 28 connections.
  fleet.StartCoordinator(run_file, {{"/bin/sh", "-c", "ulimit -n 540; exec \"$@\"", "sh"}, "", {}});
  fleet.StartClient(0);
  fleet.StartClient(1);
  ASSERT_TRUE(fleet.WaitForRounds(3, kPatience));
  const std::string& listen = fleet.addresses().listen;
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(std::stoi(listen.substr(listen.rfind(':') + 1))));
  std::vector<int> flood;
  for (int i = 0; i < 1000; ++i) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    // While the listening socket is there, the kernel connects; the coordinator's reset may come before that returns.
    const int result = connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
    ASSERT_TRUE(result == 0 || errno == ECONNRESET || errno == ECONNABORTED) << i << ": " << std::strerror(errno);
    flood.push_back(fd);
  }
  const int64_t during = QueryNumber(fleet.database(), "SELECT version FROM head");
  EXPECT_TRUE(fleet.WaitForRounds(during + 3, kPatience)) << "those who were there go on";
  fleet.client(1).Kill();
  for (const int fd : flood) close(fd);
  fleet.StartClient(1);
  const int64_t after = QueryNumber(fleet.database(), "SELECT version FROM head");
  EXPECT_TRUE(fleet.WaitForRounds(after + 3, kPatience)) << "and others come";
  EXPECT_THAT(fleet.coordinator().Output(), HasSubstr("reset: there may be 28 at a time"));
}

// OpenBLAS has threads before main begins, unless it is told not to.
TEST(CoordinatorErrors, ASignalEndsItInOrderWhateverThreadsThereAre) {
  FleetProcesses fleet(Program("terse-coordinator"), Program("terse-client"));
  const std::string run_file = fleet.directory() / "run.toml";
  WriteText(run_file, kRun);
  fleet.StartCoordinator(run_file, {{"/usr/bin/env", "-u", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS=4"}, "", {}});
  fleet.coordinator().Signal(SIGTERM);
  EXPECT_EQ(fleet.coordinator().Wait(kPatience), absl::optional<int>(0)) << fleet.coordinator().Output();
  EXPECT_THAT(fleet.coordinator().Output(), HasSubstr("are whole"));
}

TEST(CoordinatorErrors, TooFewFilesForAnyConnection) {
  ScratchDirectory directory;
  int code = -1;
  const std::string output =
      RunCommand({"/bin/sh", "-c", "ulimit -n 400; exec \"$@\"", "sh", Program("terse-coordinator"), "--listen",
                  "127.0.0.1:0", "--state", directory / "state"},
                 &code);
  EXPECT_EQ(code, 1);
  EXPECT_THAT(output,
              HasSubstr("needs 513 open files, and the system allows 400; raise that (ulimit -n, LimitNOFILE=)"));
}

TEST(CoordinatorErrors, AModelFileThatIsNoTorchScript) {
  FleetProcesses fleet{Program("terse-coordinator"), Program("terse-client")};
  fleet.StartCoordinator(/*run_file=*/"", {{}, "", {"--allow-models", "any"}});
  WriteText(fleet.directory() / "run.toml", absl::StrCat(kRun, "[model]\nname = 'torchscript'\n"));
  WriteText(fleet.directory() / "model.pt", "this is no TorchScript");
  int code = -1;
  const std::string refused = fleet.Ctl(
      {"run", "create", "--run-file", fleet.directory() / "run.toml", "--model", fleet.directory() / "model.pt"},
      &code);
  EXPECT_EQ(code, 4);
  EXPECT_THAT(refused, HasSubstr("run 'errors': reading the model's file"));
  EXPECT_THAT(refused, HasSubstr("torch.jit.save"));
  EXPECT_THAT(fleet.Ctl({"runs"}), ::testing::Not(HasSubstr("errors")));
  EXPECT_FALSE(fleet.coordinator().Wait(absl::ZeroDuration()).has_value()) << "the coordinator died";
}

// A peer that is no Terse client: raw messages over gRPC against a real coordinator.
class RawPeer : public testing::Test {
 protected:
  void SetUp() override {
    const std::string run_file = fleet_.directory() / "run.toml";
    WriteText(run_file, kRun);
    fleet_.StartCoordinator(run_file);
    channel_ = grpc::CreateCustomChannel(fleet_.addresses().listen, grpc::InsecureChannelCredentials(),
                                         FleetChannelArguments());
    stub_ = v1::Fleet::NewStub(channel_);
  }

  // Sends the messages and returns the reason of the refusal that must come.
  std::string RefusalOf(const std::vector<v1::ClientMessage>& messages) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    auto stream = stub_->Session(&context);
    for (const v1::ClientMessage& message : messages) stream->Write(message);
    v1::ServerMessages reply;
    std::string reason;
    while (stream->Read(&reply)) {
      for (const v1::ServerMessage& message : reply.messages()) {
        if (message.has_refusal()) reason = message.refusal().reason();
      }
    }
    stream->Finish();
    EXPECT_FALSE(fleet_.coordinator().Wait(absl::ZeroDuration()).has_value()) << "the coordinator died";
    return reason;
  }

  static v1::ClientMessage CheckInAs(const std::string& name, uint32_t version = kProtocolVersion) {
    v1::ClientMessage message;
    message.mutable_check_in()->set_protocol_version(version);
    message.mutable_check_in()->set_name(name);
    return message;
  }

  FleetProcesses fleet_{Program("terse-coordinator"), Program("terse-client")};
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Fleet::Stub> stub_;
};

TEST_F(RawPeer, BeginsWithACheckInForARunThatIsServed) {
  v1::ClientMessage ready;
  ready.mutable_ready();
  EXPECT_THAT(RefusalOf({ready}), HasSubstr("a session begins with a check-in"));
  EXPECT_THAT(RefusalOf({CheckInAs(std::string(2000, 'x'))}), HasSubstr("at most 1024 bytes"));
  v1::ClientMessage other = CheckInAs("x");
  other.mutable_check_in()->set_run("other");
  EXPECT_THAT(RefusalOf({other}), HasSubstr("no run 'other' is served here; there are: errors"));
}

TEST_F(RawPeer, IsRefusedWithAReason) {
  EXPECT_THAT(RefusalOf({CheckInAs("x", 7)}), HasSubstr("protocol version 7 is unknown here"));
  EXPECT_THAT(RefusalOf({CheckInAs("../../etc")}), HasSubstr("client name"));
  EXPECT_THAT(RefusalOf({v1::ClientMessage()}), HasSubstr("unusable"));

  v1::ClientMessage update;
  update.mutable_update()->set_data("garbage");
  EXPECT_THAT(RefusalOf({CheckInAs("x"), update}), HasSubstr("a chunk without a header"));

  v1::UpdateHeader* header = update.mutable_update()->mutable_header();
  header->set_round(1);
  header->set_update_id(std::string(16, 'u'));
  header->set_size(uint64_t{1} << 40);
  EXPECT_THAT(RefusalOf({CheckInAs("x"), update}), HasSubstr("this model allows"));

  // Nobody asked for it, so nobody decodes it.
  header->set_size(update.update().data().size());
  EXPECT_THAT(RefusalOf({CheckInAs("x"), update}), HasSubstr("an update follows Ready"));

  header->set_update_id("short");
  EXPECT_THAT(RefusalOf({CheckInAs("x"), update}), HasSubstr("an id has 16 bytes"));
}

// The bytes of the checkpoint from `offset` on, or the code of the failure.
grpc::StatusCode Download(v1::Fleet::Stub* stub, const std::string& lineage, uint64_t offset, std::string* bytes) {
  grpc::ClientContext context;
  v1::CheckpointRequest request;
  request.set_lineage(lineage);
  request.set_offset(offset);
  auto stream = stub->DownloadCheckpoint(&context, request);
  v1::FileChunk chunk;
  bytes->clear();
  while (stream->Read(&chunk)) {
    EXPECT_EQ(chunk.offset(), offset + bytes->size());
    EXPECT_LE(chunk.ByteSizeLong(), 256 * 1024);
    bytes->append(chunk.data());
  }
  return stream->Finish().error_code();
}

TEST_F(RawPeer, DownloadsGoOnWhereTheyStopped) {
  grpc::ClientContext context;
  auto stream = stub_->Session(&context);
  stream->Write(CheckInAs("x"));
  v1::ServerMessages welcome;
  ASSERT_TRUE(stream->Read(&welcome));
  const std::string lineage = welcome.messages(0).welcome().lineage();

  std::string whole, rest;
  ASSERT_EQ(Download(stub_.get(), lineage, 0, &whole), grpc::StatusCode::OK);
  EXPECT_GT(whole.size(), 4 * 431080);
  for (const size_t offset : {size_t{1}, size_t{262144}, whole.size() - 1}) {
    ASSERT_EQ(Download(stub_.get(), lineage, offset, &rest), grpc::StatusCode::OK);
    EXPECT_TRUE(rest == whole.substr(offset)) << "from " << offset;
  }
  EXPECT_EQ(Download(stub_.get(), lineage, whole.size(), &rest), grpc::StatusCode::OUT_OF_RANGE);
  EXPECT_EQ(Download(stub_.get(), std::string(16, 'z'), 0, &rest), grpc::StatusCode::NOT_FOUND);
  grpc::ClientContext module_context;
  v1::ModuleRequest module_request;
  module_request.set_lineage(lineage);
  v1::FileChunk chunk;
  auto module = stub_->DownloadModule(&module_context, module_request);
  EXPECT_FALSE(module->Read(&chunk));
  EXPECT_EQ(module->Finish().error_code(), grpc::StatusCode::NOT_FOUND) << "this run has a model of Terse's own";
  context.TryCancel();
  stream->Finish();
}

TEST_F(RawPeer, FindsTheHealthServiceAndReflection) {
  for (const char* service : {"", "terse.v1.Fleet", "terse.v1.Fleet/errors"}) {
    EXPECT_EQ(HealthOf(fleet_.addresses().listen, service), Health::kServing) << service;
  }
  EXPECT_EQ(HealthOf(fleet_.addresses().listen, "terse.v1.Fleet/other"), Health::kNoAnswer);

  grpc::GenericStub generic(channel_);
  grpc::CompletionQueue queue;
  grpc::ByteBuffer reply;
  grpc::Status status;
  void* tag = nullptr;
  bool ok = false;
  grpc::Slice slice;
  grpc::ClientContext reflection;
  auto stream =
      generic.PrepareCall(&reflection, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", &queue);
  stream->StartCall(nullptr);
  ASSERT_TRUE(queue.Next(&tag, &ok));
  EXPECT_TRUE(ok);
  // Field 7 asks for the list of services.
  grpc::Slice list(std::string("\x3a\x00", 2));
  stream->Write(grpc::ByteBuffer(&list, 1), nullptr);
  ASSERT_TRUE(queue.Next(&tag, &ok));
  stream->Read(&reply, nullptr);
  ASSERT_TRUE(queue.Next(&tag, &ok));
  ASSERT_TRUE(ok);
  ASSERT_TRUE(reply.DumpToSingleSlice(&slice).ok());
  EXPECT_THAT(std::string(slice.begin(), slice.end()), HasSubstr("terse.v1.Fleet"));
  reflection.TryCancel();
  stream->Finish(&status, nullptr);
  ASSERT_TRUE(queue.Next(&tag, &ok));
}

}  // namespace
}  // namespace terse
