// terse-client --sandbox as a process, with trainers that are honest, killed and hostile.
#include <csignal>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "tests/e2e/sandboxed_fleet.h"
#include "tests/testing/paths.h"
#include "tests/testing/wait_until.h"

namespace terse {
namespace {

// AddressSanitizer's own allocator ends the process, before anybody is asked.
#if defined(__SANITIZE_ADDRESS__)
constexpr char kOutOfMemory[] = "exited with code 1; trying";
#else
constexpr char kOutOfMemory[] = "more memory than --sandbox-memory allows; trying";
#endif

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kClients = 2;
constexpr int kRounds = 30;
std::string RunFile(const std::string& name, int rounds, int clients) {
  return absl::StrCat("name = '", name, "'\n[train]\nlocal_steps = 2\noptimizer.learning_rate = 1.0\n[codec]\n",
                      "name = 'sbc'\ndensity = 0.1\n[rounds]\ncount = ", rounds, "\nclients = ", clients,
                      "\ndeadline_seconds = 60\n[checkpoints]\nevery = 5\n");
}

// The trainer's process of a client, 0 while there is none.
pid_t TrainerOf(pid_t client) {
  pid_t trainer = 0;
  std::ifstream(absl::StrCat("/proc/", client, "/task/", client, "/children")) >> trainer;
  return trainer;
}

void Start(FleetProcesses* fleet, const std::string& run, const std::vector<std::string>& options) {
  const std::string file = fleet->directory() / "run.toml";
  WriteText(file, run);
  fleet->StartCoordinator(file);
  for (int i = 0; i < kClients; ++i) fleet->StartClient(i, {{}, "", options});
}

void AwaitEnd(FleetProcesses* fleet) {
  for (int i = 0; i < kClients; ++i) {
    EXPECT_EQ(fleet->client(i).Wait(kPatience), absl::optional<int>(0)) << fleet->client(i).Output();
  }
}

std::string ModelWithoutSandbox() {
  FleetProcesses fleet(Program("grid-coordinator"), Program("grid-client"));
  Start(&fleet, RunFile("boxed", kRounds, kClients), {});
  AwaitEnd(&fleet);
  return LastCheckpoint(fleet);
}

TEST(SandboxedClient, TrainsTheSameModelAlsoWhenItsTrainersAreKilled) {
  FleetProcesses fleet(Program("grid-coordinator"), Program("grid-client"));
  Start(&fleet, RunFile("boxed", kRounds, kClients), {"--sandbox", "--reconnect-after", "0.01"});
  for (const int rounds : {3, 9, 15}) {
    ASSERT_TRUE(fleet.WaitForRounds(rounds, kPatience));
    pid_t trainer = 0;
    ASSERT_TRUE(WaitUntil([&] { return (trainer = TrainerOf(fleet.client(0).pid())) != 0; }, kPatience));
    kill(trainer, SIGKILL);
  }
  AwaitEnd(&fleet);
  EXPECT_THAT(fleet.client(0).Output(), AllOf(HasSubstr("sandbox: training makes no sockets"),
                                              HasSubstr("the sandboxed trainer was ended by signal 9; trying again")));
  EXPECT_TRUE(LastCheckpoint(fleet) == ModelWithoutSandbox());
  EXPECT_GE(
      QueryNumber(fleet.database(),
                  "SELECT count(*) FROM events e JOIN clients c ON c.id = e.client WHERE e.kind = 'client_failed' "
                  "AND c.name = 'client-0' AND e.detail = 'the sandboxed trainer was ended by signal 9'"),
      1)
      << "the coordinator hears why";
}

TEST(SandboxedClient, OutlivesTrainersThatEndThemselvesOrDoNotEnd) {
  struct Case {
    const char* run;
    std::vector<std::string> options;
    const char* why;
  };
  const Case cases[] = {{"exit", {}, "the sandboxed trainer exited with code 3; trying again"},
                        {"memory", {"--sandbox-memory", "200"}, kOutOfMemory},
                        {"loop", {"--sandbox-seconds", "1"}, "took more than the 1 seconds of --sandbox-seconds"}};
  for (const Case& c : cases) {
    FleetProcesses fleet(Program("grid-coordinator"), Program("hostile-client"));
    std::vector<std::string> options = {"--sandbox", "--reconnect-after", "0.1"};
    options.insert(options.end(), c.options.begin(), c.options.end());
    Start(&fleet, RunFile(c.run, 2, kClients), options);
    Process& client = fleet.client(0);
    const auto twice = [&] {
      const std::string log = client.Output();
      const size_t first = log.find(c.why);
      return first != std::string::npos && log.find(c.why, first + 1) != std::string::npos;
    };
    EXPECT_TRUE(WaitUntil(twice, kPatience)) << client.Output();
    client.Signal(SIGTERM);
    EXPECT_EQ(client.Wait(kPatience), absl::optional<int>(0)) << client.Output();
    EXPECT_THAT(client.Output(), HasSubstr("stopped; the state in"));
  }
}

TEST(SandboxedClient, TakesItsTrainerAlongWhenItIsKilled) {
  FleetProcesses fleet(Program("grid-coordinator"), Program("hostile-client"));
  Start(&fleet, RunFile("loop", 2, kClients), {"--sandbox"});
  Process& client = fleet.client(0);
  // Once it trains, the trainer does not look whether the client is there.
  ASSERT_TRUE(WaitUntil([&] { return absl::StrContains(client.Output(), "joined run"); }, kPatience));
  absl::SleepFor(absl::Seconds(1));
  const pid_t trainer = TrainerOf(client.pid());
  ASSERT_NE(trainer, 0);
  client.Kill();
  // Nobody may wait for it, and a process that has ended has no command line.
  const auto gone = [&] {
    std::string words;
    std::ifstream(absl::StrCat("/proc/", trainer, "/cmdline")) >> words;
    return words.empty();
  };
  EXPECT_TRUE(WaitUntil(gone, absl::Seconds(10)));
}

TEST(SandboxedClient, EndsWhenItsTrainerLies) {
  FleetProcesses fleet(Program("grid-coordinator"), Program("hostile-client"));
  Start(&fleet, RunFile("lie", 2, kClients), {"--sandbox"});
  for (int i = 0; i < kClients; ++i) {
    EXPECT_EQ(fleet.client(i).Wait(kPatience), absl::optional<int>(1));
    EXPECT_THAT(fleet.client(i).Output(),
                HasSubstr("values of tensor 'grid.weight' that are not finite; its model or its code"));
  }
}

TEST(SandboxedClient, RefusesWhatCannotBe) {
  const ScratchDirectory directory;
  const auto client = [&](std::vector<std::string> options, int* code) {
    std::vector<std::string> argv = {Program("grid-client"),  "--coordinator", "127.0.0.1:1", "--name", "c", "--state",
                                     directory / "data/state"};
    argv.insert(argv.end(), options.begin(), options.end());
    return RunCommand(argv, code);
  };
  std::filesystem::create_directories(directory / "data");
  int code = 0;
  EXPECT_THAT(client({"--sandbox", "--data", directory / "data"}, &code), HasSubstr("keep it elsewhere"));
  EXPECT_EQ(code, 1);
  EXPECT_FALSE(std::filesystem::exists(directory / "data/state"));
  EXPECT_THAT(client({"--sandbox", "--device", "cuda"}, &code), HasSubstr("takes the graphics card away"));
  EXPECT_EQ(code, 2);
  EXPECT_THAT(client({"--sandbox-memory", "100"}, &code), HasSubstr("--sandbox"));
  EXPECT_EQ(code, 2);
}

}  // namespace
}  // namespace terse
