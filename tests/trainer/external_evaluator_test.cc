// Evaluators in another process, honest and not.
#include "trainer/external_evaluator.h"

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/grid_trainer.h"
#include "tests/trainer/scripted_trainer.h"
#include "trainer/channel.h"
#include "trainer/dialogue.h"
#include "trainer/messages.h"
#include "trainer/shared_vectors.h"

namespace terse {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kAnyBytes = 1 << 20;

std::string HelloOf(const Layout& layout) {
  Hello hello;
  hello.protocol = kTrainerProtocol;
  hello.trainer = "evaluator 1";
  for (const TensorSpec& tensor : layout.tensors()) hello.layout.push_back({tensor.name, tensor.shape, "parameter"});
  hello.dtype = "float32";
  hello.samples = 100;
  hello.result = "weights";
  return ToJson(hello);
}

// Answers requests to open and about memory, and to evaluate with what `answer` makes of the round and the weights;
// ends after one that has none.
using Answer = std::function<absl::optional<std::string>(int64_t round, absl::Span<const float> weights)>;

ScriptedTrainer::Script Evaluating(Answer answer, Layout layout = GridLayout(), OpenRequest* opened = nullptr) {
  return [answer = std::move(answer), layout = std::move(layout), opened](OwnedFile socket) {
    Channel channel(std::move(socket), Channel::Files::kTaken);
    SharedVectors vectors;
    while (true) {
      const absl::StatusOr<Channel::Frame> request = channel.Receive(kAnyBytes, nullptr);
      if (!request.ok()) return;
      absl::optional<std::string> body = "{}";
      if (request->kind == FrameKind::kOpen) {
        if (opened != nullptr) *opened = FromJson<OpenRequest>(request->body).value();
        body = HelloOf(layout);
      } else if (request->kind == FrameKind::kMemory) {
        if (!vectors.Map(request->file.fd(), layout.size()).ok()) return;
      } else {
        body = answer(FromJson<EvaluateRequest>(request->body).value().round, vectors.weights());
      }
      if (!body.has_value() || !channel.Send(FrameKind::kDone, *body, nullptr).ok()) return;
    }
  };
}

std::string Scores(const std::vector<WireMetric>& metrics) { return ToJson(WireEvaluation{metrics}); }

std::unique_ptr<Evaluator> EvaluatorOf(TrainerSource source, double seconds = 20) {
  RunConfig config;
  config.name = "grid";
  PeerOptions options;
  options.seconds = seconds;
  return MakeExternalEvaluator(std::move(source), std::move(options), config, GridLayout());
}

bool Always() { return true; }

std::vector<float> SomeWeights() { return std::vector<float>(GridLayout().size(), 0.5f); }

TEST(ExternalEvaluator, ScoresTheWeightsThatItIsGiven) {
  OpenRequest opened;
  ScriptedTrainer script(Evaluating(
      [](int64_t round, absl::Span<const float> weights) {
        return Scores({{"test", "loss", weights[3] + round, 100},
                       {"test", "accuracy", 0.25, 100},
                       {"test", "top5", 0.75, 100},
                       {"test", "perplexity", 9, 100},
                       {"test", "f1", 0.125, 90}});
      },
      GridLayout(), &opened));
  const auto evaluator = EvaluatorOf(script.Source());
  EXPECT_TRUE(evaluator->sets_own_pace());
  for (const int64_t round : {7, 8}) {
    const absl::StatusOr<Evaluation> evaluation = evaluator->EvaluateRound(round, SomeWeights(), Always);
    ASSERT_TRUE(evaluation.ok()) << evaluation.status();
    EXPECT_EQ(evaluation->loss, 0.5 + round);
    EXPECT_EQ(evaluation->accuracy, 0.25);
    EXPECT_EQ(evaluation->top5, 0.75);
    EXPECT_EQ(evaluation->perplexity, 9);
    ASSERT_EQ(evaluation->metrics.size(), 1);
    EXPECT_EQ(evaluation->metrics[0], (NamedMetric{MetricKind::kTest, "f1", 0.125, 90}));
  }
  EXPECT_EQ(opened.role, std::string("evaluator"));
  EXPECT_EQ(opened.run, "grid");
}

absl::Status After(const std::string& answer, Layout layout = GridLayout()) {
  ScriptedTrainer script(Evaluating([answer](int64_t, absl::Span<const float>) { return answer; }, std::move(layout)));
  return EvaluatorOf(script.Source())->Evaluate(SomeWeights()).status();
}

TEST(ExternalEvaluator, WhatNoEvaluatorSaysIsRefused) {
  EXPECT_THAT(After("{}").message(), HasSubstr("with what cannot be read: 'metrics' is missing"));
  EXPECT_EQ(After("{}").code(), absl::StatusCode::kInternal);
  EXPECT_THAT(After(Scores({{"test", "accuracy", 0.5, 1}})).message(), HasSubstr("reports no 'loss'"));
  EXPECT_THAT(After(Scores({{"training", "loss", 0.5, 1}})).message(),
              HasSubstr("with a metric of the kind 'training'"));
  EXPECT_THAT(After(R"({"metrics":[{"kind":"test","name":"loss","value":null,"samples":1}]})").message(),
              HasSubstr("the test metric 'loss' is not finite"));
  EXPECT_THAT(After(Scores({{"test", "loss", 0.5, 1}, {"test", "accuracy", 50, 1}})).message(),
              HasSubstr("an accuracy of 50; it is a fraction"));
  const Layout other = Layout::Create({{"another", {3}}}).value();
  EXPECT_THAT(After("{}", other).message(), HasSubstr("other tensors than the run's"));
}

// Two programs, one after the other: the first ends when it is asked for round 2.
TEST(ExternalEvaluator, OneThatEndedIsAskedForAnew) {
  const Answer once = [](int64_t round, absl::Span<const float>) -> absl::optional<std::string> {
    if (round == 2) return absl::nullopt;
    return Scores({{"test", "loss", 1, 1}});
  };
  const Answer always = [](int64_t, absl::Span<const float>) { return Scores({{"test", "loss", 2, 1}}); };
  ScriptedTrainer first(Evaluating(once)), second(Evaluating(always));
  std::deque<TrainerSource> sources = {first.Source(), second.Source()};
  const auto evaluator = EvaluatorOf([&sources]() -> absl::StatusOr<TrainerConnection> {
    if (sources.empty()) return absl::UnavailableError("no evaluator is there");
    const TrainerSource source = sources.front();
    sources.pop_front();
    return source();
  });
  EXPECT_EQ(evaluator->EvaluateRound(1, SomeWeights(), Always).value().loss, 1);
  EXPECT_EQ(evaluator->EvaluateRound(2, SomeWeights(), Always).value().loss, 2);
}

TEST(ExternalEvaluator, OneThatIsNotThereIsAskedForAgainLater) {
  int asked = 0;
  const auto evaluator = EvaluatorOf([&asked]() -> absl::StatusOr<TrainerConnection> {
    ++asked;
    return absl::UnavailableError("no evaluator is there");
  });
  for (const int times : {1, 2}) {
    EXPECT_EQ(evaluator->Evaluate(SomeWeights()).status().message(), "no evaluator is there");
    EXPECT_EQ(asked, times);
  }
}

TEST(ExternalEvaluator, OneThatHangsIsGivenUp) {
  const Answer never = [](int64_t, absl::Span<const float>) -> absl::optional<std::string> {
    absl::SleepFor(absl::Seconds(2));
    return absl::nullopt;
  };
  ScriptedTrainer script(Evaluating(never));
  const absl::Status status = EvaluatorOf(script.Source(), /*seconds=*/0.3)->Evaluate(SomeWeights()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("--evaluator-seconds"));
}

// A coordinator that ends does not wait for an evaluation that takes long. The evaluator outlives the round engine that
// gave the evaluation up, and serves the next one.
TEST(ExternalEvaluator, OneThatIsGivenUpEndsSoonAndServesTheNextCaller) {
  const Answer slow = [](int64_t, absl::Span<const float>) -> absl::optional<std::string> {
    absl::SleepFor(absl::Seconds(8));
    return absl::nullopt;
  };
  const Answer rather_slow = [](int64_t, absl::Span<const float>) {
    absl::SleepFor(absl::Seconds(kStopGraceSeconds + 1));
    return Scores({{"test", "loss", 2, 1}});
  };
  ScriptedTrainer first(Evaluating(slow)), second(Evaluating(rather_slow));
  std::deque<TrainerSource> sources = {first.Source(), second.Source()};
  const auto evaluator = EvaluatorOf(
      [&sources] {
        const TrainerSource source = sources.front();
        sources.pop_front();
        return source();
      },
      /*seconds=*/600);
  const absl::Time begin = absl::Now();
  const auto for_a_while = [begin] { return absl::Now() < begin + absl::Milliseconds(200); };
  const absl::Status given_up = evaluator->EvaluateRound(1, SomeWeights(), for_a_while).status();
  EXPECT_THAT(given_up.message(), HasSubstr("did not stop within"));
  const absl::StatusOr<Evaluation> next = evaluator->EvaluateRound(2, SomeWeights(), Always);
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(next->loss, 2);
}

}  // namespace
}  // namespace terse
