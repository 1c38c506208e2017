#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "compression/dense.h"
#include "compression/error_feedback.h"
#include "compression/feedback_table.h"
#include "compression/momentum_feedback.h"
#include "tests/compression/updates.h"

namespace terse {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<std::string> Compress(Feedback* feedback, std::vector<float> delta, uint64_t round = 0) {
  return feedback->Compress(&delta, CodecKey{1, round, 2});
}

TEST(ErrorFeedback, KeepsWhatAMessageDoesNotCarry) {
  const auto codec = NewCodec("sbc", 0.25, "fp32", MakeLayout({4}));
  ErrorFeedback feedback(codec.get());
  const auto message = Compress(&feedback, {1, 8, -2, 0});
  ASSERT_TRUE(message.ok());
  EXPECT_EQ(feedback.pending_message(), *message);
  EXPECT_THAT(feedback.dense(), ElementsAre(1, 8, -2, 0));
  ASSERT_TRUE(feedback.Settle(true).ok());
  EXPECT_FALSE(feedback.pending());
  EXPECT_THAT(feedback.dense(), ElementsAre(1, 0, -2, 0));
  EXPECT_DOUBLE_EQ(feedback.Norm(), std::sqrt(5.0));
}

TEST(ErrorFeedback, FoldsARefusedUpdateForward) {
  const auto codec = NewCodec("sbc", 0.25, "fp32", MakeLayout({4}));
  ErrorFeedback feedback(codec.get());
  ASSERT_TRUE(Compress(&feedback, {1, 8, -2, 0}).ok());
  ASSERT_TRUE(feedback.Settle(false).ok());
  EXPECT_THAT(feedback.dense(), ElementsAre(1, 8, -2, 0));
  ASSERT_TRUE(Compress(&feedback, {0, 1, 0, 0}).ok());
  EXPECT_THAT(Decode(*codec, feedback.pending_message()), ElementsAre(0, 9, 0, 0));
}

TEST(ErrorFeedback, KeepsItsOrder) {
  const auto codec = NewCodec("sbc", 0.25, "fp32", MakeLayout({4}));
  ErrorFeedback feedback(codec.get());
  EXPECT_EQ(feedback.Settle(true).code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(Compress(&feedback, {1, 8, -2, 0}).ok());
  EXPECT_EQ(Compress(&feedback, {1, 1, 1, 1}).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(feedback.dense(), ElementsAre(1, 8, -2, 0));
}

TEST(ErrorFeedback, LeavesTheResidualAloneWhenADeltaIsRefused) {
  const auto codec = NewCodec("sbc", 0.25, "fp32", MakeLayout({4}));
  ErrorFeedback feedback(codec.get());
  ASSERT_TRUE(Compress(&feedback, {1, 8, -2, 0}).ok());
  ASSERT_TRUE(feedback.Settle(true).ok());
  EXPECT_EQ(Compress(&feedback, {1, std::nanf(""), 0, 0}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Compress(&feedback, {1, 1}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(feedback.pending());
  EXPECT_THAT(feedback.dense(), ElementsAre(1, 0, -2, 0));
}

TEST(ErrorFeedback, ResetReportsWhatIsLost) {
  const auto codec = NewCodec("dense", 1, "fp32", MakeLayout({2}));
  ErrorFeedback feedback(codec.get());
  ASSERT_TRUE(Compress(&feedback, {3, -4}).ok());
  EXPECT_DOUBLE_EQ(feedback.Reset(), 5);
  EXPECT_FALSE(feedback.pending());
  EXPECT_THAT(feedback.dense(), Each(0));
}

TEST(ErrorFeedback, FadesWithItsDecay) {
  const auto codec = NewCodec("sbc", 0.25, "fp32", MakeLayout({4}));
  ErrorFeedback feedback(codec.get(), 0.5);
  ASSERT_TRUE(Compress(&feedback, {1, 8, -2, 0}).ok());
  ASSERT_TRUE(feedback.Settle(true).ok());
  ASSERT_TRUE(Compress(&feedback, {0, 0, 0, 4}).ok());
  EXPECT_THAT(feedback.dense(), ElementsAre(0.5, 0, -1, 4));
}

TEST(ErrorFeedback, RestoresEveryStoredState) {
  const auto codec = NewCodec("sbc", 0.25, "fp32", MakeLayout({4}));
  const std::vector<float> dense = {1, 8, -2, 0};
  const std::string message = *codec->Encode(dense);
  ErrorFeedback idle(codec.get());
  ASSERT_TRUE(idle.Restore(dense, "", "").ok());
  EXPECT_THAT(idle.dense(), ElementsAre(1, 8, -2, 0));
  ErrorFeedback settled(codec.get());
  ASSERT_TRUE(settled.Restore(dense, message, "").ok());
  EXPECT_THAT(settled.dense(), ElementsAre(1, 0, -2, 0));
  EXPECT_FALSE(settled.pending());
  ErrorFeedback sealed(codec.get());
  ASSERT_TRUE(sealed.Restore(dense, "", message).ok());
  EXPECT_TRUE(sealed.pending());
  ASSERT_TRUE(sealed.Settle(true).ok());
  EXPECT_THAT(sealed.dense(), ElementsAre(1, 0, -2, 0));
}

TEST(ErrorFeedback, RefusesStoredStateThatDoesNotFit) {
  const auto codec = NewCodec("sbc", 0.25, "fp32", MakeLayout({4}));
  const std::vector<float> dense = {1, 8, -2, 0};
  const std::string message = *codec->Encode(dense);
  ErrorFeedback feedback(codec.get());
  EXPECT_EQ(feedback.Restore({1, 2}, "", "").code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(feedback.Restore({1, 2, 3, std::nanf("")}, "", "").code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(feedback.Restore(dense, "x", "").code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(feedback.Restore(dense, "", "x").code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(feedback.Restore(dense, message, message).code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(feedback.dense(), Each(0));
}

// A client that has come back to the coordinator at which it sealed an update.
TEST(ErrorFeedback, TakesUpAnUpdateAgain) {
  const auto codec = NewCodec("sbc", 0.25, "fp32", MakeLayout({4}));
  for (const bool applied : {true, false}) {
    ErrorFeedback feedback(codec.get());
    ASSERT_TRUE(Compress(&feedback, {1, 8, -2, 0}).ok());
    const std::string message = feedback.pending_message();
    EXPECT_EQ(feedback.Rejoin(message).code(), absl::StatusCode::kFailedPrecondition);
    ASSERT_TRUE(feedback.Settle(true).ok());
    EXPECT_EQ(feedback.Rejoin("x").code(), absl::StatusCode::kDataLoss);
    EXPECT_FALSE(feedback.pending());
    ASSERT_TRUE(feedback.Rejoin(message).ok());
    EXPECT_EQ(feedback.pending_message(), message);
    EXPECT_THAT(feedback.dense(), ElementsAre(1, 8, -2, 0));
    ASSERT_TRUE(feedback.Settle(applied).ok());
    EXPECT_THAT(feedback.dense(), ElementsAre(1, applied ? 0 : 8, -2, 0));
  }
}

// The subtraction is that of the pending message, although the scratch remembers another one.
TEST(ErrorFeedback, SettlesAMessageThatItDidNotEncodeLast) {
  const auto codec = NewCodec("sbc", 0.25, "fp32", MakeLayout({4}));
  const std::vector<float> dense = {1, 8, -2, 0};
  const std::string message = *codec->Encode(dense);
  ErrorFeedback rejoined(codec.get()), restored(codec.get());
  for (ErrorFeedback* const feedback : {&rejoined, &restored}) {
    ASSERT_TRUE(Compress(feedback, {0, 0, 0, 4}).ok());
    ASSERT_TRUE(feedback->Settle(true).ok());
    ASSERT_TRUE(Compress(feedback, {0, 0, 4, 0}).ok());
  }
  ASSERT_TRUE(rejoined.Settle(true).ok() && rejoined.Rejoin(message).ok() && rejoined.Settle(true).ok());
  EXPECT_THAT(rejoined.dense(), Each(0));
  ASSERT_TRUE(restored.Restore(dense, "", message).ok() && restored.Settle(true).ok());
  EXPECT_THAT(restored.dense(), ElementsAre(1, 0, -2, 0));
}

// The momentum has all of the update in it, whatever becomes of it.
TEST(MomentumFeedbackOfSignum, IsTheSameAfterAnUpdateWasTakenUpAgain) {
  const auto codec = NewCodec("signsgd", 1, "fp32", MakeLayout({4}));
  MomentumFeedback feedback(codec.get(), 0.5);
  ASSERT_TRUE(Compress(&feedback, {1, 8, -2, 4}).ok());
  const std::string message = feedback.pending_message();
  ASSERT_TRUE(feedback.Settle(true).ok());
  ASSERT_TRUE(feedback.Rejoin(message).ok());
  EXPECT_TRUE(feedback.pending());
  EXPECT_THAT(feedback.dense(), ElementsAre(0.5, 4, -1, 2));
}

// A sum of float32 numbers without any rounding: a fixed-point number that reaches from the smallest denormal to beyond
// the largest float.
class ExactSum {
 public:
  void Add(float value) {
    if (value == 0) return;
    int exponent = 0;
    const double mantissa = std::frexp(static_cast<double>(value), &exponent);  // of 24 bits, in [0.5, 1)
    const auto scaled = static_cast<int64_t>(std::ldexp(mantissa, 24));
    const int shift = exponent - 24 + kLowest;
    const __int128 wide = static_cast<__int128>(scaled) * (int64_t{1} << (shift % 32));
    const int limb = shift / 32;
    limbs_[limb] += static_cast<int64_t>(wide & 0xffffffff);
    limbs_[limb + 1] += static_cast<int64_t>(wide >> 32);
  }
  void Subtract(float value) { Add(-value); }

  bool IsZero() const {
    int64_t carry = 0;
    for (int64_t limb : limbs_) {
      const int64_t sum = limb + carry;
      if ((sum & 0xffffffff) != 0) return false;
      carry = sum >> 32;
    }
    return carry == 0;
  }

 private:
  static constexpr int kLowest = 174;  // bits behind the point: 149 and the 24 of a denormal's mantissa
  std::array<int64_t, 12> limbs_ = {};
};

// Equation (2) over 1,000 rounds, exactly. Every number of the bookkeeping is a float32, so each addition may round,
// and what it rounds away is a float32 again. The test checks that each result is the correctly rounded one, and adds
// up without rounding:
//   deltas - applied - residual - rounded away = 0.
// Where no operation rounds (deltas on a grid of 2^-10 and decoded values on it too), nothing is rounded away and the
// equation holds in float32 bits.
class Conservation {
 public:
  Conservation(const CodecSpec& spec, const Layout& layout)
      : size_(layout.size()),
        codec_(*MakeCodec(spec, layout)),
        feedback_(*MakeFeedback(spec, codec_.get())),
        balance_(size_),
        random_(42) {}

  void Round(uint64_t round) {
    std::vector<float> delta(size_);
    for (float& value : delta) value = std::ldexp(static_cast<float>(random_.Below(201)) - 100.0f, -10);
    const std::vector<float> before(feedback_->dense().begin(), feedback_->dense().end());
    const auto message = Compress(feedback_.get(), delta, round);
    ASSERT_TRUE(message.ok()) << message.status();
    for (int64_t i = 0; i < size_; ++i) {
      balance_[i].Add(delta[i]);
      Account(before[i], delta[i], feedback_->dense()[i], i);
    }
    ForgetIfDiverged();
    const bool verdict = random_.Below(4) != 0;
    const std::vector<float> dense(feedback_->dense().begin(), feedback_->dense().end());
    ASSERT_TRUE(feedback_->Settle(verdict).ok());
    const std::vector<float> decoded = verdict ? Decode(*codec_, *message) : std::vector<float>(size_);
    for (int64_t i = 0; i < size_; ++i) {
      balance_[i].Subtract(decoded[i]);
      Account(dense[i], -decoded[i], feedback_->dense()[i], i);
    }
  }

  // Error feedback diverges with a codec that amplifies (random_sparse, unbiased). Then the state is reset in time, and
  // what that loses is booked.
  void ForgetIfDiverged() {
    if (feedback_->Norm() < 0x1p100) return;
    for (int64_t i = 0; i < size_; ++i) balance_[i].Subtract(feedback_->dense()[i]);
    const std::string message = feedback_->pending_message();
    feedback_->Reset();
    ASSERT_TRUE(feedback_->Restore(std::vector<float>(size_), "", message).ok());
  }

  // Returns whether anything was ever rounded.
  bool Check() {
    for (int64_t i = 0; i < size_; ++i) {
      balance_[i].Subtract(feedback_->dense()[i]);
      EXPECT_TRUE(balance_[i].IsZero()) << i;
    }
    return rounded_;
  }

 private:
  // `stored` is the float32 of a + b; what that leaves out is computed without error (Knuth's TwoSum).
  void Account(float a, float b, float stored, int64_t i) {
    ASSERT_EQ(a + b, stored) << i;
    const float b_part = stored - a;
    const float lost = (a - (stored - b_part)) + (b - b_part);
    balance_[i].Subtract(lost);
    rounded_ |= lost != 0;
  }

  const int64_t size_;
  const std::unique_ptr<const Codec> codec_;
  const std::unique_ptr<Feedback> feedback_;
  std::vector<ExactSum> balance_;
  bool rounded_ = false;
  Random random_;
};

class ConservationOf : public ::testing::TestWithParam<CodecCase> {};

TEST_P(ConservationOf, HoldsOverAThousandRounds) {
  CodecSpec spec = GetParam().spec;
  spec.feedback = "error_feedback";
  Conservation conservation(spec, MakeLayout({1, 10, 200, 45}));
  for (uint64_t round = 0; round < 1000 && !HasFailure(); ++round) conservation.Round(round);
  conservation.Check();
}

INSTANTIATE_TEST_SUITE_P(Table, ConservationOf, ::testing::ValuesIn(AllCodecCases()),
                         [](const ::testing::TestParamInfo<CodecCase>& info) { return info.param.name; });

TEST(Conservation, IsBitwiseWhereNothingRounds) {
  CodecSpec strom = SparseSpec("strom", 0);
  strom.threshold = 0.0625;
  for (const CodecSpec& spec :
       {SparseSpec("sbc", 0.02, "bf16"), SparseSpec("stc", 0.3, "bf16"), SparseSpec("sbc_or_stc", 0.02, "bf16"),
        SparseSpec("top_k", 0.01), SparseSpec("dgc", 0.01), SparseSpec("random_sparse", 0.1), SparseSpec("bf16", 1),
        SparseSpec("dense", 1), strom}) {
    CodecSpec with = spec;
    with.feedback = "error_feedback";
    Conservation conservation(with, MakeLayout({1, 10, 200, 45}));
    for (uint64_t round = 0; round < 200; ++round) conservation.Round(round);
    EXPECT_FALSE(conservation.Check()) << spec.name;
  }
}

TEST(FeedbackTable, GivesEveryCodecItsOwnAndAnyOther) {
  const Layout layout = MakeLayout({50, 3});
  Random random(3);
  for (const std::string& name : CodecNames()) {
    CodecSpec spec = SparseSpec(name, 0.1);
    const auto codec = *MakeCodec(spec, layout);
    EXPECT_EQ((*MakeFeedback(spec, codec.get()))->name(), *DefaultFeedback(spec));
    for (const std::string& feedback_name : FeedbackNames()) {
      spec.feedback = feedback_name;
      const auto feedback = *MakeFeedback(spec, codec.get());
      EXPECT_EQ(feedback->name(), feedback_name);
      for (uint64_t round = 0; round < 5; ++round) {
        ASSERT_TRUE(Compress(feedback.get(), RandomUpdate(53, &random), round).ok()) << name << " " << feedback_name;
        // A client that restarts from what it stored goes on as if it had not.
        const auto restored = *MakeFeedback(spec, codec.get());
        const std::vector<float> dense(feedback->dense().begin(), feedback->dense().end());
        const std::string message = feedback->pending_message();
        ASSERT_TRUE(feedback->Settle(round != 2).ok());
        ASSERT_TRUE(restored->Restore(dense, round != 2 ? message : "", "").ok());
        EXPECT_EQ(restored->dense(), feedback->dense()) << name << " " << feedback_name;
      }
    }
  }
}

TEST(FeedbackTable, AnUpdateThatIsTakenBackLeavesNoTrace) {
  const Layout layout = MakeLayout({50, 3});
  Random random(5);
  for (const std::string& feedback_name : FeedbackNames()) {
    CodecSpec spec = SparseSpec("sbc", 0.1);
    spec.feedback = feedback_name;
    const auto codec = *MakeCodec(spec, layout);
    const auto feedback = *MakeFeedback(spec, codec.get()), other = *MakeFeedback(spec, codec.get());
    std::vector<float> delta(53);
    EXPECT_EQ(feedback->TakeBack(&delta).code(), absl::StatusCode::kFailedPrecondition);
    for (uint64_t round = 0; round < 5; ++round) {
      const std::vector<float> before(feedback->dense().begin(), feedback->dense().end());
      delta = RandomUpdate(53, &random);
      ASSERT_TRUE(feedback->Compress(&delta, {1, 100 + round, 2}).ok());
      EXPECT_NE(feedback->dense(), before) << feedback_name;
      ASSERT_EQ(feedback->TakeBack(&delta), absl::OkStatus());
      EXPECT_EQ(feedback->dense(), before) << feedback_name;
      EXPECT_FALSE(feedback->pending());
      const std::vector<float> next = RandomUpdate(53, &random);
      EXPECT_EQ(*Compress(feedback.get(), next, round), *Compress(other.get(), next, round)) << feedback_name;
      ASSERT_TRUE(feedback->Settle(round != 2).ok() && other->Settle(round != 2).ok());
      EXPECT_EQ(feedback->dense(), other->dense()) << feedback_name;
    }
  }
}

// A feedback of a model with buffers beside one of the same model without: the parameters fare alike, and the buffers'
// deltas go through unchanged.
class BesideBuffers {
 public:
  explicit BesideBuffers(const CodecSpec& spec)
      : plain_codec_(*MakeCodec(spec, MakeLayout({40, 7}))),
        codec_(*MakeCodec(spec, MakeLayout({40, 7, 3, 5}, /*buffers=*/2))),
        plain_(*MakeFeedback(spec, plain_codec_.get())),
        feedback_(*MakeFeedback(spec, codec_.get())),
        spec_(spec) {}

  void Round(uint64_t round, bool applied) {
    const std::vector<float> delta = RandomUpdate(55, &random_);
    const absl::Span<const float> all(delta);
    const std::string parameters = *Compress(plain_.get(), {all.begin(), all.begin() + 47}, round);
    std::string expected = parameters;
    AppendFloats(all.subspan(47), &expected);
    ASSERT_EQ(*Compress(feedback_.get(), delta, round), expected);
    ExpectRestored(expected, applied);
    ASSERT_TRUE(plain_->Settle(applied).ok());
    ASSERT_TRUE(feedback_->Settle(applied).ok());
    ExpectZeroBuffers(*feedback_);
    for (size_t i = 0; i < plain_->dense().size(); ++i) {
      ASSERT_EQ(feedback_->dense()[i / 47 * 55 + i % 47], plain_->dense()[i]) << i;
    }
  }

 private:
  // A client that restarts from the sealed state, whatever the verdict was, has no residual in its buffers.
  void ExpectRestored(const std::string& message, bool applied) {
    const auto restored = *MakeFeedback(spec_, codec_.get());
    ASSERT_TRUE(restored->Restore(feedback_->dense(), applied ? message : "", "").ok());
    ExpectZeroBuffers(*restored);
  }

  void ExpectZeroBuffers(const Feedback& feedback) {
    for (size_t vector = 0; vector < feedback.dense().size(); vector += 55) {
      EXPECT_THAT(feedback.dense().subspan(vector + 47, 8), Each(0));
    }
  }

  const std::unique_ptr<const Codec> plain_codec_, codec_;
  const std::unique_ptr<Feedback> plain_, feedback_;
  const CodecSpec spec_;
  Random random_{7};
};

TEST(FeedbackTable, HandsBuffersThroughUnchanged) {
  for (const std::string& codec : CodecNames()) {
    for (const std::string& feedback : FeedbackNames()) {
      CodecSpec spec = SparseSpec(codec, 0.1);
      spec.feedback = feedback;
      spec.decay = 0.5;
      spec.momentum = 0.75;
      spec.clip = codec == "terngrad" ? 2.5 : 0.25;
      spec.warmup_rounds = 3;
      spec.sampling_step = 0.01;
      BesideBuffers both(spec);
      for (uint64_t round = 0; round < 6 && !HasFailure(); ++round) {
        SCOPED_TRACE(absl::StrCat(codec, ", ", feedback, ", round ", round));
        both.Round(round, /*applied=*/round % 3 != 1);
      }
    }
  }
}

TEST(FeedbackTable, GivesNoErrorFeedbackToACodecThatAmplifies) {
  CodecSpec spec = SparseSpec("random_sparse", 0.1);
  const Layout layout = MakeLayout({50});
  EXPECT_EQ((*MakeFeedback(spec, MakeCodec(spec, layout)->get()))->name(), "error_feedback");
  spec.code = "unbiased";
  EXPECT_EQ((*MakeFeedback(spec, MakeCodec(spec, layout)->get()))->name(), "none");
}

TEST(FeedbackTable, RefusesBadSettings) {
  CodecSpec spec = SparseSpec("sbc", 0.1);
  const auto codec = *MakeCodec(spec, MakeLayout({4}));
  spec.feedback = "applause";
  EXPECT_THAT(MakeFeedback(spec, codec.get()).status().ToString(), HasSubstr("known feedbacks are error_feedback"));
  spec.feedback = "own";
  spec.decay = 1.5;
  EXPECT_THAT(MakeFeedback(spec, codec.get()).status().ToString(), HasSubstr("codec.decay"));
  spec.decay = 1;
  spec.momentum = -0.5;
  EXPECT_THAT(MakeFeedback(spec, codec.get()).status().ToString(), HasSubstr("codec.momentum"));
}

TEST(NoFeedback, DropsWhatAnAppliedMessageDidNotCarry) {
  CodecSpec spec = SparseSpec("sbc", 0.25);
  spec.feedback = "none";
  const auto codec = *MakeCodec(spec, MakeLayout({4}));
  const auto feedback = *MakeFeedback(spec, codec.get());
  ASSERT_TRUE(Compress(feedback.get(), {1, 8, -2, 0}).ok());
  ASSERT_TRUE(feedback->Settle(false).ok());
  ASSERT_TRUE(Compress(feedback.get(), {1, 0, 0, 0}).ok());
  EXPECT_THAT(feedback->dense(), ElementsAre(2, 8, -2, 0));
  ASSERT_TRUE(feedback->Settle(true).ok());
  EXPECT_THAT(feedback->dense(), Each(0));
}

TEST(Discard, DropsWhatWasNotAppliedToo) {
  CodecSpec spec;
  spec.name = "dense";
  spec.feedback = "discard";
  const auto codec = *MakeCodec(spec, MakeLayout({2}));
  const auto feedback = *MakeFeedback(spec, codec.get());
  EXPECT_FALSE(feedback->folds_forward());
  for (const bool applied : {true, false}) {
    ASSERT_TRUE(Compress(feedback.get(), {3, -4}).ok());
    EXPECT_THAT(feedback->dense(), ElementsAre(3, -4));
    ASSERT_TRUE(feedback->Settle(applied).ok());
    EXPECT_THAT(feedback->dense(), Each(0)) << applied;
  }
  // The stored state of an update that was not applied looks like a residual.
  ASSERT_TRUE(feedback->Restore({3, -4}, "", "").ok());
  EXPECT_THAT(feedback->dense(), Each(0));
  const std::string message = *codec->Encode(std::vector<float>{3, -4});
  ASSERT_TRUE(feedback->Restore({3, -4}, message, "").ok());
  EXPECT_THAT(feedback->dense(), Each(0));
  ASSERT_TRUE(feedback->Restore({3, -4}, "", message).ok());
  EXPECT_THAT(feedback->dense(), ElementsAre(3, -4));
  EXPECT_TRUE(feedback->pending());
}

TEST(MomentumFeedback, EncodesTheMovingAverage) {
  CodecSpec spec = SparseSpec("signum", 0);
  spec.momentum = 0.75;
  const auto codec = *MakeCodec(spec, MakeLayout({2}));
  const auto feedback = *MakeFeedback(spec, codec.get());
  ASSERT_TRUE(Compress(feedback.get(), {4, -8}).ok());
  EXPECT_THAT(feedback->dense(), ElementsAre(1, -2));
  ASSERT_TRUE(feedback->Settle(true).ok());
  ASSERT_TRUE(Compress(feedback.get(), {-8, -8}).ok());
  EXPECT_THAT(feedback->dense(), ElementsAre(-1.25, -3.5));
  EXPECT_THAT(Decode(*codec, feedback->pending_message()), ElementsAre(-1, -1));
}

}  // namespace
}  // namespace terse
