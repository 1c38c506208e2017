// The client's session in a run whose updates are packed with what both ends keep of the ones before: what it sends,
// and from which history, across restarts and verdicts.
#include <memory>
#include <string>
#include <vector>

#include "client/session.h"
#include "compression/run_codecs.h"
#include "compression/update_history.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/run_store.h"
#include "tests/client/scripted_coordinator.h"
#include "tests/testing/fleet_simulation.h"
#include "tests/testing/temp_directory.h"

namespace terse {
namespace {

RunConfig SharedConfig() {
  RunConfig config = GridRunConfig(2, 100);
  config.codec.density = 0.1;
  config.codec.positions = std::string(kSharedPositions);
  return config;
}

class SessionShared : public ::testing::Test {
 protected:
  SessionShared()
      : config_(std::make_shared<const RunConfig>(SharedConfig())),
        codec_(*MakeUpdateCodec(*config_, GridLayout())),
        history_(*codec_->PackedLayout()) {
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
    options.make_trainer = GridTrainerFactory();
    options.clock = &clock_;
    options.keep_going = [] { return true; };
    options.log = [](LogLevel, const LogFields&, const std::string&) {};
    session_ = std::make_unique<ClientSession>(std::move(options));
  }

  // A connection that begins with the verdict on what is pending; all that the client says about updates.
  std::vector<Update> Connect(absl::optional<Verdict> verdict, std::vector<FromServer> then) {
    ScriptedCoordinator link;
    link.download = SerializeCheckpoint({0, HashWeights(GridInitialWeights()), GridInitialWeights()});
    link.script = {Welcome{lineage_, config_, 1, std::move(verdict), 0}, Resync{0, "to be sure"}};
    link.script.insert(link.script.end(), then.begin(), then.end());
    EXPECT_TRUE(absl::IsUnavailable(session_->Run(&link)));
    EXPECT_GE(link.Said<Ready>().size(), 1);
    for (const Ready& ready : link.Said<Ready>()) EXPECT_EQ(ready.history_hash, history_.Hash());
    return link.Said<Update>();
  }
  // One more round, whose update may come packed.
  Update Train(bool packed = true) {
    const std::vector<Update> said = Connect(absl::nullopt, {Assignment{++round_, 0, 2, 0, absl::nullopt, packed}});
    EXPECT_EQ(said.size(), 1);
    return said.empty() ? Update() : said[0];
  }
  // The verdict on the update that is sealed. The coordinator adds it to its history when it counts.
  void Hear(Outcome outcome) {
    const SealedUpdate sealed = *state_->state().sealed;
    if (outcome == Outcome::kApplied) {
      last_applied_ = sealed.update_id;
      EXPECT_EQ(codec_->AddToHistory(sealed.message, &history_), absl::OkStatus());
    }
    if (outcome == Outcome::kReset) history_ = UpdateHistory(*codec_->PackedLayout());
    Connect(Verdict{outcome, sealed.update_id, last_applied_, ""}, {});
  }
  // Whether the coordinator reads the update with its history, and finds the sealed one.
  void ExpectRead(const Update& update) {
    const SealedUpdate& sealed = *state_->state().sealed;
    EXPECT_EQ(update.update_id, sealed.update_id);
    EXPECT_EQ(sealed.update_id, MakeUpdateId(lineage_, round_, 1, last_applied_, sealed.message));
    if (update.packed) {
      EXPECT_LT(update.message.size(), sealed.message.size());
      EXPECT_EQ(codec_->Unpack(update.message, history_).value_or("misread"), sealed.message);
      ++packed_;
    } else {
      EXPECT_EQ(update.message, sealed.message);
    }
  }
  // Runs so many rounds, each of which counts.
  void Go(int rounds) {
    for (int i = 0; i < rounds; ++i) {
      ExpectRead(Train());
      Hear(Outcome::kApplied);
    }
  }
  // Runs rounds until an update comes packed, which stays sealed.
  Update GoUntilPacked() {
    for (int i = 0; i < 50; ++i) {
      const Update update = Train();
      ExpectRead(update);
      if (update.packed) return update;
      Hear(Outcome::kApplied);
    }
    ADD_FAILURE() << "nothing was packed";
    return {};
  }

  const Id128 lineage_ = HashBytes("run");
  const std::shared_ptr<const RunConfig> config_;
  const std::unique_ptr<const Codec> codec_;
  UpdateHistory history_;  // the coordinator's
  Id128 last_applied_;
  int64_t round_ = 0;
  int packed_ = 0;
  uint64_t processes_ = 0;
  TempDirectory directory_;
  FakeClock clock_;
  std::unique_ptr<ClientState> state_;
  std::unique_ptr<ClientSession> session_;
};

TEST_F(SessionShared, PacksWhatTheCoordinatorCanRead) {
  Go(20);
  EXPECT_GT(packed_, 3);
}

TEST_F(SessionShared, PacksOnlyWhereTheAssignmentSaysSo) {
  Go(20);
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(Train(/*packed=*/false).packed);
    Hear(Outcome::kApplied);
  }
}

TEST_F(SessionShared, SendsAgainAsItIs) {
  Go(5);
  for (const bool restart : {false, true}) {
    const Update first = GoUntilPacked();
    if (restart) Restart();
    const std::vector<Update> again = Connect(Verdict{Outcome::kPending, first.update_id, last_applied_, ""}, {});
    ASSERT_GE(again.size(), 1);
    for (const Update& update : again) {
      EXPECT_FALSE(update.packed);
      EXPECT_EQ(update.message, state_->state().sealed->message);
    }
    Hear(Outcome::kApplied);
  }
}

TEST_F(SessionShared, EveryRestartFindsTheHistory) {
  for (int i = 0; i < 8; ++i) {
    ExpectRead(Train());
    if (i % 2 == 0) Restart();  // with the update sealed
    Hear(Outcome::kApplied);
    Restart();  // with it applied
  }
  Go(20);
  EXPECT_GT(packed_, 3);
}

TEST_F(SessionShared, WhatDoesNotCountIsNoPartOfIt) {
  Go(5);
  for (int i = 0; i < 5; ++i) {
    ExpectRead(Train());
    Hear(Outcome::kNotApplied);
    if (i % 2 == 0) Restart();
  }
  Go(20);
  EXPECT_GT(packed_, 3);
}

TEST_F(SessionShared, AResetBeginsItAnew) {
  Go(10);
  ExpectRead(Train());
  Hear(Outcome::kReset);
  Restart();
  ExpectRead(Train());
  Hear(Outcome::kReset);
  Go(20);
  EXPECT_GT(packed_, 3);
}

TEST_F(SessionShared, TheCoordinatorBeginsItAnew) {
  const UpdateHistory none(*codec_->PackedLayout());
  Go(10);
  Connect(absl::nullopt, {BeginHistory{}});
  history_ = none;
  Go(10);
  Restart();
  Go(10);
  // The client does not hear of it before its next start, and is told again then.
  Connect(absl::nullopt, {BeginHistory{}});
  Restart();
  Connect(absl::nullopt, {BeginHistory{}});
  history_ = none;
  packed_ = 0;
  Go(20);
  EXPECT_GT(packed_, 3);
}

// An update of the program may leave a history that cannot be read.
TEST_F(SessionShared, AHistoryThatCannotBeReadIsThatOfNoUpdates) {
  Go(5);
  Train();
  const SealedUpdate sealed = *state_->state().sealed;
  const StoredState stored = *state_->Read();
  ASSERT_EQ(state_->Settle(/*applied=*/false), absl::OkStatus());
  ASSERT_EQ(state_->Seal(stored.dense, sealed, stored.trainer_state, "of another release"), absl::OkStatus());
  Restart();
  history_ = UpdateHistory(*codec_->PackedLayout());
  Connect(Verdict{Outcome::kPending, sealed.update_id, last_applied_, ""}, {});
  Hear(Outcome::kApplied);
  Go(20);
  EXPECT_GT(packed_, 3);
}

}  // namespace
}  // namespace terse
