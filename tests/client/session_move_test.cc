// A client between two coordinators of one root: relays, or a relay and the root.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/session.h"
#include "compression/aggregate.h"
#include "compression/codec_table.h"
#include "compression/downstream.h"
#include "compression/update_history.h"
#include "core/fault.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/run_store.h"
#include "tests/client/scripted_coordinator.h"
#include "tests/testing/failing_state.h"
#include "tests/testing/fleet_simulation.h"
#include "tests/testing/temp_directory.h"

namespace terse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const Id128 kFamily = HashBytes("the root");
const Id128 kHome = HashBytes("one relay");
const Id128 kOther = HashBytes("another relay");

class CohortTrainer : public GridTrainer {
 public:
  using GridTrainer::GridTrainer;
  absl::StatusOr<TrainResult> Train(absl::Span<const float> weights, const LocalPlan& plan,
                                    const std::function<bool()>& keep_going, absl::Span<float> delta) override {
    absl::StatusOr<TrainResult> result = GridTrainer::Train(weights, plan, keep_going, delta);
    if (result.ok()) result->cohort = {5, 1000};
    return result;
  }
};

// Where the client's process ends between its connections, its state comes from the disk.
enum class Process { kGoesOn, kEndsInOrder, kDies };

class Moving : public ::testing::TestWithParam<Process> {
 protected:
  Moving() { Configure({"sbc", 0.02, "bf16"}); }

  void Configure(const CodecSpec& codec, Durability durability = Durability::kStrict) {
    RunConfig config = GridRunConfig(2, 10);
    config.codec = codec;
    config.durability = durability;
    config_ = std::make_shared<const RunConfig>(config);
    codec_ = *MakeCodec(config_->codec, GridLayout());
    Open();
  }
  void Open() {
    session_.reset();
    state_.reset();
    state_ = *ClientState::Open(directory_.path());
    session_ = NewSession(state_.get());
  }
  void BetweenConnections() {
    if (GetParam() == Process::kGoesOn) return;
    if (GetParam() == Process::kEndsInOrder) {
      EXPECT_EQ(session_->Flush(), absl::OkStatus());
    }
    Open();
  }
  std::unique_ptr<ClientSession> NewSession(ClientState* state) {
    ClientSession::Options options;
    options.name = "a";
    options.process = {5, 5};
    options.state = state;
    options.make_trainer = [this](const RunConfig&, const Shard& shard,
                                  absl::string_view) -> absl::StatusOr<std::unique_ptr<LocalTrainer>> {
      shards_.push_back(shard.index);
      return std::unique_ptr<LocalTrainer>(std::make_unique<CohortTrainer>(shard.index, GridLayout(), true));
    };
    options.clock = &clock_;
    options.keep_going = [] { return true; };
    options.log = [this](LogLevel level, const LogFields&, const std::string& line) {
      log_ += absl::StrCat(level == LogLevel::kWarn ? "warning: " : "", line, "\n");
    };
    return std::make_unique<ClientSession>(std::move(options));
  }

  // Both coordinators give the client the same shard; its index among their clients is its own in each.
  Welcome WelcomeOf(Id128 lineage, absl::optional<Verdict> verdict = absl::nullopt) const {
    Welcome welcome = {lineage, config_, lineage == kHome ? 1 : 0, std::move(verdict), 0};
    welcome.family = kFamily;
    welcome.shards = ShardRange{1, 1};
    welcome.start_hash = HashWeights(GridInitialWeights());
    return welcome;
  }
  // A connection that ends after these messages.
  ScriptedCoordinator Speak(std::vector<FromServer> messages, ClientSession* session = nullptr) {
    ScriptedCoordinator link;
    link.script.assign(messages.begin(), messages.end());
    last_ = (session == nullptr ? session_.get() : session)->Run(&link);
    return link;
  }
  // A connection to a coordinator at which the client seals an update; returns it.
  SealedUpdate SealAt(Id128 lineage, int64_t round = 1) {
    Speak({WelcomeOf(lineage), Assignment{round, 0, 2}});
    EXPECT_TRUE(state_->state().sealed.has_value());
    return state_->state().sealed.value_or(SealedUpdate{});
  }
  void NoteApplied(const SealedUpdate& update) { applied_.push_back(update.message); }

  void AddDecoded(const std::string& message, float sign, std::vector<float>* sum) const {
    EXPECT_EQ(codec_->AddDecoded(message, sign, absl::MakeSpan(*sum)), absl::OkStatus());
  }
  // Applied updates of all lineages + what is parted with + the residual == what was sealed, bit for bit.
  void ExpectConserved() const {
    const StoredState stored = *state_->Read();
    std::vector<float> have = stored.dense, want(GridLayout().size());
    have.resize(want.size());
    if (!stored.minus.empty()) AddDecoded(stored.minus, -1, &have);
    for (const std::string& message : applied_) AddDecoded(message, 1, &have);
    for (const PartedLineage& one : stored.parted) {
      if (one.sealed.has_value()) AddDecoded(one.sealed->message, 1, &have);
    }
    for (int64_t step = 0; step < stored.generation; ++step) {
      const std::vector<float> delta = GridDelta(1, step);
      for (size_t i = 0; i < want.size(); ++i) want[i] += delta[i];
    }
    EXPECT_EQ(have, want);
  }

  std::shared_ptr<const RunConfig> config_;
  std::unique_ptr<const Codec> codec_;
  TempDirectory directory_;
  FakeClock clock_;
  std::vector<int64_t> shards_;       // of every trainer
  std::vector<std::string> applied_;  // by some coordinator
  std::string log_;
  absl::Status last_;
  std::unique_ptr<ClientState> state_;
  std::unique_ptr<ClientSession> session_;
};

TEST_P(Moving, TakesItsResidualAlong) {
  const SealedUpdate first = SealAt(kHome);
  EXPECT_EQ(first.update_id, MakeUpdateId(kHome, 1, 1, {}, first.message));
  Speak({WelcomeOf(kHome, Verdict{Outcome::kApplied, first.update_id, first.update_id, ""})});
  NoteApplied(first);
  ExpectConserved();
  BetweenConnections();

  const ScriptedCoordinator other = Speak({WelcomeOf(kOther), Assignment{4, 0, 2}});
  EXPECT_EQ(other.Said<CheckIn>().at(0).lineage, kHome);
  EXPECT_EQ(other.Said<CheckIn>().at(0).family, kFamily);
  EXPECT_EQ(other.Said<CheckIn>().at(0).prev_applied, first.update_id);
  EXPECT_EQ(other.Said<Ready>().at(0).version, 0);
  EXPECT_TRUE(other.downloads.empty());
  ASSERT_EQ(other.Said<Update>().size(), 1);
  const Update update = other.Said<Update>()[0];
  EXPECT_EQ(update.update_id, MakeUpdateId(kOther, 4, 0, {}, update.message));
  ExpectConserved();
  EXPECT_EQ(state_->state().lineage, kOther);
  EXPECT_EQ(state_->state().family, kFamily);
  ASSERT_EQ(state_->state().parted.size(), 1);
  EXPECT_EQ(state_->state().parted[0].lineage, kHome);
  EXPECT_EQ(state_->state().parted[0].prev_applied, first.update_id);
  EXPECT_FALSE(state_->state().parted[0].sealed.has_value());
  EXPECT_THAT(log_, HasSubstr(absl::StrCat("moves from lineage ", kHome.ToHex(), " to ", kOther.ToHex(),
                                           " of the same run, with its residual\n")));
  EXPECT_THAT(log_, Not(HasSubstr("warning")));
  std::vector<float> want = GridDelta(1, 0), second = GridDelta(1, 1);
  AddDecoded(first.message, -1, &want);
  for (size_t i = 0; i < want.size(); ++i) want[i] += second[i];
  EXPECT_EQ(state_->Read()->dense, want);
}

// Its weights are those of the family: nobody sends them again.
TEST_P(Moving, KeepsTheModelThatItHolds) {
  std::vector<float> weights = GridInitialWeights(), average(weights.size()), scratch;
  const std::string update = *codec_->Encode(GridDelta(0, 0));
  ASSERT_EQ(AverageUpdates(*codec_, {update}, {}, 1, absl::MakeSpan(average)), absl::OkStatus());
  const auto message =
      std::make_shared<const std::string>(BuildDownstream(DownstreamMode::kForward, {update}, {}, average));
  ASSERT_EQ(ApplyDownstream(*codec_, *message, &scratch, absl::MakeSpan(weights)), absl::OkStatus());
  Speak({WelcomeOf(kHome), Downstream{1, HashWeights(weights), message}});
  if (GetParam() != Process::kGoesOn) {
    ASSERT_EQ(session_->Flush(), absl::OkStatus());
  }
  BetweenConnections();
  const ScriptedCoordinator other = Speak({WelcomeOf(kOther)});
  ASSERT_EQ(other.Said<Ready>().size(), 1);
  EXPECT_EQ(other.Said<Ready>()[0].version, 1);
  EXPECT_EQ(other.Said<Ready>()[0].model_hash, HashWeights(weights));
}

// The update that is sealed at home, and then one that the other coordinator applies.
struct Left {
  SealedUpdate at_home;
  SealedUpdate elsewhere;
};

class ComingBack : public Moving {
 protected:
  // The client is at the other coordinator, and the one at home sends it back.
  Left Leave() {
    Left left;
    left.at_home = SealAt(kHome, 3);
    BetweenConnections();
    const ScriptedCoordinator other = Speak({WelcomeOf(kOther), Assignment{7, 0, 2}});
    left.elsewhere = *state_->state().sealed;
    EXPECT_EQ(other.Said<CheckIn>().at(0).pending_update_id, left.at_home.update_id);
    EXPECT_EQ(other.Said<Update>().size(), 1) << "the other coordinator gets nothing of what is sealed at home";
    EXPECT_EQ(other.Said<Update>().at(0).update_id, left.elsewhere.update_id);
    EXPECT_THAT(log_, HasSubstr("; the update of round 3, whose verdict it has not heard, stays behind"));
    ExpectConserved();
    BetweenConnections();
    NoteApplied(left.elsewhere);
    Speak({WelcomeOf(kOther, Verdict{Outcome::kApplied, left.elsewhere.update_id, left.elsewhere.update_id, ""})});
    ExpectConserved();
    BetweenConnections();
    const ScriptedCoordinator home = Speak({Refusal{"check in again", true, kHome}});
    EXPECT_TRUE(absl::IsUnavailable(last_));
    EXPECT_TRUE(session_->sent_back());
    EXPECT_EQ(home.Said<CheckIn>().at(0).lineage, kOther);
    EXPECT_EQ(home.Said<CheckIn>().at(0).prev_applied, left.elsewhere.update_id);
    EXPECT_TRUE(home.Said<CheckIn>().at(0).pending_update_id.IsZero());
    EXPECT_TRUE(home.Said<Leaving>().empty());
    ExpectConserved();
    return left;
  }
  // The connection after that, which begins with a verdict on the update that was left.
  ScriptedCoordinator Return(const Left& left, Outcome outcome, std::vector<FromServer> then = {}) {
    const Id128 last_applied = outcome == Outcome::kApplied ? left.at_home.update_id : Id128();
    then.insert(then.begin(), WelcomeOf(kHome, Verdict{outcome, left.at_home.update_id, last_applied, ""}));
    if (outcome == Outcome::kApplied) NoteApplied(left.at_home);
    const ScriptedCoordinator home = Speak(then);
    EXPECT_EQ(home.Said<CheckIn>().at(0).lineage, kHome);
    EXPECT_EQ(home.Said<CheckIn>().at(0).family, kFamily);
    EXPECT_TRUE(home.Said<CheckIn>().at(0).prev_applied.IsZero());
    EXPECT_EQ(home.Said<CheckIn>().at(0).pending_update_id, left.at_home.update_id);
    EXPECT_EQ(home.Said<CheckIn>().at(0).pending_round, 3);
    EXPECT_FALSE(session_->sent_back());
    EXPECT_EQ(state_->state().lineage, kHome);
    EXPECT_EQ(state_->state().parted.size(), 1);
    EXPECT_EQ(state_->state().parted.at(0).lineage, kOther);
    EXPECT_EQ(state_->state().parted.at(0).prev_applied, left.elsewhere.update_id);
    EXPECT_THAT(log_, HasSubstr("; the update of round 3, which had stayed behind, is pending again"));
    ExpectConserved();
    return home;
  }
  void SendAgain(bool applied) {
    const Left left = Leave();
    const ScriptedCoordinator home = Return(left, Outcome::kPending);
    ASSERT_EQ(home.Said<Update>().size(), 1);
    EXPECT_EQ(home.Said<Update>()[0].update_id, left.at_home.update_id);
    EXPECT_EQ(home.Said<Update>()[0].message, left.at_home.message);
    EXPECT_EQ(home.Said<Update>()[0].round, 3);
    BetweenConnections();
    const Id128 id = left.at_home.update_id;
    if (applied) NoteApplied(left.at_home);
    Speak({WelcomeOf(kHome, Verdict{Outcome::kPending, id, {}, ""}),
           Verdict{applied ? Outcome::kApplied : Outcome::kNotApplied, id, applied ? id : Id128(), ""}});
    EXPECT_FALSE(state_->state().sealed.has_value());
    ExpectConserved();
  }
};

TEST_P(ComingBack, HearsThatItsUpdateWasApplied) {
  const Left left = Leave();
  Return(left, Outcome::kApplied);
  EXPECT_EQ(state_->state().prev_applied, left.at_home.update_id);
  EXPECT_FALSE(state_->state().sealed.has_value());
  const ScriptedCoordinator home = Speak({WelcomeOf(kHome), Assignment{9, 0, 2}});
  const Update next = home.Said<Update>().at(0);
  EXPECT_EQ(next.update_id, MakeUpdateId(kHome, 9, 1, left.at_home.update_id, next.message));
  ExpectConserved();
}

TEST_P(ComingBack, HearsThatItsUpdateWasNotApplied) {
  const Left left = Leave();
  Return(left, Outcome::kNotApplied);
  EXPECT_TRUE(state_->state().prev_applied.IsZero());
  EXPECT_FALSE(state_->state().sealed.has_value());
  std::vector<float> want = GridDelta(1, 0), second = GridDelta(1, 1);
  for (size_t i = 0; i < want.size(); ++i) want[i] += second[i];
  AddDecoded(left.elsewhere.message, -1, &want);
  EXPECT_EQ(state_->Read()->dense, want);
}

TEST_P(ComingBack, SendsAPendingUpdateAgainThatIsThenApplied) { SendAgain(/*applied=*/true); }

TEST_P(ComingBack, SendsAPendingUpdateAgainThatIsThenNotApplied) { SendAgain(/*applied=*/false); }

// It may go back and forth without an end of its work.
TEST_P(ComingBack, MovesWithWorkThatIsNotSettledAnywhere) {
  const SealedUpdate at_home = SealAt(kHome, 1);
  BetweenConnections();
  const SealedUpdate elsewhere = SealAt(kOther, 1);
  ExpectConserved();
  Speak({Refusal{"check in again", true, kHome}});
  Speak({WelcomeOf(kHome, Verdict{Outcome::kNotApplied, at_home.update_id, {}, ""})});
  ExpectConserved();
  ASSERT_TRUE(state_->state().parted.at(0).sealed.has_value());
  EXPECT_EQ(state_->state().parted[0].sealed->update_id, elsewhere.update_id);
  BetweenConnections();
  const SealedUpdate again = SealAt(kHome, 2);
  ExpectConserved();
  Speak({Refusal{"check in again", true, kOther}});
  NoteApplied(elsewhere);
  Speak({WelcomeOf(kOther, Verdict{Outcome::kApplied, elsewhere.update_id, elsewhere.update_id, ""})});
  ExpectConserved();
  Speak({Refusal{"check in again", true, kHome}});
  NoteApplied(again);
  Speak({WelcomeOf(kHome, Verdict{Outcome::kApplied, again.update_id, again.update_id, ""})});
  ExpectConserved();
  EXPECT_FALSE(state_->state().sealed.has_value());
  EXPECT_FALSE(state_->state().parted.at(0).sealed.has_value());
}

TEST_P(Moving, ACoordinatorThatKnowsMoreThanTheClientResets) {
  const SealedUpdate first = SealAt(kHome);
  Speak({WelcomeOf(kHome, Verdict{Outcome::kApplied, first.update_id, first.update_id, ""})});
  const SealedUpdate at_home = SealAt(kHome, 2);
  BetweenConnections();
  Speak({Refusal{"check in again", true, kOther}});
  EXPECT_EQ(state_->state().lineage, kHome) << "it moves when it is welcome";
  const Id128 truth = HashBytes("applied long ago");
  const ScriptedCoordinator other = Speak({WelcomeOf(kOther, Verdict{Outcome::kReset, {}, truth, "other past"})});
  EXPECT_EQ(other.Said<CheckIn>().at(0).lineage, kOther);
  EXPECT_TRUE(other.Said<CheckIn>().at(0).prev_applied.IsZero());
  EXPECT_TRUE(other.Said<CheckIn>().at(0).pending_update_id.IsZero());
  EXPECT_EQ(state_->state().lineage, kOther);
  EXPECT_EQ(state_->state().prev_applied, truth);
  EXPECT_FALSE(state_->state().has_dense);
  EXPECT_THAT(log_, HasSubstr("warning: the coordinator asked for a fresh residual (other past)"));
  ASSERT_TRUE(state_->state().parted.at(0).sealed.has_value()) << "a reset leaves what is parted with";
  EXPECT_EQ(state_->state().parted[0].sealed->update_id, at_home.update_id);
}

// A coordinator that sends it back for ever is left alone for a while, and others hear the truth.
TEST_P(Moving, IsSentBackOnce) {
  const SealedUpdate at_home = SealAt(kHome);
  Speak({Refusal{"again", true, kOther}});
  EXPECT_TRUE(session_->sent_back());
  Speak({Refusal{"again", true, HashBytes("a third")}});
  EXPECT_TRUE(absl::IsUnavailable(last_));
  EXPECT_FALSE(session_->sent_back());
  const ScriptedCoordinator third = Speak({Refusal{"no", false, kOther}});
  EXPECT_TRUE(absl::IsFailedPrecondition(last_));
  EXPECT_FALSE(session_->sent_back());
  EXPECT_EQ(third.Said<CheckIn>().at(0).lineage, kHome);
  EXPECT_EQ(third.Said<CheckIn>().at(0).pending_update_id, at_home.update_id);
  Speak({Refusal{"again", true, kHome}});
  EXPECT_FALSE(session_->sent_back()) << "that is what it said";
  EXPECT_EQ(state_->state().lineage, kHome);
  EXPECT_TRUE(state_->state().parted.empty());
}

TEST_P(Moving, AnotherRunDropsEverything) {
  SealAt(kHome);
  BetweenConnections();
  SealAt(kOther);
  BetweenConnections();
  Welcome welcome = WelcomeOf(HashBytes("another run"));
  welcome.family = welcome.lineage;
  log_.clear();
  const ScriptedCoordinator stranger = Speak({welcome});
  EXPECT_THAT(log_, HasSubstr("is another one than before"));
  EXPECT_THAT(log_, Not(HasSubstr("moves")));
  EXPECT_TRUE(stranger.Said<Update>().empty());
  EXPECT_EQ(state_->state().family, welcome.lineage);
  EXPECT_FALSE(state_->state().sealed.has_value());
  EXPECT_FALSE(state_->state().has_dense);
  EXPECT_TRUE(state_->state().parted.empty());
  // Nor does the way back bring it again.
  const ScriptedCoordinator home = Speak({WelcomeOf(kHome)});
  EXPECT_FALSE(state_->state().has_dense);
  EXPECT_TRUE(state_->state().parted.empty());
}

// A relay of the root that the client was with before has the root's lineage for its family.
TEST_P(Moving, LeavesTheRootForARelay) {
  Welcome root = WelcomeOf(kFamily);
  root.family = Id128();  // as a coordinator that has no relays says it
  Speak({root, Assignment{1, 0, 2}});
  EXPECT_EQ(state_->state().family, kFamily);
  BetweenConnections();
  SealAt(kOther);
  ExpectConserved();
  EXPECT_EQ(state_->state().parted.at(0).lineage, kFamily);
}

TEST_P(Moving, ATrainerOfOtherDataBeginsAfresh) {
  SealAt(kHome);
  BetweenConnections();
  Welcome elsewhere = WelcomeOf(kOther);
  elsewhere.shards = ShardRange{0, 1};
  Speak({elsewhere});
  EXPECT_EQ(shards_.back(), 0);
  EXPECT_THAT(log_, HasSubstr("warning: the client has moved and has other data now"));
  // Its next process finds the old state again, until an update is sealed.
  Open();
  Speak({elsewhere, Assignment{1, 0, 2}});
  ASSERT_TRUE(state_->state().sealed.has_value());
  std::vector<float> want = GridDelta(1, 0);
  AddDecoded(state_->state().parted.at(0).sealed->message, -1, &want);
  const std::vector<float> second = GridDelta(0, 0);
  for (size_t i = 0; i < want.size(); ++i) want[i] += second[i];
  EXPECT_EQ(state_->Read()->dense, want);
  log_.clear();
  Open();
  Speak({elsewhere});
  EXPECT_THAT(log_, Not(HasSubstr("other data")));
}

TEST_P(Moving, KeepsItsTrainerWhereTheDataStay) {
  SealAt(kHome);
  Speak({WelcomeOf(kOther)});
  EXPECT_THAT(shards_, ElementsAre(1));
}

TEST_P(Moving, SaysForWhomAnUpdateStands) {
  const ScriptedCoordinator link = Speak({WelcomeOf(kHome), Assignment{1, 0, 2}});
  EXPECT_EQ(link.Said<Update>().at(0).cohort.clients, 5);
  EXPECT_EQ(link.Said<Update>().at(0).cohort.samples, 1000);
  BetweenConnections();
  const Verdict pending = {Outcome::kPending, state_->state().sealed->update_id, {}, ""};
  const ScriptedCoordinator again = Speak({WelcomeOf(kHome, pending)});
  EXPECT_EQ(again.Said<Update>().at(0).cohort.clients, 5);
  EXPECT_EQ(again.Said<Update>().at(0).cohort.samples, 1000);
}

TEST_P(Moving, OneUpdateTooManyIsLost) {
  std::vector<std::string> messages;
  for (size_t i = 0; i <= ClientState::kMostParted + 1; ++i) {
    EXPECT_THAT(log_, Not(HasSubstr("is lost")));
    messages.push_back(SealAt(HashBytes(absl::StrCat("relay ", i))).message);
    if (i <= ClientState::kMostParted) ExpectConserved();
    BetweenConnections();
  }
  const double norm = codec_->Measure(messages[0])->norm;
  EXPECT_THAT(log_, HasSubstr(absl::StrFormat("warning: the client has left more than 16 lineages with an update whose "
                                              "verdict it has not heard: the oldest, with %.3g in L2 norm, is lost",
                                              norm)));
  NoteApplied({{}, 0, 0, 0, 0, {}, {}, messages[0]});  // what is missing is that update and nothing else
  ExpectConserved();
}

TEST_P(Moving, ADiskThatFailsLeavesItWhereItIs) {
  const SealedUpdate at_home = SealAt(kHome);
  BetweenConnections();
  FailingState failing(state_.get());
  failing.fail_move = true;
  const std::unique_ptr<ClientSession> session = NewSession(&failing);
  const ScriptedCoordinator other = Speak({WelcomeOf(kOther)}, session.get());
  EXPECT_TRUE(absl::IsResourceExhausted(last_)) << last_;
  EXPECT_TRUE(other.Said<Ready>().empty());
  EXPECT_EQ(state_->state().lineage, kHome);
  EXPECT_EQ(state_->state().sealed->update_id, at_home.update_id);
  ExpectConserved();
  // The session goes on at home with what is stored, and elsewhere once the disk works.
  Speak({WelcomeOf(kHome, Verdict{Outcome::kNotApplied, at_home.update_id, {}, ""})}, session.get());
  EXPECT_TRUE(absl::IsUnavailable(last_)) << last_;
  EXPECT_FALSE(state_->state().sealed.has_value());
  ExpectConserved();
  failing.fail_move = false;
  Speak({WelcomeOf(kOther), Assignment{1, 0, 2}}, session.get());
  EXPECT_EQ(state_->state().lineage, kOther);
  ExpectConserved();
}

// Whoever packs with its history unpacks with another one after a move.
TEST_P(Moving, BeginsItsHistoryAnew) {
  CodecSpec codec = {"sbc", 0.1, "bf16"};
  codec.positions = std::string(kSharedPositions);
  Configure(codec);
  const SealedUpdate first = SealAt(kHome);
  const ScriptedCoordinator home =
      Speak({WelcomeOf(kHome, Verdict{Outcome::kApplied, first.update_id, first.update_id, ""})});
  const Id128 empty = UpdateHistory(*codec_->PackedLayout()).Hash();
  EXPECT_NE(home.Said<Ready>().at(0).history_hash, empty);
  BetweenConnections();
  const ScriptedCoordinator other = Speak({WelcomeOf(kOther)});
  EXPECT_EQ(other.Said<Ready>().at(0).history_hash, empty);
  BetweenConnections();
  EXPECT_EQ(Speak({WelcomeOf(kOther)}).Said<Ready>().at(0).history_hash, empty);
}

std::string NameOf(const ::testing::TestParamInfo<Process>& info) {
  return info.param == Process::kGoesOn ? "GoesOn" : info.param == Process::kEndsInOrder ? "EndsInOrder" : "Dies";
}
constexpr Process kProcesses[] = {Process::kGoesOn, Process::kEndsInOrder, Process::kDies};
INSTANTIATE_TEST_SUITE_P(Client, Moving, ::testing::ValuesIn(kProcesses), NameOf);
INSTANTIATE_TEST_SUITE_P(Client, ComingBack, ::testing::ValuesIn(kProcesses), NameOf);

// Where the state is in memory, an orderly end keeps what is parted with, and a death loses it and says so.
class RelaxedMoving : public ComingBack {};

TEST_P(RelaxedMoving, KeepsWhatItPartedWithInMemory) {
  Configure({"sbc", 0.02, "bf16"}, Durability::kRelaxed);
  const Left left = Leave();
  Return(left, Outcome::kNotApplied);
}

INSTANTIATE_TEST_SUITE_P(Client, RelaxedMoving, ::testing::Values(Process::kGoesOn, Process::kEndsInOrder), NameOf);

class RelaxedDying : public Moving {};

TEST_P(RelaxedDying, SaysThatItsResidualIsLost) {
  Configure({"sbc", 0.02, "bf16"}, Durability::kRelaxed);
  SealAt(kHome);
  SealAt(kOther);
  BetweenConnections();
  ASSERT_TRUE(state_->lost());
  const ScriptedCoordinator home = Speak({WelcomeOf(kHome)});
  EXPECT_TRUE(home.Said<CheckIn>().at(0).residual_lost);
  EXPECT_EQ(home.Said<CheckIn>().at(0).lineage, kOther);
  EXPECT_EQ(home.Said<CheckIn>().at(0).family, kFamily);
  EXPECT_FALSE(state_->lost());
  EXPECT_EQ(state_->state().lineage, kHome);
  EXPECT_FALSE(state_->state().has_dense);
}

INSTANTIATE_TEST_SUITE_P(Client, RelaxedDying, ::testing::Values(Process::kDies), NameOf);

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

class MovingFailpoint : public ComingBack {
 protected:
  void DieAt(absl::string_view name) {
    const SealedUpdate at_home = SealAt(kHome, 3);
    {
      FailAt failing(name);
      Speak({WelcomeOf(kOther)});
      EXPECT_TRUE(failing.failed);
    }
    Open();
    ExpectConserved();
    SealAt(kOther, 7);
    ExpectConserved();
    ASSERT_EQ(state_->state().parted.size(), 1);
    EXPECT_EQ(state_->state().parted[0].sealed->update_id, at_home.update_id);
    Speak({Refusal{"check in again", true, kHome}});
    {
      FailAt failing(name);
      Speak({WelcomeOf(kHome, Verdict{Outcome::kApplied, at_home.update_id, at_home.update_id, ""})});
      EXPECT_TRUE(failing.failed);
    }
    Open();
    ExpectConserved();
  }
};

TEST_P(MovingFailpoint, BeforeTheManifest) { DieAt("client.move.before_manifest"); }
TEST_P(MovingFailpoint, AfterIt) { DieAt("client.move.done"); }

INSTANTIATE_TEST_SUITE_P(Client, MovingFailpoint, ::testing::Values(Process::kDies), NameOf);

#endif  // TERSE_FAULTS

}  // namespace
}  // namespace terse
