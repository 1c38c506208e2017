// Models as weapons: TorchScript files of an operator that look around on the coordinator's machine, hold it up, or
// take its memory (docs/THREATS.md).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "tests/attack/attacked_fleet.h"
#include "tests/learning/user_modules.h"
#include "tests/testing/grid_trainer.h"
#include "tests/testing/paths.h"

namespace terse {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kRun[] =
    "name = 'NAME'\nmodel.name = 'torchscript'\n[data]\nname = 'csv'\ntrain = 'rows.csv'\ntest = 'rows.csv'\n"
    "partition = 'all'\ncolumns = ['a:number', 'b:number', 'c:number', 'd:number', 'class:class=k0|k1|k2']\n[train]\n"
    "local_steps = 1\noptimizer.learning_rate = 0.01\n[codec]\nname = 'sbc'\n[rounds]\ncount = 5\nclients = 1\n";

constexpr char kHonest[] = R"(
def forward(self, x):
    return torch.linear(x, self.weight, self.bias)
)";

constexpr char kEndless[] = R"(
def forward(self, x):
    i = 1
    while i > 0:
        i = 1
    return torch.linear(x, self.weight, self.bias)
)";

torch::jit::Module Defined(const std::string& source) {
  torch::jit::Module module = Tensors();
  module.define(source);
  return module;
}

// Whether a thread of the process has started another process, which has not ended.
bool HasChild(pid_t pid) {
  for (const auto& task : std::filesystem::directory_iterator(absl::StrCat("/proc/", pid, "/task"))) {
    std::ifstream children(task.path() / "children");
    if (int64_t child = 0; children >> child) return true;
  }
  return false;
}

// A coordinator with LibTorch, over TLS, and an operator who brings models.
class AttackModels : public testing::Test {
 protected:
  static void SetUpTestSuite() { setenv("OMP_NUM_THREADS", "1", 1); }

  AttackModels() : fleet_(Program("terse-coordinator"), Program("terse-client"), GridLayout()) {
    std::filesystem::create_directories(data_);
    std::string rows = "a,b,c,d,class\n";
    for (int i = 0; i < 30; ++i) absl::StrAppend(&rows, i, ",1,2,3,k", i % kClasses, "\n");
    WriteText(data_ + "/rows.csv", rows);
  }

  void Serve(std::vector<std::string> extra = {"--allow-models", "anna"}) {
    extra.insert(extra.end(), {"--data", data_});
    fleet_.Serve("", extra);
  }
  std::vector<std::string> CreateArguments(const torch::jit::Module& module, const std::string& name) {
    const std::string model = directory_ / (name + ".pt"), run = directory_ / (name + ".toml");
    WriteText(model, Saved(module));
    WriteText(run, absl::StrReplaceAll(kRun, {{"NAME", name}}));
    return {"run", "create", "--run-file", run, "--model", model};
  }
  // The same as a command line of its own.
  std::vector<std::string> CreateCommand(const torch::jit::Module& module, const std::string& name) {
    std::vector<std::string> argv = {Program("tersectl"), "--admin", fleet_.processes().addresses().admin, "--tls",
                                     fleet_.TlsFolder(Role::kOperator, "anna")};
    const std::vector<std::string> create = CreateArguments(module, name);
    argv.insert(argv.end(), create.begin(), create.end());
    return argv;
  }
  // Returns what `run create` says; it succeeds or fails as `succeeds` says.
  std::string Create(const torch::jit::Module& module, bool succeeds, const std::string& name = "mine",
                     const std::vector<std::string>& options = {}) {
    std::vector<std::string> arguments = CreateArguments(module, name);
    arguments.insert(arguments.begin(), options.begin(), options.end());
    // LibTorch starts in a process of its own, which takes a while on a busy machine.
    if (options.empty()) arguments.insert(arguments.begin(), {"--timeout", "110"});
    int code = -1;
    std::string said = fleet_.Ctl(arguments, &code);
    EXPECT_EQ(code == 0, succeeds) << said;
    return said;
  }
  std::string Key() { return fleet_.authority().coordinator_tls() + "/node.key"; }

  const ScratchDirectory directory_;
  const std::string data_ = directory_ / "data";
  AttackedFleet fleet_;
};

TEST_F(AttackModels, ForwardDoesNotReadTheCoordinatorsKey) {
  Serve();
  const std::string said = Create(Defined(absl::StrReplaceAll(R"(
def forward(self, x):
    stolen = torch.from_file("KEY", False, 16, dtype=6)
    return torch.linear(x, self.weight, self.bias) + 0.0 * stolen[0]
)",
                                                              {{"KEY", Key()}})),
                                  /*succeeds=*/false);
  EXPECT_THAT(said, AllOf(HasSubstr("node.key"), HasSubstr("Permission denied")));
}

TEST_F(AttackModels, LoadingDoesNotReadTheCoordinatorsKey) {
  Serve();
  const std::string said = Create(Defined(absl::StrReplaceAll(R"(
def forward(self, x):
    return torch.linear(x, self.weight, self.bias)
def __getstate__(self) -> int:
    return 1
def __setstate__(self, state: int) -> None:
    self.training = True
    self.bias = torch.zeros([3])
    self.weight = torch.from_file("KEY", False, 12, dtype=6).reshape([3, 4])
)",
                                                              {{"KEY", Key()}})),
                                  /*succeeds=*/false);
  EXPECT_THAT(said, AllOf(HasSubstr("node.key"), HasSubstr("Permission denied")));
}

TEST_F(AttackModels, NothingWritesTheCoordinatorsFiles) {
  Serve();
  const std::string made = fleet_.processes().coordinator_state() + "/made";
  Create(Defined(absl::StrReplaceAll(R"(
def forward(self, x):
    written = torch.from_file("MADE", True, 16, dtype=6)
    return torch.linear(x, self.weight, self.bias) + 0.0 * written[0]
)",
                                     {{"MADE", made}})),
         /*succeeds=*/false);
  EXPECT_FALSE(std::filesystem::exists(made));
}

TEST_F(AttackModels, AnHonestModelIsServedAndExported) {
  Serve();
  EXPECT_THAT(Create(Normalising(), /*succeeds=*/true), HasSubstr("run mine is served"));
  int code = -1;
  EXPECT_THAT(fleet_.Ctl({"status", "--json"}), HasSubstr("\"parameters\": 15")) << "its nine buffers are none";
  const std::string exported = fleet_.Ctl({"export", "--out", directory_ / "out", "--format", "torchscript"}, &code);
  EXPECT_EQ(code, 0) << exported;
  EXPECT_GT(std::filesystem::file_size(directory_ / "out/model.pt"), 1000u);
}

TEST_F(AttackModels, AForwardThatNeverEndsHasAnEnd) {
  Serve({"--allow-models", "anna", "--models-seconds", "20"});
  EXPECT_THAT(Create(Defined(kEndless), /*succeeds=*/false, "endless", {"--timeout", "110"}),
              HasSubstr("more than the 20 seconds of --models-seconds"));
}

TEST_F(AttackModels, NobodyWaitsForACheckThatNeverEnds) {
  Serve();
  const Process endless(CreateCommand(Defined(kEndless), "endless"), directory_ / "endless.log");
  ASSERT_TRUE(WaitUntil([&] { return HasChild(fleet_.processes().coordinator().pid()); }, kAttackPatience));
  // A check may last 300 seconds.
  Create(Defined(kHonest), /*succeeds=*/true, "honest");
}

TEST_F(AttackModels, TheCallersTimeoutEndsACheck) {
  Serve();
  const absl::Time start = absl::Now();
  EXPECT_THAT(Create(Defined(kEndless), /*succeeds=*/false, "endless", {"--timeout", "5"}),
              HasSubstr("5s of --timeout"));
  EXPECT_LT(absl::Now() - start, absl::Seconds(150)) << "a check may last 300 seconds";
  Create(Defined(kHonest), /*succeeds=*/true, "endless");
}

TEST_F(AttackModels, ACheckThatNeverEndsDoesNotKeepTheCoordinator) {
  Serve();
  const Process endless(CreateCommand(Defined(kEndless), "endless"), directory_ / "endless.log");
  ASSERT_TRUE(WaitUntil([&] { return HasChild(fleet_.processes().coordinator().pid()); }, kAttackPatience));
  fleet_.processes().coordinator().Signal(SIGTERM);
  EXPECT_EQ(fleet_.processes().coordinator().Wait(kAttackPatience), absl::optional<int>(0));
}

TEST_F(AttackModels, MemoryHasABound) {
  Serve({"--allow-models", "anna", "--models-memory", "512"});
  const std::string said = Create(Defined(R"(
def forward(self, x):
    kept = [x]
    while len(kept) < 100000:
        kept.append(torch.ones([1000000]))
    return torch.linear(x, self.weight, self.bias)
)"),
                                  /*succeeds=*/false);
  EXPECT_THAT(said, AnyOf(HasSubstr("--models-memory"), HasSubstr("can't allocate memory")));
  EXPECT_TRUE(fleet_.IsServing());
  EXPECT_LT(fleet_.ResidentBytes(), int64_t{1} << 30);
}

TEST_F(AttackModels, ThoseWhoAreNotNamedBringNone) {
  Serve({});
  EXPECT_THAT(Create(Defined(kHonest), /*succeeds=*/false),
              AllOf(HasSubstr("takes no TorchScript models from 'operator anna'"), HasSubstr("--allow-models")));
  EXPECT_THAT(fleet_.Ctl({"audit"}), HasSubstr("PERMISSION_DENIED"));
}

TEST_F(AttackModels, AModelThatCannotBeTrainedIsRefusedInOneLine) {
  Serve({"--allow-models", "anna", "--log-level", "run=debug"});
  const std::string detached = Create(Defined(R"(
def forward(self, x):
    return torch.linear(x, self.weight, self.bias).detach()
)"),
                                      /*succeeds=*/false);
  EXPECT_THAT(detached, HasSubstr("detached from the parameters"));
  const std::string thrown = Create(Defined(R"(
def forward(self, x):
    assert x.size(1) == 17, "seventeen features"
    return torch.linear(x, self.weight, self.bias)
)"),
                                    /*succeeds=*/false);
  EXPECT_THAT(thrown, AllOf(HasSubstr("seventeen features (line "), Not(HasSubstr("Traceback"))));
  EXPECT_EQ(std::count(thrown.begin(), thrown.end(), '\n'), 1) << thrown;
  EXPECT_THAT(fleet_.processes().coordinator().Output(), HasSubstr("Traceback"));
}

}  // namespace
}  // namespace terse
