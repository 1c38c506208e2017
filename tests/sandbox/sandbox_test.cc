// Trainers in a process of their own. This program is that process too.
#include "sandbox/sandbox.h"

#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sandbox/confinement.h"
#include "tests/sandbox/hostile_trainers.h"
#include "tests/testing/grid_trainer.h"
#include "tests/testing/temp_directory.h"

namespace terse {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kMemoryMb = 256;
constexpr char kSecretName[] = "/node.key";

// The path of this program, which is the test and its trainers: PROGRAM READABLE [FLAG NETWORK].
std::string* program = nullptr;

const auto kGoOn = [] { return true; };

// AddressSanitizer's own allocator ends the process, before anybody is asked.
#if defined(__SANITIZE_ADDRESS__)
constexpr char kOutOfMemory[] = "exited with code 1";
#else
constexpr char kOutOfMemory[] = "more memory than --sandbox-memory";
#endif

class Sandbox : public testing::Test {
 protected:
  Sandbox() {
    std::ofstream(data_.path() + "/data.bin") << "data";
    std::ofstream(secrets_.path() + kSecretName) << "key";
  }

  SandboxOptions Options(double seconds = 30) const {
    SandboxOptions options;
    options.command_line = {*program, data_.path()};
    options.memory_mb = kMemoryMb;
    options.seconds = seconds;
    return options;
  }
  static RunConfig Config(const std::string& what, const std::string& target = "") {
    RunConfig config;
    config.name = what;
    config.data.name = target;
    return config;
  }
  absl::StatusOr<std::unique_ptr<LocalTrainer>> TryMake(const RunConfig& config, double seconds = 30) const {
    return SandboxedTrainerFactory(Options(seconds))(config, Shard{2, 4}, "a module");
  }
  std::unique_ptr<LocalTrainer> Make(const std::string& what, const std::string& target = "",
                                     double seconds = 30) const {
    absl::StatusOr<std::unique_ptr<LocalTrainer>> trainer = TryMake(Config(what, target), seconds);
    EXPECT_TRUE(trainer.ok()) << trainer.status();
    return trainer.ok() ? *std::move(trainer) : nullptr;
  }
  absl::Status Train(LocalTrainer* trainer, const std::function<bool()>& keep_going = kGoOn) {
    const std::vector<float> weights(GridLayout().size());
    return trainer->Train(weights, {3, 0}, keep_going, absl::MakeSpan(delta_)).status();
  }
  // Returns OK when the deed could be done, and otherwise the reason.
  absl::Status Deed(const std::string& what, const std::string& target = "") {
    const std::unique_ptr<LocalTrainer> trainer = Make(what, target);
    return trainer != nullptr ? Train(trainer.get()) : absl::UnavailableError("no trainer");
  }
  void ExpectDenied(const std::string& what, const std::string& target = "", const char* why = "not permitted") {
    const absl::Status status = Deed(what, target);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << what << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why)) << what;
  }
  // After `status`, the trainer is lost for good.
  void ExpectLost(LocalTrainer* trainer, const absl::Status& status, absl::StatusCode code, const std::string& why) {
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
    EXPECT_EQ(trainer->SaveState().status(), status);
    EXPECT_EQ(trainer->RestoreState("x"), status);
    EXPECT_TRUE(trainer->StartWeights().empty());
  }

  const TempDirectory data_;
  const TempDirectory secrets_;
  std::vector<float> delta_ = std::vector<float>(GridLayout().size());
};

TEST_F(Sandbox, ConfinesOnThisMachine) {
  const absl::StatusOr<Confinement> confinement = TrySandbox(Options());
  ASSERT_TRUE(confinement.ok()) << confinement.status();
  if (!confinement->own_network) GTEST_SKIP() << "this user may make no namespaces";
  const std::string network = std::filesystem::read_symlink("/proc/self/ns/net");
  ExpectDenied("share network", network, "");
}

TEST_F(Sandbox, TrainsAsWithoutIt) {
  GridTrainer plain(2, GridLayout(), /*starts=*/true);
  std::unique_ptr<LocalTrainer> boxed = Make("grid");
  EXPECT_EQ(boxed->layout().Hash(), plain.layout().Hash());
  EXPECT_EQ(boxed->samples(), plain.samples());
  EXPECT_EQ(boxed->device(), plain.device());
  EXPECT_EQ(boxed->StartWeights(), plain.StartWeights());
  const std::vector<float> weights = plain.StartWeights();
  std::vector<float> expected(weights.size());
  for (int round = 0; round < 6; ++round) {
    int plain_steps = 0, boxed_steps = 0;
    const auto result = plain.Train(
        weights, {5, 0}, [&] { return ++plain_steps > 0; }, absl::MakeSpan(expected));
    const auto boxed_result = boxed->Train(
        weights, {5, 0}, [&] { return ++boxed_steps > 0; }, absl::MakeSpan(delta_));
    ASSERT_TRUE(boxed_result.ok()) << boxed_result.status();
    EXPECT_EQ(delta_, expected);
    EXPECT_EQ(boxed_result->mean_loss, result->mean_loss);
    EXPECT_EQ(boxed_result->samples, result->samples);
    EXPECT_EQ(boxed_steps, plain_steps);
    boxed->MaskMomentum({{1, 5, 9}});
    const absl::StatusOr<std::string> state = boxed->SaveState();
    EXPECT_EQ(*state, *plain.SaveState());
    if (round == 2) {
      boxed = Make("grid");
      EXPECT_EQ(boxed->RestoreState(*state), absl::OkStatus());
    }
  }
  EXPECT_EQ(boxed->RestoreState("another's"), plain.RestoreState("another's"));
  EXPECT_TRUE(boxed->SaveState().ok());
}

TEST_F(Sandbox, TakesGradientsWithAndWithoutASnapshot) {
  GridTrainer plain(2);
  const std::unique_ptr<LocalTrainer> boxed = Make("grid");
  const std::vector<float> weights(GridLayout().size(), 0.5f);
  std::vector<float> expected(weights.size());
  for (const absl::Span<const float> snapshot : {absl::Span<const float>(), absl::MakeConstSpan(weights)}) {
    ASSERT_TRUE(plain.Gradient({weights, snapshot}, kGoOn, absl::MakeSpan(expected)).ok());
    const auto result = boxed->Gradient({weights, snapshot}, kGoOn, absl::MakeSpan(delta_));
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(delta_, expected);
  }
}

TEST_F(Sandbox, StopsWhenAskedAndKeepsItsState) {
  const std::unique_ptr<LocalTrainer> trainer = Make("grid");
  ASSERT_EQ(Train(trainer.get()), absl::OkStatus());
  const std::string before = *trainer->SaveState();
  int asked = 0;
  EXPECT_TRUE(absl::IsCancelled(Train(trainer.get(), [&] { return ++asked < 2; })));
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(*trainer->SaveState(), before);
  EXPECT_EQ(Train(trainer.get()), absl::OkStatus());
}

TEST_F(Sandbox, SaysWhatItsFactorySays) {
  const absl::Status status = TryMake(Config("no trainer")).status();
  EXPECT_EQ(status, absl::NotFoundError("no data, but a module"));
}

TEST_F(Sandbox, RefusesVectorsOfAnotherSize) {
  const std::unique_ptr<LocalTrainer> trainer = Make("grid");
  const std::vector<float> weights(GridLayout().size() + 1);
  EXPECT_TRUE(absl::IsInvalidArgument(trainer->Train(weights, {1, 0}, kGoOn, absl::MakeSpan(delta_)).status()));
}

TEST_F(Sandbox, HasNoNetwork) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(listener, 1), 0);
  ASSERT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::string port = absl::StrCat(ntohs(address.sin_port));
  ExpectDenied("connect", port);
  close(listener);
  for (const char* what : {"unix socket", "io_uring"}) ExpectDenied(what);
}

TEST_F(Sandbox, ReadsItsDataAndNothingElse) {
  if (!TrySandbox(Options())->landlock) GTEST_SKIP() << "this kernel has no Landlock";
  EXPECT_EQ(Deed("read", data_.path() + "/data.bin"), absl::OkStatus());
  ExpectDenied("read", secrets_.path() + kSecretName, "Permission denied");
  ExpectDenied("read", "/etc/passwd", "Permission denied");
  ExpectDenied("read", absl::StrCat("/proc/", getpid(), "/environ"), "Permission denied");
}

TEST_F(Sandbox, ChangesNoFile) {
  for (const char* what : {"write", "remove", "chmod"}) {
    ExpectDenied(what, secrets_.path() + kSecretName);
    ExpectDenied(what, data_.path() + "/data.bin");
  }
  ExpectDenied("create", data_.path());
  for (const char* what : {"memory file", "shared memory", "shrink"}) ExpectDenied(what);
}

TEST_F(Sandbox, StartsThreadsButNoProcesses) {
  EXPECT_EQ(Deed("thread"), absl::OkStatus());
  ExpectDenied("exec", "/usr/bin/true");
  for (const char* what : {"fork", "clone"}) ExpectDenied(what);
}

TEST_F(Sandbox, DoesNotTouchTheClient) {
  for (const char* what :
       {"ptrace", "kill", "tgkill", "own signals", "limit parent", "outlive parent", "move parent", "share cores"}) {
    ExpectDenied(what);
  }
  EXPECT_EQ(Deed("move itself"), absl::OkStatus());
}

// An int fills half of a register: with something in the other half it is the same call to the kernel.
TEST_F(Sandbox, DoesNotTouchTheClientByWiderArguments) {
  for (const char* what : {"own signals, wide", "outlive parent, wide", "move parent, wide"}) ExpectDenied(what);
}

// Without the filter, so that it is the kernel's scope that answers.
TEST_F(Sandbox, LandlockKeepsSignalsInside) {
  if (!TrySandbox(Options())->signal_scope) GTEST_SKIP() << "this kernel's Landlock has no scope for signals";
  const auto signal_parent = [] {
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (kill(getppid(), 0) != 0) return 1;
    const absl::StatusOr<LandlockParts> parts = ConfineByLandlock({});
    if (!parts.ok() || !parts->signals) return 2;
    if (kill(getpid(), 0) != 0) return 3;
    return kill(getppid(), 0) == -1 && errno == EPERM ? 0 : 4;
  };
  const pid_t child = fork();
  if (child == 0) _exit(signal_parent());
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "1: the parent could not be signalled before; 2: no scope; 3: not itself; 4: the parent";
}

TEST_F(Sandbox, InheritsNeitherDescriptorsNorVariables) {
  const int open_file = dup(STDERR_FILENO);
  ExpectDenied("descriptors", "", "Bad file descriptor");
  close(open_file);
  setenv("CLOUD_TOKEN", "secret", 1);
  setenv("OMP_WAIT_POLICY", "passive", 1);
  ExpectDenied("variable", "CLOUD_TOKEN", "");
  EXPECT_EQ(Deed("variable", "OMP_WAIT_POLICY"), absl::OkStatus());
  setenv("OMP_PROC_BIND", "true", 1);
  ExpectDenied("variable", "OMP_PROC_BIND", "");
  unsetenv("OMP_PROC_BIND");
}

TEST_F(Sandbox, EndsWithItsMemory) {
  for (const char* what : {"memory", "shared mapping"}) {
    const std::unique_ptr<LocalTrainer> trainer = Make(what);
    const std::string why = what == std::string("memory") ? kOutOfMemory : "exited with code 11";
    ExpectLost(trainer.get(), Train(trainer.get()), absl::StatusCode::kUnavailable, why);
  }
}

TEST_F(Sandbox, RefusesAModelThatItsMemoryCannotHold) {
  SandboxOptions options = Options();
  options.memory_mb = 0;
  const absl::Status status = SandboxedTrainerFactory(options)(Config("grid"), Shard{}, "").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("does not fit"));
}

TEST_F(Sandbox, EndsWithItsTime) {
  for (const char* what : {"loop", "steps"}) {
    const std::unique_ptr<LocalTrainer> trainer = Make(what, "", /*seconds=*/1);
    const absl::Time start = absl::Now();
    ExpectLost(trainer.get(), Train(trainer.get()), absl::StatusCode::kUnavailable, "1 seconds of --sandbox-seconds");
    EXPECT_LT(absl::Now() - start, absl::Seconds(20));
  }
}

TEST_F(Sandbox, IsEndedWhenItDoesNotStop) {
  const std::unique_ptr<LocalTrainer> deaf = Make("deaf");
  int asked = 0;
  ExpectLost(deaf.get(), Train(deaf.get(), [&] { return ++asked < 3; }), absl::StatusCode::kUnavailable,
             "did not stop");
  EXPECT_EQ(asked, 3);
  SandboxOptions options = Options(/*seconds=*/60);
  std::atomic<bool> stop{false};
  options.stop = [&] { return stop.load(); };
  const auto silent = SandboxedTrainerFactory(options)(Config("loop"), Shard{}, "");
  std::thread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    stop = true;
  });
  ExpectLost(silent->get(), Train(silent->get()), absl::StatusCode::kUnavailable, "did not stop");
  stopper.join();
}

TEST_F(Sandbox, SaysHowItEnded) {
  const std::unique_ptr<LocalTrainer> exits = Make("exit");
  ExpectLost(exits.get(), Train(exits.get()), absl::StatusCode::kUnavailable, "exited with code 3");
  const std::unique_ptr<LocalTrainer> aborts = Make("abort");
  ExpectLost(aborts.get(), Train(aborts.get()), absl::StatusCode::kUnavailable, "was ended by signal 6");
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);  // nobody is left behind
}

TEST_F(Sandbox, IsNotBelieved) {
  for (const char* what : {"lie", "nan loss", "negative samples"}) {
    const std::unique_ptr<LocalTrainer> trainer = Make(what);
    ExpectLost(trainer.get(), Train(trainer.get()), absl::StatusCode::kInternal, "not to be trusted");
  }
  EXPECT_TRUE(absl::IsInternal(TryMake(Config("no samples")).status()));
  const std::unique_ptr<LocalTrainer> large = Make("large state");
  ExpectLost(large.get(), large->SaveState().status(), absl::StatusCode::kInternal, "104857600 bytes");
}

TEST_F(Sandbox, ItsStatusesAreThoseThatTrainersMayReturn) {
  for (int code = 1; code <= 40; ++code) {
    const absl::Status status = Deed("status", absl::StrCat(code));
    const bool passes = code <= 16 && code != static_cast<int>(absl::StatusCode::kUnknown) &&
                        code != static_cast<int>(absl::StatusCode::kCancelled);
    EXPECT_EQ(static_cast<int>(status.code()), passes ? code : static_cast<int>(absl::StatusCode::kInternal));
    EXPECT_EQ(std::string(status.message()), "its?own ?[31mwords");
  }
}

TEST_F(Sandbox, FramesOfAnyKindAndSizeAreRefused) {
  const struct {
    const char* frame;  // kind, announced size, bytes sent
    absl::StatusCode code;
  } cases[] = {
      {"64 12 11", absl::StatusCode::kUnavailable},  // ends in the middle of its body
      {"64 12 12", absl::StatusCode::kInternal},     // a result that is none
      {"64 0 0", absl::StatusCode::kInternal},
      {"64 65537 65537", absl::StatusCode::kInternal},  // longer than any result
      {"64 18446744073709551615 5", absl::StatusCode::kInternal},
      {"64 1099511627776 5", absl::StatusCode::kInternal},
      {"65 3 3", absl::StatusCode::kInternal},  // no failure
      {"65 40 40", absl::StatusCode::kInternal},
      {"66 1 1", absl::StatusCode::kInternal},  // progress that is none
      {"4 0 0", absl::StatusCode::kInternal},   // what the client asks
      {"0 0 0", absl::StatusCode::kInternal},
      {"4294967295 0 0", absl::StatusCode::kInternal},
  };
  for (const auto& c : cases) EXPECT_EQ(Deed("frame", c.frame).code(), c.code) << c.frame;
}

}  // namespace
}  // namespace terse

int main(int argc, char** argv) {
  if (argc == 4 && argv[2] == std::string(terse::kSandboxFlag)) {
    const terse::SandboxChild child = {{argv[1]}, terse::kMemoryMb, argv[3] == std::string(terse::kOwnNetwork)};
    return terse::EnterSandbox(child).ok() ? terse::ServeSandbox(terse::HostileTrainerFactory()) : 1;
  }
  testing::InitGoogleTest(&argc, argv);
  terse::program = new std::string(argv[0]);
  return RUN_ALL_TESTS();
}
