#include "compression/adaptive_decay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "compression/feedback_table.h"
#include "tests/compression/updates.h"

namespace terse {
namespace {

using Vector = std::vector<float>;

constexpr int64_t kSize = 400;

// A quadratic loss: training goes the part `repeats` of the way to `goal`, and chance adds to it.
struct Valley {
  double repeats = 0;
  double chance = 0;
  Vector goal = Vector(kSize, 0.0f);

  Vector Train(const Vector& weights, Random* random) const {
    const Vector noise = RandomUpdate(kSize, random);
    Vector delta(kSize);
    for (int64_t i = 0; i < kSize; ++i) {
      delta[i] = static_cast<float>(repeats * (goal[i] - weights[i]) + chance * noise[i]);
    }
    return delta;
  }
};

double Distance(const Vector& a, const Vector& b) {
  double squares = 0;
  for (size_t i = 0; i < a.size(); ++i) squares += std::pow(static_cast<double>(a[i]) - b[i], 2);
  return std::sqrt(squares);
}

// Clients that train in the same valley, and the average of what they send.
class Clients {
 public:
  Clients(const std::string& feedback, double density, int64_t count)
      : codec_(NewCodec("sbc", density, "fp32", MakeLayout({kSize}))) {
    CodecSpec spec = SparseSpec("sbc", density);
    spec.feedback = feedback;
    for (int64_t i = 0; i < count; ++i) feedbacks_.push_back(*MakeFeedback(spec, codec_.get()));
  }

  void Round(const Valley& valley) {
    Vector step(kSize);
    for (auto& feedback : feedbacks_) {
      Vector delta = valley.Train(weights, &random_);
      feedback->Observe(weights, delta);
      const std::string message = *feedback->Compress(&delta, {1, round_, 2});
      ASSERT_TRUE(feedback->Settle(true).ok());
      const Vector sent = Decode(*codec_, message);
      for (int64_t i = 0; i < kSize; ++i) step[i] += sent[i] / static_cast<float>(feedbacks_.size());
    }
    for (int64_t i = 0; i < kSize; ++i) weights[i] += step[i];
    ++round_;
  }

  // P of the first client.
  double repeated() const { return dynamic_cast<const AdaptiveDecay&>(*feedbacks_[0]).repeated(); }

  Vector weights = Vector(kSize, 0.0f);

 private:
  std::unique_ptr<const Codec> codec_;
  std::vector<std::unique_ptr<Feedback>> feedbacks_;
  Random random_{7};
  uint64_t round_ = 0;
};

Valley ValleyOf(double repeats, double chance) {
  Random random(3);
  return {repeats, chance, RandomUpdate(kSize, &random)};
}

TEST(AdaptiveDecay, MeasuresThePartThatTrainingRepeats) {
  const auto codec = NewCodec("sbc", 0.05, "fp32", MakeLayout({kSize}));
  for (const double repeats : {0.0, 0.1, 0.6, 1.0}) {
    AdaptiveDecay feedback(codec.get());
    Random random(11);
    for (uint64_t round = 0; round < 5; ++round) {
      const Vector weights = RandomUpdate(kSize, &random);
      Vector delta = ValleyOf(repeats, 0).Train(weights, &random);
      feedback.Observe(weights, delta);
      ASSERT_TRUE(feedback.Compress(&delta, {1, round, 2}).ok());
      ASSERT_TRUE(feedback.Settle(true).ok());
    }
    EXPECT_NEAR(feedback.repeated(), repeats, 1e-5);
  }
}

// A client sends what its delta happened to be. The next delta does not have that, which is no answer.
TEST(AdaptiveDecay, ChanceIsNoAnswer) {
  Clients clients("adaptive_decay", 0.05, 4);
  double sum = 0;
  for (int round = 0; round < 40; ++round) {
    clients.Round(ValleyOf(0, 1));
    sum += clients.repeated();
  }
  EXPECT_LT(sum / 40, 0.1);
}

TEST(AdaptiveDecay, FadesWhatWouldBeSentTwice) {
  const auto codec = NewCodec("sbc", 0.25, "fp32", MakeLayout({4}));
  AdaptiveDecay feedback(codec.get());
  Vector weights = {0, 0, 0, 0}, delta = {1, 8, -2, 4};
  feedback.Observe(weights, delta);
  ASSERT_TRUE(feedback.Compress(&delta, {}).ok());
  ASSERT_TRUE(feedback.Settle(true).ok());
  EXPECT_THAT(feedback.dense(), testing::ElementsAre(1, 0, -2, 4));
  // Another client moved the last weight by 4, and training takes a quarter back. The second is this client's own.
  weights = {0, 8, 0, 4}, delta = {1, 0, -2, 3};
  feedback.Observe(weights, delta);
  EXPECT_EQ(feedback.repeated(), 0.25);
  ASSERT_TRUE(feedback.Compress(&delta, {}).ok());
  EXPECT_THAT(feedback.dense(), testing::ElementsAre(1.5, 0, -3, 5));
}

// Local training that ends at the goal from wherever it begins needs no memory; with a whole residual, each element is
// sent again and again until the model is far behind the goal.
TEST(AdaptiveDecay, KeepsLongLocalTrainingFromOvershooting) {
  const Valley valley = ValleyOf(1, 0.1);
  Clients adaptive("adaptive_decay", 0.02, 4), whole("error_feedback", 0.02, 4);
  for (int round = 0; round < 100; ++round) {
    adaptive.Round(valley);
    whole.Round(valley);
  }
  const double start = Distance(Vector(kSize, 0.0f), valley.goal);
  EXPECT_LT(Distance(adaptive.weights, valley.goal), 0.2 * start);
  EXPECT_GT(Distance(whole.weights, valley.goal), 0.5 * start);
}

TEST(AdaptiveDecay, IsErrorFeedbackWhereItSeesNothing) {
  Random random(5);
  for (const char* name : {"sbc", "signsgd"}) {  // signs are of all parameters
    const auto codec = NewCodec(name, 0.1, "fp32", MakeLayout({kSize}));
    AdaptiveDecay adaptive(codec.get());
    ErrorFeedback whole(codec.get());
    for (int round = 0; round < 5; ++round) {
      const Vector weights = RandomUpdate(kSize, &random);
      Vector delta = RandomUpdate(kSize, &random), same = delta;
      if (codec->traits().carries_all) adaptive.Observe(weights, delta);
      ASSERT_EQ(*adaptive.Compress(&delta, {}), *whole.Compress(&same, {}));
      ASSERT_TRUE(adaptive.Settle(true).ok());
      ASSERT_TRUE(whole.Settle(true).ok());
      ASSERT_EQ(adaptive.dense(), whole.dense()) << name;
    }
  }
}

// The model has 2.3 parameters for each that is looked at. Training never answers the steps that the client's own
// messages made.
TEST(AdaptiveDecay, LooksAtASampleOfALargeModel) {
  const int64_t size = AdaptiveDecay::kMostObserved * 23 / 10;
  const auto codec = NewCodec("sbc", 0.2, "fp32", MakeLayout({size}));
  AdaptiveDecay feedback(codec.get());
  Random random(13);
  Vector weights = RandomUpdate(size, &random), unanswered(size);
  for (uint64_t round = 0; round < 4; ++round) {
    Vector delta(size);
    for (int64_t i = 0; i < size; ++i) delta[i] = 0.3f * (2 - weights[i] + unanswered[i]);
    feedback.Observe(weights, delta);
    const std::string message = *feedback.Compress(&delta, {1, round, 2});
    ASSERT_TRUE(feedback.Settle(true).ok());
    const Vector sent = Decode(*codec, message), step = RandomUpdate(size, &random);
    for (int64_t i = 0; i < size; ++i) {
      weights[i] += sent[i] != 0 ? 8 : step[i];
      unanswered[i] += sent[i] != 0 ? 8.0f : 0.0f;
    }
  }
  EXPECT_NEAR(feedback.repeated(), 0.3, 1e-4);
}

// A process that starts anew goes on as if it had not ended.
TEST(AdaptiveDecay, GoesOnFromWhatIsStored) {
  const auto codec = NewCodec("sbc", 0.1, "fp32", MakeLayout({kSize}));
  AdaptiveDecay whole(codec.get());
  auto stopped = std::make_unique<AdaptiveDecay>(codec.get());
  Random random(17);
  for (uint64_t round = 0; round < 6; ++round) {
    const Vector weights = RandomUpdate(kSize, &random);
    Vector delta = ValleyOf(0.2, 0.1).Train(weights, &random), same = delta;
    whole.Observe(weights, delta);
    stopped->Observe(weights, same);
    ASSERT_EQ(*stopped->Compress(&same, {1, round, 2}), *whole.Compress(&delta, {1, round, 2}));
    ASSERT_TRUE(whole.Settle(true).ok());
    ASSERT_TRUE(stopped->Settle(true).ok());
    auto next = std::make_unique<AdaptiveDecay>(codec.get());
    ASSERT_TRUE(next->Restore(stopped->dense(), "", "").ok());
    ASSERT_TRUE(next->RestoreObservations(stopped->Observations()).ok());
    ASSERT_EQ(next->Observations(), whole.Observations());
    stopped = std::move(next);
  }
  EXPECT_GT(whole.repeated(), 0.1);
}

TEST(AdaptiveDecay, RefusesObservationsOfAnotherForm) {
  const auto codec = NewCodec("sbc", 0.5, "fp32", MakeLayout({4}));
  AdaptiveDecay feedback(codec.get()), other(codec.get());
  ASSERT_TRUE(other.RestoreObservations(feedback.Observations()).ok()) << "nothing was observed";
  Vector delta = {1, 2, 3, 4};
  feedback.Observe(Vector{5, 6, 7, 8}, delta);
  ASSERT_TRUE(feedback.Compress(&delta, {}).ok());
  const std::string good = feedback.Observations();
  ASSERT_EQ(good.size(), 17 + 8 * 4 + 4 * 2u);
  std::string not_finite = good, beyond = good, not_increasing = good, neither = good;
  neither[16] = 2;
  not_finite.replace(17, 4, "\xff\xff\xff\xff");
  beyond[good.size() - 4] = 4;
  not_increasing.replace(good.size() - 4, 4, good.substr(good.size() - 8, 4));
  for (const std::string& bad : {std::string(), good.substr(0, 16), good.substr(0, 17), good.substr(0, 17 + 31),
                                 good + "1", not_finite, beyond, not_increasing, neither}) {
    EXPECT_EQ(other.RestoreObservations(bad).code(), absl::StatusCode::kDataLoss) << bad.size();
  }
  EXPECT_EQ(other.repeated(), 0);
  EXPECT_TRUE(other.RestoreObservations(good).ok());
  EXPECT_EQ(other.Observations(), good);
}

TEST(AdaptiveDecay, LeavesBuffersAlone) {
  const auto codec = NewCodec("sbc", 0.5, "fp32", MakeLayout({2, 1}, 1));
  AdaptiveDecay feedback(codec.get());
  Vector delta = {1, 2, 3};
  feedback.Observe(Vector{0, 0, 0}, delta);
  ASSERT_TRUE(feedback.Compress(&delta, {}).ok());
  ASSERT_TRUE(feedback.Settle(true).ok());
  delta = {1, 2, 4};
  feedback.Observe(Vector{0, 0, 9}, delta);
  EXPECT_EQ(feedback.repeated(), 0) << "a buffer moved, and no parameter";
}

}  // namespace
}  // namespace terse
