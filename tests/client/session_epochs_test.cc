// The client's session in a run with epochs: which models it holds, and what it computes from them.
#include <memory>
#include <string>
#include <vector>

#include "client/session.h"
#include "compression/downstream_model.h"
#include "compression/run_codecs.h"
#include "core/codec_choices.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/run_store.h"
#include "tests/client/scripted_coordinator.h"
#include "tests/testing/fleet_simulation.h"
#include "tests/testing/temp_directory.h"

namespace terse {
namespace {

using ::testing::HasSubstr;

// The weights and the snapshot that a gradient was taken at.
struct Taken {
  std::vector<float> weights, snapshot;
};

class GradientRecorder : public GridTrainer {
 public:
  GradientRecorder(int64_t client, std::vector<Taken>* taken) : GridTrainer(client), taken_(taken) {}
  absl::StatusOr<TrainResult> Gradient(const GradientPlan& plan, const std::function<bool()>& keep_going,
                                       absl::Span<float> gradient) override {
    taken_->push_back({{plan.weights.begin(), plan.weights.end()}, {plan.snapshot.begin(), plan.snapshot.end()}});
    return GridTrainer::Gradient(plan, keep_going, gradient);
  }

 private:
  std::vector<Taken>* const taken_;
};

RunConfig EpochsOfThree() {
  RunConfig config = GridRunConfig(2, 100);
  config.rounds.buffered = true;
  config.codec = {"low_precision"};
  config.codec.feedback = "discard";
  config.downstream = DownstreamMode::kCoded;
  config.downstream_codec.name = "low_precision";
  config.downstream_codec.bits = 8;
  config.server.name = "svrg";
  config.server.epoch_length = 3;
  return config;
}

Assignment Asked(int64_t round, int64_t base_version, int64_t choice) {
  return {round, base_version, 1, choice, absl::nullopt};
}

class SessionEpochs : public ::testing::Test {
 protected:
  SessionEpochs()
      : config_(std::make_shared<const RunConfig>(EpochsOfThree())),
        updates_(*MakeUpdateCodec(*config_, GridLayout())),
        models_(*MakeDownstreamCodec(*config_, GridLayout())) {
    Restart();
  }

  void Restart() {
    session_.reset();
    state_.reset();
    state_ = *ClientState::Open(directory_.path());
    ClientSession::Options options;
    options.name = "a";
    options.process = {5, ++processes_};
    options.state = state_.get();
    options.make_trainer = [this](const RunConfig&, const Shard& shard,
                                  absl::string_view) -> absl::StatusOr<std::unique_ptr<LocalTrainer>> {
      return std::make_unique<GradientRecorder>(shard.index, &taken_);
    };
    options.clock = &clock_;
    options.keep_going = [] { return true; };
    options.log = [this](LogLevel, const LogFields&, const std::string& line) { log_ += line + "\n"; };
    session_ = std::make_unique<ClientSession>(std::move(options));
  }

  // Joins with version 0, then hears `then`; the connection ends as given.
  ScriptedCoordinator Speak(std::vector<FromServer> then) {
    ScriptedCoordinator link;
    link.download = SerializeCheckpoint({0, HashWeights(Model(0)), Model(0)});
    link.script = {Welcome{lineage_, config_, 1, absl::nullopt, 0}, Resync{0, "nothing held"}};
    link.script.insert(link.script.end(), then.begin(), then.end());
    status_ = session_->Run(&link);
    return link;
  }

  // Return the model that a client holds at a version, and the message that leads to it.
  std::vector<float> Model(int64_t version) const {
    if (version == 0 || version == 1) return GridInitialWeights();
    if (version % 4 == 0) return GridDelta(7, version);
    std::vector<float> held(GridLayout().size()), scratch;
    EXPECT_EQ(ApplyModel({*updates_, models_.get()}, MessageOf(version), {}, &scratch, absl::MakeSpan(held)),
              absl::OkStatus());
    return held;
  }
  std::string MessageOf(int64_t version) const {
    if (version == 1) return BuildSnapshotDownstream();
    if (version % 4 == 0) return BuildModelDownstream(GridDelta(7, version));
    return BuildCodedModelDownstream(*models_->Encode(GridDelta(7, version)));
  }
  Downstream DeltaOf(int64_t version) const {
    return {version, HashWeights(Model(version)), std::make_shared<const std::string>(MessageOf(version))};
  }
  std::string Coded(int64_t step, int64_t choice, uint64_t round) const {
    EncodeOptions options;
    options.choice = choice;
    options.key = {config_->seed, round, 1};
    return *updates_->Encode(GridDelta(1, step), options);
  }
  Verdict VerdictOn(int64_t step, int64_t choice, uint64_t round, Outcome outcome) const {
    const Id128 id = MakeUpdateId(lineage_, static_cast<int64_t>(round), 1, {}, Coded(step, choice, round));
    return {outcome, id, outcome == Outcome::kApplied ? id : Id128{}, ""};
  }

  const Id128 lineage_ = HashBytes("run");
  const std::shared_ptr<const RunConfig> config_;
  const std::unique_ptr<const Codec> updates_, models_;
  TempDirectory directory_;
  FakeClock clock_;
  uint64_t processes_ = 0;
  std::vector<Taken> taken_;
  std::string log_;
  absl::Status status_;
  std::unique_ptr<ClientState> state_;
  std::unique_ptr<ClientSession> session_;
};

TEST_F(SessionEpochs, SendsTheFullGradientWholeAndStepsCoded) {
  ScriptedCoordinator link =
      Speak({Asked(1, 0, kFullGradientChoice), VerdictOn(0, kFullGradientChoice, 1, Outcome::kApplied), DeltaOf(1),
             DeltaOf(3), Asked(4, 3, kGradientStepChoice)});
  EXPECT_TRUE(absl::IsUnavailable(status_)) << status_;
  ASSERT_EQ(link.Said<Update>().size(), 2) << log_;
  EXPECT_EQ(link.Said<Update>()[0].message, Coded(0, kFullGradientChoice, 1));
  EXPECT_EQ(link.Said<Update>()[1].message, Coded(1, kGradientStepChoice, 4));
  ASSERT_EQ(taken_.size(), 2);
  EXPECT_EQ(taken_[0].weights, Model(0));
  EXPECT_TRUE(taken_[0].snapshot.empty());
  EXPECT_EQ(taken_[1].weights, Model(3)) << "version 2 was not needed";
  EXPECT_EQ(taken_[1].snapshot, Model(0));
}

TEST_F(SessionEpochs, GoesOnFromAnySnapshot) {
  ScriptedCoordinator link = Speak({DeltaOf(8), DeltaOf(10), Asked(11, 10, kGradientStepChoice)});
  ASSERT_EQ(link.Said<Update>().size(), 1) << log_;
  EXPECT_EQ(taken_[0].weights, Model(10));
  EXPECT_EQ(taken_[0].snapshot, Model(8));
}

TEST_F(SessionEpochs, AModelOfAnotherEpochEndsTheConnection) {
  (void)Speak({DeltaOf(6)});
  EXPECT_TRUE(absl::IsUnavailable(status_));
  EXPECT_THAT(std::string(status_.message()), HasSubstr("version 6 at version 0"));
}

TEST_F(SessionEpochs, ASnapshotTakesThePlaceOfAResync) {
  Downstream wrong = DeltaOf(2);
  wrong.model_hash = HashBytes("another model");
  ScriptedCoordinator link = Speak({wrong, DeltaOf(2), DeltaOf(4), DeltaOf(5), Asked(6, 5, kGradientStepChoice)});
  ASSERT_EQ(link.Said<Ready>().size(), 3);
  EXPECT_FALSE(link.Said<Ready>()[2].version.has_value());
  ASSERT_EQ(link.Said<Update>().size(), 1) << "not from the version that was refused";
  EXPECT_EQ(taken_[0].snapshot, Model(4));
}

TEST_F(SessionEpochs, WhatWasNotAppliedIsDropped) {
  ScriptedCoordinator link =
      Speak({Asked(1, 0, kFullGradientChoice), VerdictOn(0, kFullGradientChoice, 1, Outcome::kNotApplied),
             Asked(2, 0, kFullGradientChoice)});
  ASSERT_EQ(link.Said<Update>().size(), 2);
  EXPECT_EQ(link.Said<Update>()[1].message, Coded(1, kFullGradientChoice, 2)) << "the second gradient alone";
  EXPECT_THAT(log_, HasSubstr("came too late and is dropped"));
  // Also when the process ended between the verdict and the next gradient.
  Restart();
  ScriptedCoordinator again = Speak({VerdictOn(1, kFullGradientChoice, 2, Outcome::kNotApplied)});
  Restart();
  again = Speak({Asked(3, 0, kFullGradientChoice)});
  EXPECT_EQ(again.Said<Update>().back().message, Coded(2, kFullGradientChoice, 3));
}

TEST_F(SessionEpochs, TheSnapshotIsCachedAcrossProcesses) {
  (void)Speak({DeltaOf(4), DeltaOf(6)});
  ASSERT_EQ(session_->Flush(), absl::OkStatus());
  Restart();
  ScriptedCoordinator again;
  again.script = {Welcome{lineage_, config_, 1, absl::nullopt, 0}, DeltaOf(7), Asked(8, 7, kGradientStepChoice)};
  status_ = session_->Run(&again);
  EXPECT_EQ(again.Said<Ready>().at(0).version, 4);
  EXPECT_EQ(again.Said<Ready>()[0].model_hash, HashWeights(Model(4)));
  ASSERT_EQ(again.Said<Update>().size(), 1);
  EXPECT_EQ(taken_.back().snapshot, Model(4));
}

TEST_F(SessionEpochs, ACheckpointThatIsNoSnapshotIsNotUsed) {
  ScriptedCoordinator link;
  link.download = SerializeCheckpoint({2, HashWeights(Model(2)), Model(2)});
  link.script = {Welcome{lineage_, config_, 1, absl::nullopt, 0}, Resync{2, "x"}};
  status_ = session_->Run(&link);
  EXPECT_TRUE(absl::IsUnavailable(status_));
  EXPECT_THAT(std::string(status_.message()), HasSubstr("no snapshot"));
}

}  // namespace
}  // namespace terse
