// Trainers in another process, honest and not.
#include "trainer/external_trainer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/trainer/scripted_trainer.h"
#include "trainer/serve_trainer.h"
#include "trainer/shared_vectors.h"

namespace terse {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const auto kGoOn = [] { return true; };

RunConfig GridConfig() {
  RunConfig config;
  config.name = "grid";
  config.seed = 3;
  return config;
}

absl::StatusOr<std::unique_ptr<LocalTrainer>> Connect(ScriptedTrainer& script, double seconds = 20,
                                                      std::function<bool()> stop = nullptr) {
  ExternalTrainerOptions options;
  options.source = script.Source();
  options.seconds = seconds;
  options.stop = std::move(stop);
  return ExternalTrainerFactory(std::move(options))(GridConfig(), {1, 4}, "");
}

// The grid's trainer at the other end, which notes what it hears.
class Remembering : public GridTrainer {
 public:
  Remembering(int64_t client, std::vector<std::string>* heard)
      : GridTrainer(client, GridLayout(), true), heard_(heard) {}
  void MaskMomentum(absl::Span<const int64_t> positions) override {
    heard_->push_back("mask");
    for (const int64_t position : positions) heard_->back() += " " + std::to_string(position);
  }
  void OnSealed(int64_t round) override { heard_->push_back("sealed " + std::to_string(round)); }
  void OnFinished(absl::string_view reason, absl::Span<const float> weights) override {
    heard_->push_back(std::string(reason) + " " + std::to_string(weights[0]));
  }

 private:
  std::vector<std::string>* const heard_;
};

ScriptedTrainer::Script Serving(std::vector<std::string>* heard, OpenRequest* opened = nullptr) {
  return [=](OwnedFile socket) {
    ServeTrainer(std::move(socket), "grid 1",
                 [=](const RunOpening& opening) -> absl::StatusOr<std::unique_ptr<LocalTrainer>> {
                   if (opened != nullptr) *opened = opening.request;
                   return std::make_unique<Remembering>(opening.request.shard.index, heard);
                 });
  };
}

TEST(ExternalTrainer, WorksAsTheTrainerAtTheOtherEnd) {
  std::vector<std::string> heard;
  OpenRequest opened;
  ScriptedTrainer script(Serving(&heard, &opened));
  {
    auto trainer = Connect(script);
    ASSERT_TRUE(trainer.ok()) << trainer.status();
    EXPECT_EQ(opened.run, "grid");
    EXPECT_EQ(opened.seed, 3);
    EXPECT_EQ(opened.shard.count, 4);
    GridTrainer here(1, GridLayout(), true);
    EXPECT_EQ((*trainer)->layout().Hash(), here.layout().Hash());
    EXPECT_EQ((*trainer)->samples(), here.samples());
    EXPECT_THAT((*trainer)->StartWeights(), ElementsAreArray(here.StartWeights()));
    std::vector<float> weights(GridLayout().size(), 0.5f), there_delta(weights.size()), here_delta(weights.size());
    for (int64_t round = 1; round <= 3; ++round) {
      const LocalPlan plan = {2, 2 * round, round, round - 1};
      const auto there_result = (*trainer)->Train(weights, plan, kGoOn, absl::MakeSpan(there_delta));
      const auto here_result = here.Train(weights, plan, kGoOn, absl::MakeSpan(here_delta));
      ASSERT_TRUE(there_result.ok()) << there_result.status();
      EXPECT_EQ(there_result->mean_loss, here_result->mean_loss);
      EXPECT_EQ(there_result->samples, here_result->samples);
      EXPECT_THAT(there_delta, ElementsAreArray(here_delta));
      EXPECT_EQ(*(*trainer)->SaveState(), *here.SaveState());
    }
    (*trainer)->MaskMomentum({3, 5});
    (*trainer)->OnSealed(3);
    weights[0] = 0.25f;
    (*trainer)->OnFinished("all done", weights);
    EXPECT_TRUE((*trainer)->RestoreState("grid client 1 calls 0").ok());
    EXPECT_EQ((*trainer)->RestoreState("another's").code(), absl::StatusCode::kDataLoss);
  }
  EXPECT_THAT(heard, testing::ElementsAre("mask 3 5", "sealed 3", "all done 0.250000"));
}

TEST(ExternalTrainer, StopsBetweenTwoStepsWhenAsked) {
  std::vector<std::string> heard;
  ScriptedTrainer script(Serving(&heard));
  auto trainer = Connect(script);
  ASSERT_TRUE(trainer.ok()) << trainer.status();
  std::vector<float> weights(GridLayout().size()), delta(weights.size());
  int asked = 0;
  const auto stopped = (*trainer)->Train(
      weights, {10, 0}, [&] { return ++asked < 3; }, absl::MakeSpan(delta));
  EXPECT_EQ(stopped.status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(asked, 3);
  EXPECT_TRUE((*trainer)->Train(weights, {10, 0}, kGoOn, absl::MakeSpan(delta)).ok());
}

// Answers kOpen and kMemory, then does its deed with the connection and the memory when it is asked to train.
ScriptedTrainer::Script AfterOpening(const Hello& hello,
                                     const std::function<void(Channel*, SharedVectors*)>& on_train) {
  const VectorType type = hello.dtype == "bfloat16" ? VectorType::kBfloat16 : VectorType::kFloat32;
  return [=](OwnedFile socket) {
    Channel channel(std::move(socket), Channel::Files::kTaken);
    SharedVectors vectors;
    while (true) {
      const auto frame = channel.Receive(kAnySize, nullptr);
      if (!frame.ok()) return;
      std::string answer = "{}";
      if (frame->kind == FrameKind::kOpen) answer = ToJson(hello);
      if (frame->kind == FrameKind::kMemory) {
        ASSERT_TRUE(vectors.Map(frame->file.fd(), GridLayout().size(), type).ok());
        EXPECT_EQ(FromJson<MemoryRequest>(frame->body)->bytes, SharedVectors::Bytes(GridLayout().size(), type));
        EXPECT_EQ(FromJson<MemoryRequest>(frame->body)->elements, GridLayout().size());
      }
      if (frame->kind == FrameKind::kTrain) {
        on_train(&channel, &vectors);
        return;
      }
      if (!channel.Send(FrameKind::kDone, answer, nullptr).ok()) return;
    }
  };
}

absl::Status TrainWith(const Hello& hello, const std::function<void(Channel*, SharedVectors*)>& on_train,
                       double seconds = 20, std::function<bool()> stop = nullptr) {
  ScriptedTrainer script(AfterOpening(hello, on_train));
  auto trainer = Connect(script, seconds, std::move(stop));
  if (!trainer.ok()) return trainer.status();
  std::vector<float> weights(GridLayout().size()), delta(weights.size());
  const absl::Status status = (*trainer)->Train(weights, {1, 0}, kGoOn, absl::MakeSpan(delta)).status();
  // A trainer that is lost stays lost.
  if (absl::IsUnavailable(status) || absl::IsInternal(status)) {
    EXPECT_EQ((*trainer)->SaveState().status(), status);
    EXPECT_THAT((*trainer)->StartWeights(), IsEmpty());
  }
  return status;
}

void SendDone(Channel* channel, const std::string& body) {
  channel->Send(FrameKind::kDone, body, nullptr).IgnoreError();
}

void Expect(const absl::Status& status, absl::StatusCode code, absl::string_view text) {
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(std::string(text)));
}

TEST(ExternalTrainer, TakesWeightsAndDeltas) {
  for (const bool is_delta : {true, false}) {
    Hello hello = GridHello();
    hello.result = is_delta ? "delta" : "weights";
    ScriptedTrainer script(AfterOpening(hello, [](Channel* channel, SharedVectors* vectors) {
      for (float& value : vectors->result()) value = 2;
      SendDone(channel, ToJson(WireResult{0.5, 10}));
    }));
    auto trainer = Connect(script);
    ASSERT_TRUE(trainer.ok()) << trainer.status();
    const std::vector<float> weights(GridLayout().size(), 0.5f);
    std::vector<float> delta(weights.size());
    ASSERT_TRUE((*trainer)->Train(weights, {1, 0}, kGoOn, absl::MakeSpan(delta)).ok());
    EXPECT_THAT(delta, testing::Each(is_delta ? 2.0f : 1.5f));
  }
}

TEST(ExternalTrainer, ThatWorksInPlaceFindsTheWeightsInTheResult) {
  Hello hello = GridHello();
  hello.result = "weights";
  hello.in_place = true;
  ScriptedTrainer script(AfterOpening(hello, [](Channel* channel, SharedVectors* vectors) {
    EXPECT_THAT(vectors->result(), testing::Each(0.5f));
    vectors->result()[7] = 2;
    SendDone(channel, ToJson(WireResult{0.5, 10}));
  }));
  auto trainer = Connect(script);
  ASSERT_TRUE(trainer.ok()) << trainer.status();
  const std::vector<float> weights(GridLayout().size(), 0.5f);
  std::vector<float> delta(weights.size()), expected(weights.size());
  expected[7] = 1.5f;
  ASSERT_TRUE((*trainer)->Train(weights, {1, 0}, kGoOn, absl::MakeSpan(delta)).ok());
  EXPECT_THAT(delta, ElementsAreArray(expected));
}

// 1 + 2^-8 lies between the bfloat16s 1 and 1 + 2^-7, and goes to the even one.
TEST(ExternalTrainer, MayHaveItsVectorsAsBfloat16) {
  for (const bool in_place : {true, false}) {
    Hello hello = GridHello();
    hello.dtype = "bfloat16";
    hello.result = "weights";
    hello.in_place = in_place;
    ScriptedTrainer script(AfterOpening(hello, [in_place](Channel* channel, SharedVectors* vectors) {
      if (!in_place) {
        std::copy(vectors->weights16().begin(), vectors->weights16().end(), vectors->result16().begin());
      }
      EXPECT_THAT(vectors->result16(), testing::Each(0x3f80));  // 1
      vectors->result16()[7] = 0x4000;                          // 2
      SendDone(channel, ToJson(WireResult{0.5, 10}));
    }));
    auto trainer = Connect(script);
    ASSERT_TRUE(trainer.ok()) << trainer.status();
    const std::vector<float> weights(GridLayout().size(), 1.00390625f);
    std::vector<float> delta(weights.size(), -1), expected(weights.size());
    expected[7] = 1;
    ASSERT_TRUE((*trainer)->Train(weights, {1, 0}, kGoOn, absl::MakeSpan(delta)).ok());
    EXPECT_THAT(delta, ElementsAreArray(expected)) << "what the trainer leaves alone has not changed";
  }
}

TEST(ExternalTrainer, Bfloat16MayBeDeltasAndMustBeFinite) {
  Hello hello = GridHello();
  hello.dtype = "bfloat16";
  const auto leaves = [&](uint16_t bits, std::vector<float>* delta) {
    ScriptedTrainer script(AfterOpening(hello, [bits](Channel* channel, SharedVectors* vectors) {
      for (uint16_t& value : vectors->result16()) value = bits;
      SendDone(channel, ToJson(WireResult{0.5, 10}));
    }));
    auto trainer = Connect(script);
    const std::vector<float> weights(GridLayout().size(), 0.5f);
    delta->resize(weights.size());
    return (*trainer)->Train(weights, {1, 0}, kGoOn, absl::MakeSpan(*delta)).status();
  };
  std::vector<float> delta;
  EXPECT_TRUE(leaves(0xbfc0, &delta).ok());
  EXPECT_THAT(delta, testing::Each(-1.5f));
  Expect(leaves(0x7f80, &delta), absl::StatusCode::kFailedPrecondition, "that are not finite");
}

TEST(ExternalTrainer, ThatClosesTheConnectionIsLost) {
  Expect(TrainWith(GridHello(), [](Channel*, SharedVectors*) {}), absl::StatusCode::kUnavailable,
         "the trainer closed the connection");
}

TEST(ExternalTrainer, ThatHangsIsLost) {
  Expect(TrainWith(
             GridHello(), [](Channel*, SharedVectors*) { absl::SleepFor(absl::Seconds(1)); }, 0.2),
         absl::StatusCode::kUnavailable, "the trainer took more than the 0.2 seconds of --trainer-seconds");
}

TEST(ExternalTrainer, ThatAnswersNonsenseIsNotAskedAgain) {
  const auto answers = [](FrameKind kind, const std::string& body) {
    return TrainWith(GridHello(), [=](Channel* channel, SharedVectors*) {
      channel->Send(kind, body, nullptr).IgnoreError();
      channel->Receive(kAnySize, nullptr).status().IgnoreError();
    });
  };
  const absl::StatusCode internal = absl::StatusCode::kInternal;
  Expect(answers(FrameKind::kDone, "no"), internal, "training with what cannot be read: it is no JSON object");
  Expect(answers(FrameKind::kDone, "{\"loss\":1}"), internal, "'samples' is missing");
  Expect(answers(FrameKind::kDone, "{\"loss\":\"1\",\"samples\":1}"), internal, "'loss' is no number");
  Expect(answers(FrameKind::kDone, ToJson(WireResult{1, -1})), internal, "a negative number of samples");
  Expect(answers(FrameKind::kDone, std::string(100 << 10, ' ')), internal, "a message of 102400 bytes");
  Expect(answers(FrameKind::kFailed, "{}"), internal, "a failure that cannot be read");
  Expect(answers(FrameKind::kProgress, "{}"), internal, "a message that it may not send");
  Expect(answers(FrameKind::kTrain, "{}"), internal, "a message that it may not send");
  Expect(answers(static_cast<FrameKind>(99), "{}"), internal, "a message that it may not send");
}

TEST(ExternalTrainer, BytesThatAreNoFrameAreNonsense) {
  auto [ours, theirs] = SocketPair();
  ASSERT_EQ(send(theirs.fd(), std::string(16, '\xff').data(), 16, 0), 16);
  Channel channel(std::move(ours));
  Expect(channel.Receive(100, nullptr).status(), absl::StatusCode::kInvalidArgument, "bytes that are no frame");
}

TEST(ExternalTrainer, AResultThatIsNotFiniteNamesItsTensor) {
  const auto leaves = [](float value, double loss) {
    return TrainWith(GridHello(), [=](Channel* channel, SharedVectors* vectors) {
      vectors->result()[GridLayout().tensors()[1].offset + 2] = value;
      SendDone(channel, ToJson(WireResult{loss, 1}));
    });
  };
  const absl::StatusCode failed = absl::StatusCode::kFailedPrecondition;
  Expect(leaves(std::nanf(""), 1), failed,
         "the trainer left 1 of the 40 values of tensor 'grid.bias' that are not finite; lower its learning rate");
  Expect(leaves(std::numeric_limits<float>::infinity(), 1), failed, "'grid.bias'");
  Expect(leaves(0, std::nan("")), failed, "a loss that is not finite");
  Expect(leaves(0, 1e300), failed, "a loss that is not finite");
  EXPECT_TRUE(leaves(0, 1).ok());
}

TEST(ExternalTrainer, FailuresArePassedOnButForCodesThatMeanMoreHere) {
  const auto fails = [](const std::string& code) {
    return TrainWith(GridHello(), [=](Channel* channel, SharedVectors*) {
      channel->Send(FrameKind::kFailed, ToJson(WireFailure{code, "no data\n\x1b[31m", "trace"}), nullptr).IgnoreError();
      channel->Receive(kAnySize, nullptr).status().IgnoreError();
    });
  };
  Expect(fails("FAILED_PRECONDITION"), absl::StatusCode::kFailedPrecondition, "the trainer: no data??[31m");
  Expect(fails("OUT_OF_RANGE"), absl::StatusCode::kOutOfRange, "no data");
  for (const char* const code : {"CANCELLED", "UNKNOWN", "OK", "NONE"}) {
    ScriptedTrainer script(AfterOpening(GridHello(), [=](Channel* channel, SharedVectors*) {
      channel->Send(FrameKind::kFailed, ToJson(WireFailure{code, "odd", ""}), nullptr).IgnoreError();
    }));
    auto trainer = Connect(script);
    std::vector<float> weights(GridLayout().size()), delta(weights.size());
    Expect((*trainer)->Train(weights, {1, 0}, kGoOn, absl::MakeSpan(delta)).status(), absl::StatusCode::kInternal,
           "odd");
  }
}

TEST(ExternalTrainer, ThatDoesNotStopIsGivenUp) {
  const absl::Time begin = absl::Now();
  const absl::Status status = TrainWith(
      GridHello(), [](Channel* channel, SharedVectors*) { channel->Receive(kAnySize, nullptr).status().IgnoreError(); },
      60, [begin] { return absl::Now() - begin > absl::Milliseconds(200); });
  Expect(status, absl::StatusCode::kUnavailable, "the trainer did not stop within 5 seconds");
  EXPECT_LT(absl::Now() - begin, absl::Seconds(20));
}

TEST(ExternalTrainer, AHelloThatDoesNotFitIsRefused) {
  const auto refused = [](const std::function<void(Hello*)>& change) {
    Hello hello = GridHello();
    change(&hello);
    ScriptedTrainer script(AfterOpening(hello, [](Channel*, SharedVectors*) {}));
    return Connect(script).status();
  };
  const absl::StatusCode failed = absl::StatusCode::kFailedPrecondition, internal = absl::StatusCode::kInternal;
  Expect(
      refused([](Hello* hello) { hello->protocol = 2; }), failed,
      "the trainer scripted 1 speaks version 2 of the trainer protocol, and this client 1; install releases that fit");
  Expect(refused([](Hello* hello) { hello->dtype = "float64"; }), failed, "wants its weights as 'float64'");
  Expect(refused([](Hello* hello) { hello->layout.clear(); }), failed, "has no model that a run can have");
  Expect(refused([](Hello* hello) { hello->layout[0].shape = {0}; }), failed, "has no model that a run can have");
  Expect(refused([](Hello* hello) { hello->layout[1].name = hello->layout[0].name; }), failed, "has no model");
  Expect(refused([](Hello* hello) { hello->layout[0].kind = "weight"; }), internal, "neither 'parameter' nor 'buffer'");
  Expect(refused([](Hello* hello) { hello->samples = 0; }), internal, "that it has 0 samples");
  Expect(refused([](Hello* hello) { hello->result = "gradient"; }), internal, "neither 'weights' nor 'delta'");
  Expect(refused([](Hello* hello) { hello->device = "a\nb"; }), internal, "a device of no name");
}

TEST(ExternalTrainer, ACommandThatCannotBeStartedIsNotTriedAgain) {
  const auto started = [](const std::string& command) {
    ExternalTrainerOptions options;
    options.source = TrainerCommand(command);
    return ExternalTrainerFactory(std::move(options))(GridConfig(), {0, 1}, "").status();
  };
  Expect(started("/nonexistent/trainer"), absl::StatusCode::kFailedPrecondition, "--trainer cannot be started");
  Expect(started("false"), absl::StatusCode::kUnavailable, "the trainer exited with code 1");
}

TEST(ExternalTrainer, WithoutStateOrMomentumIsNotAskedForThem) {
  Hello hello = GridHello();
  hello.has_state = hello.has_momentum = false;
  ScriptedTrainer script(AfterOpening(hello, [](Channel*, SharedVectors*) {}));
  auto trainer = Connect(script);
  ASSERT_TRUE(trainer.ok()) << trainer.status();
  (*trainer)->MaskMomentum({1});
  EXPECT_EQ(*(*trainer)->SaveState(), "");
  EXPECT_TRUE((*trainer)->RestoreState("old").ok());
  EXPECT_THAT((*trainer)->StartWeights(), IsEmpty());
}

}  // namespace
}  // namespace terse
