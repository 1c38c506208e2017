// Models of users in a process of their own. This program is that process too.
#include "coordinator/rpc/sandboxed_learning.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/status_details.h"
#include "tests/testing/grid_learning.h"
#include "tests/testing/temp_directory.h"

namespace terse {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kMemoryMb = 256;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// The test and its sandboxes are started so: PROGRAM READABLE [FLAG NETWORK].
std::string* program = nullptr;

[[noreturn]] void Loop() {
  while (true) pause();
}

// Does what config.name says: "WHEN WHAT [TARGET]", where WHEN is make, start, score or export.
class HostileLearning : public GridLearning, private Evaluator {
 public:
  explicit HostileLearning(const RunConfig& config, const Layout& layout)
      : GridLearning(layout), what_(config.name), target_(config.data.name) {}

  absl::StatusOr<std::vector<float>> InitialWeights() const override {
    std::vector<float> weights = GridInitialWeights(layout());
    if (what_ == "start with no number") weights[3] = kNan;
    if (what_ == "start with few") weights.resize(2);
    return weights;
  }
  Evaluator* evaluator() override { return this; }
  absl::StatusOr<std::string> ExportTorchScript(absl::Span<const float> weights) const override {
    if (what_ == "export loops") Loop();
    if (what_ == "export is large") return std::string(64 << 20, 'x');
    return absl::StrCat("a file of ", weights.size(), " weights");
  }
  absl::StatusOr<std::vector<std::string>> Vocabulary() const override {
    if (what_ == "vocabulary is large") return std::vector<std::string>{std::string(65 << 20, 'x')};
    if (what_ == "vocabulary is long") return std::vector<std::string>((1 << 20) + 1);
    return std::vector<std::string>{"e", "\n", "\xff"};
  }

 private:
  absl::StatusOr<Evaluation> Evaluate(absl::Span<const float> weights) override {
    if (what_ == "score loops") Loop();
    if (what_ == "score exits") _exit(3);
    if (what_ == "score diverges") return Evaluation{0.1, kNan};
    if (what_ == "score is above all") return Evaluation{1.5, 0};
    if (what_ == "score is a loss alone") return Evaluation{absl::nullopt, 2.5};
    if (what_ == "score reads") {
      const int fd = open(target_.c_str(), O_RDONLY);
      return fd >= 0 ? absl::StatusOr<Evaluation>(Evaluation{1, 1}) : absl::NotFoundError(std::strerror(errno));
    }
    if (what_ == "score fails") return WithDetails(absl::InternalError("one\nline"), "many\nlines");
    return GridLearning::evaluator()->Evaluate(weights);
  }

  const std::string what_;
  const std::string target_;
};

absl::StatusOr<std::unique_ptr<RunLearning>> MakeHostile(const RunConfig& config, const std::string& module,
                                                         const std::string& data) {
  if (config.name == "make fails") return absl::InvalidArgumentError(absl::StrCat(module, " is none, with ", data));
  if (config.name == "make loops") Loop();
  return std::make_unique<HostileLearning>(config, GridLayout());
}

class SandboxedLearning : public testing::Test {
 protected:
  SandboxedLearning() { std::ofstream(secrets_.path() + "/node.key") << "key"; }

  SandboxOptions Options(double seconds = 30) const {
    SandboxOptions options;
    options.command_line = {*program, data_.path()};
    options.memory_mb = kMemoryMb;
    options.seconds = seconds;
    options.role = kSandboxedModelRole;
    return options;
  }
  absl::StatusOr<std::unique_ptr<RunLearning>> TryMake(const std::string& what, double seconds = 30,
                                                       const std::function<bool()>& cancelled = nullptr) const {
    RunConfig config;
    config.name = what;
    config.data.name = secrets_.path() + "/node.key";
    return MakeSandboxedLearning(Options(seconds), config, "a module", cancelled);
  }
  std::unique_ptr<RunLearning> Make(const std::string& what, double seconds = 30) const {
    absl::StatusOr<std::unique_ptr<RunLearning>> learning = TryMake(what, seconds);
    EXPECT_TRUE(learning.ok()) << learning.status();
    return learning.ok() ? *std::move(learning) : nullptr;
  }
  static absl::Status Score(RunLearning* learning) {
    return learning->evaluator()->Evaluate(GridInitialWeights(GridLayout())).status();
  }
  // As the thread of another round scores.
  static absl::Status ScoreElsewhere(RunLearning* learning) {
    absl::Status status;
    std::thread([&] { status = Score(learning); }).join();
    return status;
  }

  const TempDirectory data_;
  const TempDirectory secrets_;
};

TEST_F(SandboxedLearning, AnswersAsWithoutIt) {
  GridLearning plain(GridLayout());
  const std::unique_ptr<RunLearning> boxed = Make("honest");
  EXPECT_EQ(boxed->layout().Hash(), plain.layout().Hash());
  const std::vector<float> weights = boxed->InitialWeights().value();
  EXPECT_EQ(weights, plain.InitialWeights().value());
  const Evaluation expected = plain.evaluator()->Evaluate(weights).value();
  const Evaluation evaluation = boxed->evaluator()->Evaluate(weights).value();
  EXPECT_EQ(evaluation.accuracy, expected.accuracy);
  EXPECT_EQ(evaluation.loss, expected.loss);
  EXPECT_EQ(evaluation.top5, expected.top5);
  EXPECT_EQ(evaluation.perplexity, expected.perplexity);
  EXPECT_EQ(boxed->ExportTorchScript(weights).value(), absl::StrCat("a file of ", weights.size(), " weights"));
  EXPECT_TRUE(absl::IsInvalidArgument(boxed->ExportTorchScript({1, 2}).status()));
  for (int i = 0; i < 2; ++i) EXPECT_THAT(boxed->Vocabulary().value(), ::testing::ElementsAre("e", "\n", "\xff"));

  const Evaluation alone = Make("score is a loss alone")->evaluator()->Evaluate(weights).value();
  EXPECT_EQ(alone.accuracy, absl::nullopt);
  EXPECT_EQ(alone.loss, 2.5);

  const Evaluation diverged = Make("score diverges")->evaluator()->Evaluate(weights).value();
  EXPECT_EQ(diverged.accuracy, 0.1);
  EXPECT_TRUE(std::isnan(diverged.loss)) << "as without it";
}

TEST_F(SandboxedLearning, GoesOnInAnotherThread) {
  std::unique_ptr<RunLearning> learning;
  std::thread([&] { learning = Make("honest"); }).join();  // its process dies with it
  EXPECT_EQ(Score(learning.get()), absl::OkStatus());
  for (int i = 0; i < 2; ++i) EXPECT_EQ(ScoreElsewhere(learning.get()), absl::OkStatus());
}

TEST_F(SandboxedLearning, SaysWhatItsFactorySays) {
  EXPECT_EQ(TryMake("make fails").status(),
            absl::InvalidArgumentError(absl::StrCat("a module is none, with ", data_.path())));
}

TEST_F(SandboxedLearning, AnEvaluationReadsNoKey) {
  const std::unique_ptr<RunLearning> learning = Make("score reads");
  EXPECT_EQ(Score(learning.get()), absl::NotFoundError("Permission denied"));
}

TEST_F(SandboxedLearning, AFailureIsOneLineWithDetails) {
  const absl::Status status = Score(Make("score fails").get());
  EXPECT_EQ(std::string(status.message()), "one?line");
  EXPECT_EQ(DetailsOf(status), "many\nlines");
}

TEST_F(SandboxedLearning, ThatNeverEndsHasAnEnd) {
  const absl::Status made = TryMake("make loops", /*seconds=*/1).status();
  EXPECT_TRUE(absl::IsInvalidArgument(made)) << made;
  EXPECT_THAT(std::string(made.message()),
              HasSubstr("the sandboxed model took more than the 1 seconds of --models-seconds"));
  const std::unique_ptr<RunLearning> scores = Make("score loops", /*seconds=*/10);
  ASSERT_NE(scores, nullptr);
  const absl::Status status = Score(scores.get());
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("10 seconds of --models-seconds"));
  const std::unique_ptr<RunLearning> exports = Make("export loops", /*seconds=*/10);
  ASSERT_NE(exports, nullptr);
  EXPECT_TRUE(absl::IsFailedPrecondition(exports->ExportTorchScript(GridInitialWeights(GridLayout())).status()));
  EXPECT_EQ(Score(exports.get()), absl::OkStatus());
}

TEST_F(SandboxedLearning, MayBeCancelledWhileItIsMade) {
  std::atomic<int> asked{0};
  const absl::Time start = absl::Now();
  const absl::Status status = TryMake("make loops", /*seconds=*/600, [&] { return ++asked > 2; }).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("did not stop within"));
  EXPECT_LT(absl::Now() - start, absl::Seconds(60));
}

TEST_F(SandboxedLearning, OneThatEndedIsStartedAgain) {
  const std::unique_ptr<RunLearning> learning = Make("score exits");
  for (int i = 0; i < 2; ++i)
    EXPECT_THAT(std::string(Score(learning.get()).message()), HasSubstr("exited with code 3"));
}

TEST_F(SandboxedLearning, IsNotBelieved) {
  const absl::Status status = Score(Make("score is above all").get());
  EXPECT_TRUE(absl::IsInternal(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("not to be trusted"));
  EXPECT_TRUE(absl::IsInternal(Make("start with few")->InitialWeights().status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Make("start with no number")->InitialWeights().status()));
  const std::vector<float> weights = GridInitialWeights(GridLayout());
  EXPECT_TRUE(absl::IsInternal(Make("export is large")->ExportTorchScript(weights).status()));
  EXPECT_TRUE(absl::IsInternal(Make("vocabulary is large")->Vocabulary().status()));
  EXPECT_TRUE(absl::IsInternal(Make("vocabulary is long")->Vocabulary().status()));
}

TEST_F(SandboxedLearning, NeedsItsOwnCommandLine) {
  EXPECT_TRUE(absl::IsFailedPrecondition(MakeSandboxedLearning({}, {}, "a module").status()));
}

}  // namespace
}  // namespace terse

int main(int argc, char** argv) {
  if (argc == 4 && argv[2] == std::string(terse::kSandboxFlag)) {
    const terse::SandboxChild child = {{argv[1]}, terse::kMemoryMb, argv[3] == std::string(terse::kOwnNetwork)};
    return terse::EnterSandbox(child).ok() ? terse::ServeLearning(terse::MakeHostile, argv[1]) : 1;
  }
  testing::InitGoogleTest(&argc, argv);
  terse::program = new std::string(argv[0]);
  return RUN_ALL_TESTS();
}
