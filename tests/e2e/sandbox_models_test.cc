// TorchScript models of users in the sandbox: those that only compute train the same, those that look around do not.
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/random.h"
#include "gmock/gmock.h"
#include "tests/e2e/sandboxed_fleet.h"
#include "tests/learning/user_modules.h"
#include "tests/testing/paths.h"
#include "tests/testing/wait_until.h"

namespace terse {
namespace {

using ::testing::HasSubstr;

// One client's run of a module, from the file to the model that came of it.
class Models : public testing::Test {
 protected:
  static void SetUpTestSuite() { setenv("OMP_NUM_THREADS", "1", 1); }

  void SetUp() override {
    std::filesystem::create_directories(data_);
    std::string rows = "a,b,c,d,class\n";
    Random random(7);
    for (int i = 0; i < 300; ++i) {
      for (int j = 0; j < kFeatures; ++j) absl::StrAppend(&rows, random.Uniform(-1, 1) + (j == i % kClasses), ",");
      absl::StrAppend(&rows, "k", i % kClasses, "\n");
    }
    WriteText(data_ + "/train.csv", rows);
    WriteText(data_ + "/test.csv", rows);
    WriteText(secret_, std::string(64, 's'));
  }

  // Trains `module` with a client that has `options`; its exit code.
  int Train(FleetProcesses* fleet, const torch::jit::Module& module, std::vector<std::string> options) {
    const std::string model = fleet->directory() / "model.pt", run = fleet->directory() / "run.toml";
    WriteText(model, Saved(module));
    WriteText(run,
              "name = 'mine'\nmodel.name = 'torchscript'\n[data]\nname = 'csv'\ntrain = 'train.csv'\ntest = "
              "'test.csv'\npartition = 'all'\ncolumns = ['a:number', 'b:number', 'c:number', 'd:number', "
              "'class:class=k0|k1|k2']\n[train]\nlocal_steps = 3\nbatch_size = 16\noptimizer.learning_rate = 0.01\n"
              "[codec]\nname = 'sbc'\ndensity = 0.5\n[rounds]\ncount = 5\nclients = 1\n[checkpoints]\nevery = 5\n");
    fleet->StartCoordinator("", {{}, "", {"--data", data_, "--allow-models", "any"}});
    int code = -1;
    const std::string made = fleet->Ctl({"run", "create", "--run-file", run, "--model", model, "--json"}, &code);
    EXPECT_EQ(code, 0) << made;
    const std::string hash =
        nlohmann::json::parse(made, nullptr, /*allow_exceptions=*/false).value("model_hash", std::string());
    options.insert(options.end(), {"--data", data_, "--allow-model", hash});
    fleet->StartClient(0, {{}, "", options});
    return fleet->client(0).Wait(kPatience).value_or(-1);
  }

  // Computes as Plain, and reads the secret file by the way from the second training step on, which the coordinator's
  // check does not come to.
  torch::jit::Module Curious() const {
    torch::jit::Module module = Tensors();
    module.register_buffer("calls", at::zeros({}, at::kLong));
    module.define(absl::StrReplaceAll(R"(
def forward(self, x):
    y = torch.linear(x, self.weight, self.bias)
    if self.training:
        self.calls = self.calls + 1
        if bool(self.calls > 1):
            y = y + 0.0 * torch.from_file("SECRET", False, 16, dtype=6)[0]
    return y
)",
                                      {{"SECRET", secret_}}));
    return module;
  }

  const ScratchDirectory directory_;
  const std::string data_ = directory_ / "data";
  const std::string secret_ = directory_ / "node.key";
};

TEST_F(Models, TrainToTheSameBits) {
  std::string models[2];
  for (const bool sandbox : {false, true}) {
    FleetProcesses fleet(Program("terse-coordinator"), Program("terse-client"));
    const std::vector<std::string> options =
        sandbox ? std::vector<std::string>{"--sandbox"} : std::vector<std::string>();
    EXPECT_EQ(Train(&fleet, Normalising(), options), 0) << fleet.client(0).Output();
    models[sandbox] = LastCheckpoint(fleet);
  }
  EXPECT_TRUE(models[0] == models[1]);
}

TEST_F(Models, AFileThatOneReadsIsOutOfReach) {
  {
    FleetProcesses fleet(Program("terse-coordinator"), Program("terse-client"));
    EXPECT_EQ(Train(&fleet, Curious(), {}), 0) << fleet.client(0).Output();
  }
  FleetProcesses fleet(Program("terse-coordinator"), Program("terse-client"));
  const int code = Train(&fleet, Curious(), {"--sandbox"});
  if (absl::StrContains(fleet.client(0).Output(), "there is no Landlock"))
    GTEST_SKIP() << "this kernel has no Landlock";
  EXPECT_EQ(code, 1);
  EXPECT_THAT(fleet.client(0).Output(), HasSubstr("node.key"));
  EXPECT_THAT(fleet.client(0).Output(), HasSubstr("Permission denied"));
}

}  // namespace
}  // namespace terse
