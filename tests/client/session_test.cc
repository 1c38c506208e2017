// The client's session engine against a coordinator whose every word the test chooses.
#include "client/session.h"

#include <cmath>

#include "absl/strings/str_replace.h"
#include "compression/aggregate.h"
#include "compression/codec_table.h"
#include "compression/downstream.h"
#include "compression/run_codecs.h"
#include "core/fault.h"
#include "core/norm_code.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/module_file.h"
#include "storage/run_store.h"
#include "tests/client/scripted_coordinator.h"
#include "tests/testing/failing_state.h"
#include "tests/testing/fleet_simulation.h"
#include "tests/testing/temp_directory.h"

namespace terse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Remembers what it was told, a line each.
class RecordingObserver : public SessionObserver {
 public:
  void OnJoined(bool sealed, double residual_norm) override {
    told.push_back(sealed ? "joined, sealed" : "joined");
    norms.push_back(residual_norm);
  }
  void OnVersion(absl::optional<int64_t> version) override { versions.push_back(version.value_or(-1)); }
  void OnSealed(const SealedWork& work) override {
    told.push_back(absl::StrCat("sealed ", work.steps, " steps, ", work.train_us, " us"));
    losses.push_back(work.loss);
  }
  void OnSettled(Outcome outcome, double residual_norm) override {
    told.push_back(outcome == Outcome::kApplied      ? "applied"
                   : outcome == Outcome::kNotApplied ? "not applied"
                                                     : "reset");
    norms.push_back(residual_norm);
  }

  std::vector<std::string> told;
  std::vector<int64_t> versions;
  std::vector<float> losses;
  std::vector<double> norms;
};

// Remembers what it was to do.
class RecordingTrainer : public GridTrainer {
 public:
  RecordingTrainer(int64_t client, bool starts, std::vector<LocalPlan>* plans)
      : GridTrainer(client, GridLayout(), starts), plans_(plans) {}
  absl::StatusOr<TrainResult> Train(absl::Span<const float> weights, const LocalPlan& plan,
                                    const std::function<bool()>& keep_going, absl::Span<float> delta) override {
    plans_->push_back(plan);
    return GridTrainer::Train(weights, plan, keep_going, delta);
  }

 private:
  std::vector<LocalPlan>* const plans_;
};

class Session : public ::testing::Test {
 protected:
  Session()
      : config_(std::make_shared<const RunConfig>(GridRunConfig(2, 10))),
        codec_(*MakeCodec(config_->codec, GridLayout())),
        weights_(GridInitialWeights()) {
    Restart();
  }

  void Restart() {
    session_.reset();
    state_.reset();
    state_ = *ClientState::Open(directory_.path());
    session_ = NewSession(state_.get());
  }
  std::unique_ptr<ClientSession> NewSession(ClientState* state) {
    ClientSession::Options options;
    options.name = "a";
    options.run = "grid";
    options.process = {5, ++processes_};
    options.state = state;
    options.make_trainer = [this](const RunConfig& config, const Shard& shard,
                                  absl::string_view module) -> absl::StatusOr<std::unique_ptr<LocalTrainer>> {
      trained_modules_.emplace_back(module);
      if (!no_trainer_.ok()) return no_trainer_;
      if (make_trainer_) return make_trainer_(shard.index);
      return std::make_unique<RecordingTrainer>(shard.index, makes_start_, &plans_);
    };
    options.allow_models = allow_models_;
    options.clock = &clock_;
    options.keep_going = [this] { return keep_going_; };
    options.log = [this](LogLevel, const LogFields&, const std::string& line) { log_ += line + "\n"; };
    options.observer = &observer_;
    return std::make_unique<ClientSession>(std::move(options));
  }

  Welcome MakeWelcome(absl::optional<Verdict> verdict = absl::nullopt) const {
    return Welcome{lineage_, config_, 1, std::move(verdict), 0};
  }
  std::string CheckpointBytes(int64_t version) const {
    return SerializeCheckpoint({version, HashWeights(weights_), weights_});
  }
  // The downstream message that applies `update` alone, and moves the coordinator's weights.
  Downstream MakeDelta(int64_t version, const std::string& update) {
    std::vector<float> average(weights_.size());
    EXPECT_EQ(AverageUpdates(*codec_, {update}, {}, 1, absl::MakeSpan(average)), absl::OkStatus());
    auto message =
        std::make_shared<const std::string>(BuildDownstream(DownstreamMode::kForward, {update}, {}, average));
    std::vector<float> scratch;
    EXPECT_EQ(ApplyDownstream(*codec_, *message, &scratch, absl::MakeSpan(weights_)), absl::OkStatus());
    return Downstream{version, HashWeights(weights_), message};
  }
  std::string EncodedDelta(int64_t step) const { return *codec_->Encode(GridDelta(1, step)); }
  // A connection on which the client joins and holds version 0.
  ScriptedCoordinator Joining(std::vector<FromServer> then) const {
    ScriptedCoordinator link;
    link.download = CheckpointBytes(0);
    link.script = {MakeWelcome(), Resync{0, "nothing held"}};
    link.script.insert(link.script.end(), then.begin(), then.end());
    return link;
  }

  const Id128 lineage_ = HashBytes("run");
  const std::shared_ptr<const RunConfig> config_;
  const std::unique_ptr<const Codec> codec_;
  std::vector<float> weights_;  // the coordinator's
  TempDirectory directory_;
  FakeClock clock_;
  bool keep_going_ = true;
  bool makes_start_ = false;
  uint64_t processes_ = 0;
  std::function<std::unique_ptr<LocalTrainer>(int64_t client)> make_trainer_;  // empty: RecordingTrainer
  absl::Status no_trainer_;  // the error of every attempt to make a trainer
  std::vector<std::string> allow_models_;
  std::vector<LocalPlan> plans_;              // of every training
  std::vector<std::string> trained_modules_;  // what each trainer was made with
  std::string log_;
  RecordingObserver observer_;
  std::unique_ptr<ClientState> state_;
  std::unique_ptr<ClientSession> session_;
};

TEST_F(Session, JoinsTrainsSealsPushesAndSettles) {
  const Id128 id = MakeUpdateId(lineage_, 1, 1, {}, EncodedDelta(0));
  ScriptedCoordinator link = Joining({Assignment{1, 0, 2}, Receipt{id}});
  EXPECT_TRUE(absl::IsUnavailable(session_->Run(&link)));
  ASSERT_EQ(link.Said<CheckIn>().size(), 1);
  EXPECT_EQ(link.Said<CheckIn>()[0].name, "a");
  EXPECT_TRUE(link.Said<CheckIn>()[0].lineage.IsZero());
  ASSERT_EQ(link.Said<Ready>().size(), 2);
  EXPECT_FALSE(link.Said<Ready>()[0].version.has_value());
  EXPECT_EQ(link.Said<Ready>()[1].version, 0);
  EXPECT_EQ(link.Said<Ready>()[1].model_hash, HashWeights(weights_));
  EXPECT_GT(link.max_downstream_bytes, 4 * GridLayout().size());
  ASSERT_EQ(link.Said<Update>().size(), 1);
  EXPECT_EQ(link.Said<Update>()[0].update_id, id);
  EXPECT_EQ(link.Said<Update>()[0].message, EncodedDelta(0));
  EXPECT_EQ(link.Said<Update>()[0].loss, GridLoss(1, 0));
  // The receipt changed nothing: it is still sealed, and a new process asks for the verdict and sends it again.
  ASSERT_TRUE(state_->state().sealed.has_value());
  Restart();
  ScriptedCoordinator again;
  again.script = {MakeWelcome(Verdict{Outcome::kPending, id, {}, ""}), Verdict{Outcome::kApplied, id, id, ""}};
  EXPECT_TRUE(absl::IsUnavailable(session_->Run(&again)));
  EXPECT_EQ(again.Said<CheckIn>()[0].pending_update_id, id);
  EXPECT_EQ(again.Said<CheckIn>()[0].pending_round, 1);
  ASSERT_EQ(again.Said<Update>().size(), 1);
  EXPECT_EQ(again.Said<Update>()[0].message, EncodedDelta(0));
  EXPECT_FALSE(state_->state().sealed.has_value());
  EXPECT_EQ(state_->state().prev_applied, id);
}

// L2, of the sum of `deltas` without what `message` carries.
double NormOf(const Codec& codec, const std::vector<std::vector<float>>& deltas, const std::string& message) {
  std::vector<float> left(deltas[0].size());
  for (const std::vector<float>& delta : deltas) {
    for (size_t i = 0; i < left.size(); ++i) left[i] += delta[i];
  }
  if (!message.empty()) {
    EXPECT_EQ(codec.AddDecoded(message, -1.0f, absl::MakeSpan(left)), absl::OkStatus());
  }
  double squares = 0;
  for (const float value : left) squares += static_cast<double>(value) * value;
  return std::sqrt(squares);
}

TEST_F(Session, TellsItsObserverWhatBecomesOfItsWork) {
  const Id128 id = MakeUpdateId(lineage_, 1, 1, {}, EncodedDelta(0));
  ScriptedCoordinator link = Joining({Assignment{1, 0, 3}, Verdict{Outcome::kApplied, id, id, ""}});
  link.script.push_back(MakeDelta(1, EncodedDelta(0)));
  EXPECT_TRUE(absl::IsUnavailable(session_->Run(&link)));
  EXPECT_THAT(observer_.told, ElementsAre("joined", "sealed 3 steps, 0 us", "applied"));
  // None before the download; one more for each message after it.
  EXPECT_THAT(observer_.versions, ElementsAre(-1, 0, 0, 0, 1));
  EXPECT_THAT(observer_.losses, ElementsAre(GridLoss(1, 0)));
  const double left = NormOf(*codec_, {GridDelta(1, 0)}, EncodedDelta(0));
  EXPECT_GT(left, 0);
  EXPECT_LT(left, NormOf(*codec_, {GridDelta(1, 0)}, ""));
  ASSERT_EQ(observer_.norms.size(), 2);
  EXPECT_EQ(observer_.norms[0], 0);
  EXPECT_DOUBLE_EQ(observer_.norms[1], left);

  // Another process, whose update comes too late and then is lost.
  observer_ = {};
  Restart();
  ScriptedCoordinator again;
  again.script = {MakeWelcome(), Resync{1, ""}, Assignment{2, 1, 2}};
  again.download = CheckpointBytes(1);
  EXPECT_TRUE(absl::IsUnavailable(session_->Run(&again)));
  const Id128 late = again.Said<Update>().at(0).update_id;
  Restart();
  ScriptedCoordinator third;
  third.script = {MakeWelcome(Verdict{Outcome::kNotApplied, late, {}, ""}), Verdict{Outcome::kPending, late, {}, ""},
                  Verdict{Outcome::kReset, {}, id, "rolled back"}};
  EXPECT_TRUE(absl::IsUnavailable(session_->Run(&third)));
  EXPECT_THAT(observer_.told, ElementsAre("joined", "sealed 2 steps, 0 us", "joined, sealed", "not applied", "reset"));
  const double folded = NormOf(*codec_, {GridDelta(1, 0), GridDelta(1, 1)}, EncodedDelta(0));
  ASSERT_EQ(observer_.norms.size(), 4);
  EXPECT_DOUBLE_EQ(observer_.norms[0], left);
  EXPECT_DOUBLE_EQ(observer_.norms[1], folded);
  EXPECT_DOUBLE_EQ(observer_.norms[2], folded);
  EXPECT_EQ(observer_.norms[3], 0);
}

TEST_F(Session, SaysItsDeviceOnceAConnection) {
  for (int connection = 0; connection < 2; ++connection) {
    ScriptedCoordinator link = Joining({Resync{0, "again"}});
    EXPECT_TRUE(absl::IsUnavailable(session_->Run(&link)));
    const std::vector<Ready> said = link.Said<Ready>();
    ASSERT_GE(said.size(), 3);
    EXPECT_EQ(said[0].device, "grid:1");
    for (size_t i = 1; i < said.size(); ++i) EXPECT_EQ(said[i].device, "") << i;
  }
}

TEST_F(Session, ATrainersDeviceMustBeOneLineForPeople) {
  class Loud : public GridTrainer {
   public:
    using GridTrainer::GridTrainer;
    std::string device() const override { return "cpu\n"; }
  };
  ClientSession::Options options;
  options.name = "a";
  options.state = state_.get();
  options.make_trainer = [](const RunConfig&, const Shard&, absl::string_view) { return std::make_unique<Loud>(0); };
  options.clock = &clock_;
  options.log = [](LogLevel, const LogFields&, const std::string&) {};
  ClientSession session(std::move(options));
  ScriptedCoordinator link = Joining({});
  const absl::Status status = session.Run(&link);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_TRUE(link.Said<Ready>().empty());
}

TEST_F(Session, SaysItsResidualsNormWhereItsCodeHasChanged) {
  ScriptedCoordinator link = Joining({Assignment{1, 0, 1}});
  EXPECT_TRUE(absl::IsUnavailable(session_->Run(&link)));
  ASSERT_EQ(link.Said<Update>().size(), 1);
  EXPECT_EQ(link.Said<Update>()[0].norm_code, NormCode(0)) << "nothing has been trained before";

  // Another connection of this process: said again with the same update, which is then sent a second time. Another
  // process does not know what the residual was before the update that waits.
  const Verdict pending = {Outcome::kPending, link.Said<Update>()[0].update_id, {}, ""};
  for (const bool restarts : {false, true}) {
    if (restarts) Restart();
    ScriptedCoordinator again = Joining({});
    again.script = {MakeWelcome(pending), Resync{0, "again"}};
    EXPECT_TRUE(absl::IsUnavailable(session_->Run(&again)));
    ASSERT_EQ(again.Said<Update>().size(), 2);
    EXPECT_EQ(again.Said<Update>()[0].norm_code, restarts ? absl::nullopt : absl::make_optional(NormCode(0)));
    EXPECT_FALSE(again.Said<Update>()[1].norm_code.has_value()) << restarts;
    EXPECT_EQ(again.Said<Update>()[1].message, EncodedDelta(0));
  }

  // The whole update folds forward, and what is then applied leaves another residual.
  ScriptedCoordinator third = Joining({});
  const Verdict late = {Outcome::kNotApplied, pending.update_id, {}, ""};
  third.script = {MakeWelcome(late), Resync{0, "again"}, Assignment{2, 0, 1}};
  EXPECT_TRUE(absl::IsUnavailable(session_->Run(&third)));
  ASSERT_EQ(third.Said<Update>().size(), 1);
  const Update second = third.Said<Update>()[0];
  const int folded = NormCode(NormOf(*codec_, {GridDelta(1, 0)}, ""));
  EXPECT_EQ(second.norm_code, folded);

  ScriptedCoordinator fourth = Joining({});
  const Verdict applied = {Outcome::kApplied, second.update_id, second.update_id, ""};
  fourth.script = {MakeWelcome(applied), Resync{0, "again"}, Assignment{3, 0, 1}};
  EXPECT_TRUE(absl::IsUnavailable(session_->Run(&fourth)));
  ASSERT_EQ(fourth.Said<Update>().size(), 1);
  const int left = NormCode(NormOf(*codec_, {GridDelta(1, 0), GridDelta(1, 1)}, second.message));
  EXPECT_EQ(fourth.Said<Update>()[0].norm_code, left);
  EXPECT_NE(left, folded);
}

TEST_F(Session, TellsItsObserverNothingOfWhatIsNotStored) {
  FailingState failing(state_.get());
  failing.fail_seal = true;
  session_ = NewSession(&failing);
  ScriptedCoordinator link = Joining({Assignment{1, 0, 2}});
  EXPECT_TRUE(absl::IsResourceExhausted(session_->Run(&link)));
  EXPECT_THAT(observer_.told, ElementsAre("joined"));
  EXPECT_EQ(observer_.versions.back(), -1) << "the session holds nothing any more";
}

TEST_F(Session, TrainsAndCodesAsTheAssignmentSays) {
  RunConfig config = *config_;
  config.control.name = "schedule";
  config.control.density = {0.01, 0.1};
  config.control.at = {1};
  const auto codec = *MakeUpdateCodec(config, GridLayout());
  Welcome welcome = MakeWelcome();
  welcome.config = std::make_shared<const RunConfig>(config);
  ScriptedCoordinator link = Joining({Assignment{1, 0, 3, /*choice=*/1, /*first_iteration=*/17}});
  link.script.front() = welcome;
  EXPECT_TRUE(absl::IsUnavailable(session_->Run(&link)));
  ASSERT_EQ(plans_.size(), 1);
  EXPECT_EQ(plans_[0].steps, 3);
  EXPECT_EQ(plans_[0].first_iteration, 17);
  ASSERT_EQ(link.Said<Update>().size(), 1);
  EncodeOptions options;
  options.choice = 1;
  EXPECT_EQ(link.Said<Update>()[0].message, *codec->Encode(GridDelta(1, 0), options));
}

TEST_F(Session, MakesVersionZeroItselfWhenItIsTheCoordinators) {
  makes_start_ = true;
  const Id128 hash = HashWeights(weights_);
  for (const Id128 start : {hash, HashBytes("other weights"), Id128{}}) {
    Welcome welcome = MakeWelcome();
    welcome.start_hash = start;
    ScriptedCoordinator link;
    link.script = {welcome};
    EXPECT_TRUE(absl::IsUnavailable(session_->Run(&link)));
    ASSERT_EQ(link.Said<Ready>().size(), 1);
    EXPECT_EQ(link.Said<Ready>()[0].version, start == hash ? absl::make_optional<int64_t>(0) : absl::nullopt);
    EXPECT_EQ(link.Said<Ready>()[0].model_hash, start == hash ? hash : Id128{});
    Restart();
  }
}

TEST_F(Session, TellsItsProcessAndCountsItsConnections) {
  for (const uint64_t process : {1, 2}) {
    for (const uint32_t connection : {1, 2}) {
      ScriptedCoordinator link = Joining({});
      EXPECT_TRUE(absl::IsUnavailable(session_->Run(&link)));
      EXPECT_EQ(link.Said<CheckIn>().at(0).process, (Id128{5, process}));
      EXPECT_EQ(link.Said<CheckIn>()[0].connection, connection);
    }
    Restart();
  }
}

TEST_F(Session, TellsItsRunAndItsSamples) {
  ScriptedCoordinator link = Joining({});
  EXPECT_TRUE(absl::IsUnavailable(session_->Run(&link)));
  EXPECT_EQ(link.Said<CheckIn>().at(0).run, "grid");
  EXPECT_EQ(link.Said<Ready>().at(1).samples, GridSamples(1));
}

TEST_F(Session, WorkThatWasNotAppliedFoldsForward) {
  const Id128 id = MakeUpdateId(lineage_, 1, 1, {}, EncodedDelta(0));
  ScriptedCoordinator link =
      Joining({Assignment{1, 0, 2}, Verdict{Outcome::kNotApplied, id, {}, ""}, Assignment{2, 0, 2}});
  EXPECT_TRUE(absl::IsUnavailable(session_->Run(&link)));
  ASSERT_EQ(link.Said<Update>().size(), 2);
  std::vector<float> both = GridDelta(1, 0);
  const std::vector<float> second = GridDelta(1, 1);
  for (size_t i = 0; i < both.size(); ++i) both[i] += second[i];
  EXPECT_EQ(link.Said<Update>()[1].message, *codec_->Encode(both));
  EXPECT_EQ(state_->Read()->dense, both);
}

TEST_F(Session, NoNewWorkWhileSealed) {
  ScriptedCoordinator link = Joining({Assignment{1, 0, 2}, Assignment{2, 0, 2}});
  EXPECT_TRUE(absl::IsUnavailable(session_->Run(&link)));
  EXPECT_EQ(link.Said<Update>().size(), 1);
  EXPECT_EQ(state_->state().generation, 1);
}

TEST_F(Session, NoWorkOnAnotherVersion) {
  ScriptedCoordinator link = Joining({Assignment{1, 3, 2}});
  EXPECT_TRUE(absl::IsUnavailable(session_->Run(&link)));
  EXPECT_EQ(link.Said<Update>().size(), 0);
}

TEST_F(Session, VerdictsAboutOtherUpdatesChangeNothing) {
  ScriptedCoordinator link = Joining({Verdict{Outcome::kApplied, HashBytes("x"), {}, ""}, Assignment{1, 0, 2},
                                      Verdict{Outcome::kApplied, HashBytes("x"), {}, ""},
                                      Verdict{Outcome::kNotApplied, HashBytes("y"), {}, ""}, Receipt{HashBytes("x")}});
  EXPECT_TRUE(absl::IsUnavailable(session_->Run(&link)));
  EXPECT_TRUE(state_->state().sealed.has_value());
  EXPECT_TRUE(state_->state().prev_applied.IsZero());
}

TEST_F(Session, AConnectionThatBreaksBeforeThePushLosesNothing) {
  ScriptedCoordinator link = Joining({Assignment{1, 0, 2}});
  link.lose_after_assignment = true;
  EXPECT_TRUE(absl::IsUnavailable(session_->Run(&link)));
  EXPECT_TRUE(link.Said<Update>().empty());
  ASSERT_TRUE(state_->state().sealed.has_value());
  ScriptedCoordinator again;
  again.script = {MakeWelcome(Verdict{Outcome::kNotApplied, state_->state().sealed->update_id, {}, ""})};
  EXPECT_TRUE(absl::IsUnavailable(session_->Run(&again)));
  EXPECT_EQ(state_->Read()->dense, GridDelta(1, 0));
  EXPECT_FALSE(state_->state().sealed.has_value());
}

TEST_F(Session, ResetDropsTheResidual) {
  const Id128 truth = HashBytes("what the coordinator applied last");
  const Id128 id = MakeUpdateId(lineage_, 1, 1, {}, EncodedDelta(0));
  ScriptedCoordinator link = Joining({Assignment{1, 0, 2}, Verdict{Outcome::kReset, id, truth, "rolled back"}});
  EXPECT_TRUE(absl::IsUnavailable(session_->Run(&link)));
  EXPECT_FALSE(state_->state().has_dense);
  EXPECT_FALSE(state_->state().sealed.has_value());
  EXPECT_EQ(state_->state().prev_applied, truth);
  EXPECT_THAT(log_, HasSubstr("rolled back"));
}

// The coordinator refuses an update when it closes the round, and once more when the client sends that update again.
TEST_F(Session, ASecondResetForOneUpdateSparesWhatFollowedTheFirst) {
  const Id128 id = MakeUpdateId(lineage_, 1, 1, {}, EncodedDelta(0));
  const Verdict refused = {Outcome::kReset, id, {}, "its update was refused"};
  ScriptedCoordinator link = Joining({Assignment{1, 0, 2}, refused, Assignment{2, 0, 2}, refused});
  EXPECT_TRUE(absl::IsUnavailable(session_->Run(&link)));
  ASSERT_TRUE(state_->state().sealed.has_value()) << "the second RESET took the update of round 2 along";
  EXPECT_EQ(state_->state().sealed->round, 2);
  EXPECT_EQ(state_->Read()->dense, GridDelta(1, 1));
  // One that names no update speaks of a client that had none sealed when it checked in.
  ScriptedCoordinator again;
  again.script = {MakeWelcome(Verdict{Outcome::kReset, {}, {}, "rolled back"})};
  EXPECT_TRUE(absl::IsUnavailable(session_->Run(&again)));
  EXPECT_TRUE(state_->state().sealed.has_value());
}

TEST_F(Session, DeltasApplyInOrderAndRepeatsAreIgnored) {
  const Downstream first = MakeDelta(1, EncodedDelta(5));
  const Downstream second = MakeDelta(2, EncodedDelta(6));
  ScriptedCoordinator link;
  link.download = SerializeCheckpoint({0, HashWeights(GridInitialWeights()), GridInitialWeights()});
  link.script = {MakeWelcome(), Resync{0, ""}, first, first, second, first, Assignment{3, 2, 2}};
  EXPECT_TRUE(absl::IsUnavailable(session_->Run(&link)));
  EXPECT_EQ(link.Said<Update>().size(), 1);  // it stands at version 2
}

TEST_F(Session, AGapInTheDeltasEndsTheConnection) {
  ScriptedCoordinator link = Joining({});
  (void)MakeDelta(1, EncodedDelta(5));
  link.script.push_back(MakeDelta(2, EncodedDelta(6)));
  const absl::Status status = session_->Run(&link);
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("version 2"));
}

TEST_F(Session, ADeltaThatDoesNotFitLeadsToAFullResync) {
  Downstream wrong_hash = MakeDelta(1, EncodedDelta(5));
  wrong_hash.model_hash = HashBytes("another model");
  const Downstream garbage{1, HashBytes("x"), std::make_shared<const std::string>("garbage")};
  for (const Downstream& bad : {wrong_hash, garbage}) {
    Restart();
    ScriptedCoordinator link;
    link.download = CheckpointBytes(0);
    link.script = {MakeWelcome(), Resync{0, ""}, bad, Assignment{2, 1, 2}};
    EXPECT_TRUE(absl::IsUnavailable(session_->Run(&link)));
    ASSERT_EQ(link.Said<Ready>().size(), 3);
    EXPECT_FALSE(link.Said<Ready>()[2].version.has_value());
    EXPECT_TRUE(link.Said<Update>().empty());  // never trains on weights that it does not trust
  }
}

TEST_F(Session, ACheckpointThatIsNotWholeIsNotUsed) {
  for (const std::string& bytes : {CheckpointBytes(0).substr(1), CheckpointBytes(0) + "x", std::string(),
                                   SerializeCheckpoint({0, HashWeights(std::vector<float>{1}), {1}})}) {
    Restart();
    ScriptedCoordinator link = Joining({Assignment{1, 0, 2}});
    link.download = bytes;
    EXPECT_TRUE(absl::IsUnavailable(session_->Run(&link)));
    EXPECT_EQ(link.Said<Ready>().size(), 1);
    EXPECT_TRUE(link.Said<Update>().empty());
  }
}

TEST_F(Session, AReplacedCheckpointIsAskedForAgain) {
  ScriptedCoordinator link = Joining({});
  link.download = absl::NotFoundError("replaced");
  EXPECT_TRUE(absl::IsUnavailable(session_->Run(&link)));
  EXPECT_EQ(link.Said<Ready>().size(), 2);
  EXPECT_FALSE(link.Said<Ready>()[1].version.has_value());
}

TEST_F(Session, TheModelIsCachedAcrossProcesses) {
  ScriptedCoordinator link = Joining({});
  EXPECT_TRUE(absl::IsUnavailable(session_->Run(&link)));
  ASSERT_EQ(session_->Flush(), absl::OkStatus());
  Restart();
  ScriptedCoordinator again;
  again.script = {MakeWelcome()};
  EXPECT_TRUE(absl::IsUnavailable(session_->Run(&again)));
  EXPECT_EQ(again.Said<Ready>().at(0).version, 0);
}

// A process that dies has no orderly end at which to store its model.
TEST_F(Session, TheModelIsStoredWhileTheRunGoesOn) {
  const auto held_by_the_next_process = [this] {
    Restart();
    ScriptedCoordinator link;
    link.script = {MakeWelcome()};
    EXPECT_TRUE(absl::IsUnavailable(session_->Run(&link)));
    return link.Said<Ready>().at(0).version;
  };
  ScriptedCoordinator downloads = Joining({});
  EXPECT_TRUE(absl::IsUnavailable(session_->Run(&downloads)));
  EXPECT_EQ(held_by_the_next_process(), absl::optional<int64_t>(0)) << "it cost a download";
  // Then at most once a minute.
  ScriptedCoordinator soon;
  soon.script = {MakeWelcome(), MakeDelta(1, EncodedDelta(5))};
  const std::vector<float> version_1 = weights_;
  EXPECT_TRUE(absl::IsUnavailable(session_->Run(&soon)));
  clock_.Advance(61);
  ScriptedCoordinator later;
  later.script = {MakeWelcome(), MakeDelta(2, EncodedDelta(6))};
  EXPECT_TRUE(absl::IsUnavailable(session_->Run(&later)));
  EXPECT_EQ(state_->LoadModel()->weights, version_1) << "when it is due, the welcome is heard first";
  EXPECT_EQ(held_by_the_next_process(), absl::optional<int64_t>(1));
}

TEST_F(Session, EndsAsTheCoordinatorSays) {
  ScriptedCoordinator final_refusal, retry, finished;
  final_refusal.script = {Refusal{"go away", false}};
  retry.script = {Refusal{"later", true}};
  finished.script = {MakeWelcome(), Finished{"all rounds are done"}};
  const absl::Status refused = session_->Run(&final_refusal);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused));
  EXPECT_EQ(refused.message(), "go away");
  EXPECT_FALSE(session_->joined());
  EXPECT_EQ(session_->Run(&finished), absl::OkStatus());
  EXPECT_EQ(finished.Said<Leaving>().size(), 1);
  EXPECT_TRUE(session_->joined());
  EXPECT_TRUE(absl::IsUnavailable(session_->Run(&retry)));
  EXPECT_FALSE(session_->joined()) << "that was another connection";
}

// Fails as the code of users does.
class FailingTrainer : public GridTrainer {
 public:
  FailingTrainer(int64_t client, absl::Status why) : GridTrainer(client), why_(std::move(why)) {}
  absl::StatusOr<TrainResult> Train(absl::Span<const float>, const LocalPlan&, const std::function<bool()>&,
                                    absl::Span<float>) override {
    return why_;
  }

 private:
  const absl::Status why_;
};

TEST_F(Session, SaysWhyItLeaves) {
  std::string long_text = "x";
  while (long_text.size() < 2 * kMostReasonBytes) long_text += "\xc3\xa4";  // of two bytes each
  const struct {
    absl::Status why;
    std::string said;
  } cases[] = {{absl::InternalError("training diverged"), "training diverged"},
               {absl::UnavailableError("the trainer was ended by signal 9"), "the trainer was ended by signal 9"},
               {absl::InternalError("line 1\nline 2 \xff"), "line 1\\nline 2 \xef\xbf\xbd"},
               {absl::DataLossError(""), "DATA_LOSS"},
               {absl::InternalError(long_text), long_text.substr(0, kMostReasonBytes - 1)}};
  for (const auto& c : cases) {
    make_trainer_ = [&c](int64_t client) { return std::make_unique<FailingTrainer>(client, c.why); };
    Restart();
    ScriptedCoordinator link = Joining({Assignment{1, 0, 1}});
    EXPECT_EQ(session_->Run(&link), c.why);
    ASSERT_EQ(link.Said<Leaving>().size(), 1);
    EXPECT_EQ(link.Said<Leaving>()[0].reason, c.said);
    EXPECT_TRUE(session_->said_why());
  }
  // Neither a lost connection nor a refusal is a reason that the coordinator does not know.
  for (const std::vector<FromServer>& then : {std::vector<FromServer>{}, {Refusal{"later", true}}}) {
    make_trainer_ = nullptr;
    Restart();
    ScriptedCoordinator link = Joining(then);
    EXPECT_TRUE(absl::IsUnavailable(session_->Run(&link)));
    EXPECT_TRUE(link.Said<Leaving>().empty());
    EXPECT_FALSE(session_->said_why());
  }
}

TEST_F(Session, ItsDataStayOutOfTheReason) {
  no_trainer_ = absl::InvalidArgumentError("/data/train.csv, line 2: 'Anna Smith' in column 'name' is not a number");
  Restart();
  ScriptedCoordinator link = Joining({});
  EXPECT_EQ(session_->Run(&link).message(), no_trainer_.message());
  ASSERT_EQ(link.Said<Leaving>().size(), 1);
  EXPECT_EQ(link.Said<Leaving>()[0].reason, "its trainer refused the run or its data; its own log says why");
}

TEST_F(Session, SaysOnceThatItIsConnectedAgain) {
  ScriptedCoordinator first = Joining({});
  EXPECT_TRUE(absl::IsUnavailable(session_->Run(&first)));
  EXPECT_THAT(log_, Not(HasSubstr("connected again")));
  clock_.Advance(3);
  ScriptedCoordinator nobody;
  EXPECT_TRUE(absl::IsUnavailable(session_->Run(&nobody)));
  EXPECT_THAT(log_, Not(HasSubstr("connected again")));
  clock_.Advance(4.5);
  ScriptedCoordinator again;
  again.script = {MakeWelcome(), MakeWelcome()};
  EXPECT_TRUE(absl::IsUnavailable(session_->Run(&again)));
  EXPECT_THAT(log_, HasSubstr("connected again after 7.5 s\n"));
  EXPECT_EQ(log_.find("connected again"), log_.rfind("connected again"));
}

TEST_F(Session, LeavesWhatItKeptOfAnEarlierRunBehind) {
  ScriptedCoordinator link = Joining({Assignment{1, 0, 1}});
  EXPECT_TRUE(absl::IsUnavailable(session_->Run(&link)));
  Restart();
  log_.clear();
  ScriptedCoordinator other;
  other.script = {Welcome{HashBytes("another run"), config_, 1, absl::nullopt, 0}};
  EXPECT_TRUE(absl::IsUnavailable(session_->Run(&other)));
  EXPECT_THAT(log_, HasSubstr("is another one than before"));
  EXPECT_THAT(log_, Not(HasSubstr("lost")));
  EXPECT_TRUE(other.Said<Update>().empty());
}

TEST_F(Session, ACoordinatorThatSpeaksBeforeItsWelcomeIsLeft) {
  for (const FromServer& message :
       std::vector<FromServer>{Resync{0, ""}, Assignment{1, 0, 1}, Receipt{}, Verdict{Outcome::kReset, {}, {}, ""},
                               Downstream{1, {}, std::make_shared<const std::string>("x")}}) {
    ScriptedCoordinator link;
    link.script = {message};
    EXPECT_TRUE(absl::IsUnavailable(session_->Run(&link)));
  }
  EXPECT_TRUE(state_->state().lineage.IsZero());
}

TEST_F(Session, AStoppedTrainingIsForgotten) {
  ScriptedCoordinator link = Joining({Assignment{1, 0, 2}});
  keep_going_ = false;
  EXPECT_TRUE(absl::IsCancelled(session_->Run(&link)));
  EXPECT_EQ(state_->state().generation, 0);
  keep_going_ = true;
  ScriptedCoordinator again = Joining({Assignment{1, 0, 2}});
  EXPECT_TRUE(absl::IsUnavailable(session_->Run(&again)));
  EXPECT_EQ(again.Said<Update>().at(0).message, EncodedDelta(0));
}

TEST_F(Session, AFailingDiskIsFinal) {
  FailingState failing(state_.get());
  failing.fail_seal = true;
  session_ = NewSession(&failing);
  ScriptedCoordinator link = Joining({Assignment{1, 0, 2}});
  const absl::Status status = session_->Run(&link);
  EXPECT_FALSE(absl::IsUnavailable(status)) << "connecting again cannot help";
  EXPECT_THAT(std::string(status.message()), HasSubstr("check the disk"));
  EXPECT_TRUE(link.Said<Update>().empty());
}

TEST_F(Session, AStateThatCannotBeReadDoesNotCountAsEmpty) {
  ScriptedCoordinator first = Joining({Assignment{1, 0, 2}});
  EXPECT_TRUE(absl::IsUnavailable(session_->Run(&first)));
  EXPECT_EQ(session_->Flush(), absl::OkStatus());
  Restart();
  FailingState failing(state_.get());
  failing.fail_read = true;
  session_ = NewSession(&failing);
  const Verdict late = {Outcome::kNotApplied, first.Said<Update>().at(0).update_id, {}, ""};
  ScriptedCoordinator link = Joining({});
  link.script.front() = MakeWelcome(late);
  EXPECT_TRUE(absl::IsResourceExhausted(session_->Run(&link))) << "connecting again cannot help";
  EXPECT_TRUE(link.Said<Ready>().empty());
  failing.fail_read = false;
  ScriptedCoordinator again;
  again.script = {MakeWelcome(late), Assignment{2, 0, 2}};
  EXPECT_TRUE(absl::IsUnavailable(session_->Run(&again)));
  ASSERT_EQ(again.Said<Update>().size(), 1);
  const std::vector<float> before = GridDelta(1, 0), after = GridDelta(1, 1), dense = state_->Read()->dense;
  ASSERT_EQ(dense.size(), before.size());
  for (size_t i = 0; i < dense.size(); ++i) EXPECT_EQ(dense[i], before[i] + after[i]) << i;
}

TEST_F(Session, AnotherRunStartsAfresh) {
  ScriptedCoordinator link = Joining({Assignment{1, 0, 2}});
  EXPECT_TRUE(absl::IsUnavailable(session_->Run(&link)));
  ScriptedCoordinator other = Joining({Assignment{1, 0, 2}});
  std::get<Welcome>(other.script.front()).lineage = HashBytes("another run");
  EXPECT_TRUE(absl::IsUnavailable(session_->Run(&other)));
  EXPECT_EQ(state_->state().lineage, HashBytes("another run"));
  EXPECT_EQ(state_->state().generation, 1);
  EXPECT_EQ(other.Said<Update>().at(0).message, EncodedDelta(0));
}

#ifdef TERSE_FAULTS

// Fails at one failpoint, at its first pass.
class FailAt : public FailpointHook {
 public:
  explicit FailAt(absl::string_view name) : name_(name) { SetThreadFailpointHook(this); }
  ~FailAt() override { SetThreadFailpointHook(nullptr); }
  absl::Status OnFailpoint(absl::string_view name) override {
    if (name != name_ || failed) return absl::OkStatus();
    failed = true;
    return absl::UnavailableError("the test failed here");
  }
  bool failed = false;

 private:
  const std::string name_;
};

// A step that fails ends the connection; whatever it was, the next ones bring the same update into the model, once.
class SessionFailpoint : public Session, public ::testing::WithParamInterface<const char*> {};

TEST_P(SessionFailpoint, ChangesNothingThatCounts) {
  const Id128 id = MakeUpdateId(lineage_, 1, 1, {}, EncodedDelta(0));
  const Downstream delta = MakeDelta(1, EncodedDelta(5));
  weights_ = GridInitialWeights();
  FailAt failing(GetParam());
  for (int connection = 0; connection < 3 && state_->state().prev_applied != id; ++connection) {
    ScriptedCoordinator link =
        Joining({Assignment{1, 0, 2}, Receipt{id}, delta, Verdict{Outcome::kApplied, id, id, ""}});
    if (state_->state().sealed.has_value()) {
      std::get<Welcome>(link.script.front()).verdict = Verdict{Outcome::kPending, id, {}, ""};
    }
    EXPECT_TRUE(absl::IsUnavailable(session_->Run(&link)));
    for (const Update& update : link.Said<Update>()) EXPECT_EQ(update.update_id, id);
  }
  EXPECT_TRUE(failing.failed);
  EXPECT_EQ(state_->state().prev_applied, id);
  EXPECT_EQ(state_->state().generation, 1);
  EXPECT_EQ(state_->Read()->dense, GridDelta(1, 0));
}

INSTANTIATE_TEST_SUITE_P(Client, SessionFailpoint,
                         ::testing::Values("client.checkin.before_send", "client.welcome.received",
                                           "client.resync.downloaded", "client.delta.before_apply",
                                           "client.delta.applied", "client.assignment.received", "client.train.done",
                                           "client.upload.before_send", "client.upload.sent", "client.receipt.received",
                                           "client.verdict.received"),
                         [](const ::testing::TestParamInfo<const char*>& info) {
                           return absl::StrReplaceAll(info.param, {{".", "_"}});
                         });

// The mutants do what their names say; that the invariants notice is shown elsewhere.
class Mutants : public Session {
 protected:
  ~Mutants() override { SetMutant(Mutant::kNone); }
};

TEST_F(Mutants, SettleOnReceiptTakesTheReceiptForTheVerdict) {
  const Id128 id = MakeUpdateId(lineage_, 1, 1, {}, EncodedDelta(0));
  SetMutant(Mutant::kSettleOnReceipt);
  ScriptedCoordinator link = Joining({Assignment{1, 0, 2}, Receipt{id}});
  EXPECT_TRUE(absl::IsUnavailable(session_->Run(&link)));
  EXPECT_FALSE(state_->state().sealed.has_value());
  EXPECT_EQ(state_->state().prev_applied, id);
}

TEST_F(Mutants, TimeoutIsRejectTakesALostConnectionForTheVerdict) {
  SetMutant(Mutant::kTimeoutIsReject);
  ScriptedCoordinator link = Joining({Assignment{1, 0, 2}});
  EXPECT_TRUE(absl::IsUnavailable(session_->Run(&link)));
  EXPECT_FALSE(state_->state().sealed.has_value());
  EXPECT_TRUE(state_->state().prev_applied.IsZero());
}

#endif  // TERSE_FAULTS

// A run whose model is a TorchScript file.
class ModuleSession : public Session {
 protected:
  ModuleSession() {
    RunConfig config = *config_;
    config.model.name = std::string(kTorchScriptModel);
    config.model.hash = ModuleHash(kModule);
    module_config_ = std::make_shared<const RunConfig>(std::move(config));
  }
  // A process that trains these modules joins; how its session ended.
  absl::Status JoinWith(std::vector<std::string> allow_models, absl::StatusOr<std::string> module) {
    allow_models_ = std::move(allow_models);
    Restart();
    Welcome welcome = MakeWelcome();
    welcome.config = module_config_;
    ScriptedCoordinator link;
    link.module = std::move(module);
    link.script = {welcome};
    const absl::Status ended = session_->Run(&link);
    said_ready_ = !link.Said<Ready>().empty();
    downloads_ = link.module_downloads;
    return ended;
  }

  static constexpr char kModule[] = "a module";
  std::shared_ptr<const RunConfig> module_config_;
  bool said_ready_ = false;
  int downloads_ = 0;
};

TEST_F(ModuleSession, RefusesAModuleThatNobodyAllowed) {
  for (const std::vector<std::string>& allowed : {std::vector<std::string>(), {ModuleHash("another")}}) {
    const absl::Status refused = JoinWith(allowed, std::string(kModule));
    EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(refused.message()), HasSubstr("--allow-model " + ModuleHash(kModule)));
    EXPECT_EQ(downloads_, 0);
  }
  EXPECT_TRUE(state_->state().lineage.IsZero());
  EXPECT_TRUE(trained_modules_.empty());
}

TEST_F(ModuleSession, DownloadsItOnceAndKeepsIt) {
  EXPECT_TRUE(absl::IsUnavailable(JoinWith({ModuleHash("another"), ModuleHash(kModule)}, std::string(kModule))));
  EXPECT_TRUE(said_ready_);
  EXPECT_EQ(downloads_, 1);
  EXPECT_TRUE(absl::IsUnavailable(JoinWith({ModuleHash(kModule)}, absl::NotFoundError("none"))));
  EXPECT_TRUE(said_ready_);
  EXPECT_EQ(downloads_, 0);
  EXPECT_THAT(trained_modules_, ::testing::ElementsAre(kModule, kModule));
}

TEST_F(ModuleSession, WhatItKeptIsStillForAllowedModulesOnly) {
  EXPECT_TRUE(absl::IsUnavailable(JoinWith({ModuleHash(kModule)}, std::string(kModule))));
  EXPECT_TRUE(absl::IsFailedPrecondition(JoinWith({}, std::string(kModule))));
  EXPECT_FALSE(said_ready_);
}

TEST_F(ModuleSession, OtherBytesAreNeitherTrainedNorKept) {
  const absl::Status wrong = JoinWith({ModuleHash(kModule)}, std::string("other bytes"));
  EXPECT_TRUE(absl::IsUnavailable(wrong));
  EXPECT_THAT(std::string(wrong.message()), HasSubstr(ModuleHash(kModule)));
  EXPECT_FALSE(said_ready_);
  EXPECT_TRUE(trained_modules_.empty());
  EXPECT_FALSE(state_->LoadModule(module_config_->model).has_value());
}

TEST_F(ModuleSession, ADamagedCopyIsDownloadedAgain) {
  EXPECT_TRUE(absl::IsUnavailable(JoinWith({ModuleHash(kModule)}, std::string(kModule))));
  ASSERT_TRUE(state_->SaveModule("a mutule").ok());
  EXPECT_TRUE(absl::IsUnavailable(JoinWith({ModuleHash(kModule)}, std::string(kModule))));
  EXPECT_EQ(downloads_, 1);
  EXPECT_THAT(trained_modules_, ::testing::ElementsAre(kModule, kModule));
}

TEST_F(ModuleSession, ADownloadThatFailsSaysWhetherTryingAgainHelps) {
  EXPECT_TRUE(absl::IsUnavailable(JoinWith({ModuleHash(kModule)}, absl::UnavailableError("the connection broke"))));
  EXPECT_TRUE(absl::IsNotFound(JoinWith({ModuleHash(kModule)}, absl::NotFoundError("none"))));
  EXPECT_FALSE(said_ready_);
}

}  // namespace
}  // namespace terse
