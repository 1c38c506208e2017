// Rounds of the engine: aggregation, quorum, deadlines, repeated and conflicting updates, stop, ledger.
#include "compression/downstream.h"
#include "core/fault.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/crew.h"
#include "tests/testing/fleet_simulation.h"
#include "tests/testing/scripted_client.h"

namespace terse {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

Id128 Bogus() { return HashBytes("bogus"); }

RunConfig WithQuorum(int64_t clients, int64_t quorum, int64_t rounds) {
  RunConfig config = GridRunConfig(clients, rounds);
  config.rounds.quorum = quorum;
  return config;
}

void ExpectConserved(FleetSimulation& fleet, int64_t i) {
  EXPECT_EQ(CheckConservation(fleet.store(), fleet.codec(), i, *fleet.state(i)->Read(), {}), absl::OkStatus());
}

RoundState StateOf(FleetSimulation& fleet, int64_t round) { return **fleet.store()->GetRoundState(round); }

TEST(EngineRounds, RunsToTheEndAndConserves) {
  FleetSimulation fleet(GridRunConfig(3, 6), 3);
  ASSERT_EQ(fleet.StartAll(), absl::OkStatus());
  ASSERT_EQ(fleet.Settle(), absl::OkStatus());
  const EngineView view = fleet.engine()->View();
  EXPECT_EQ(view.head.version, 6);
  EXPECT_TRUE(view.ended);
  EXPECT_EQ((*fleet.store()->Run())->state, RunState::kFinished);
  EXPECT_EQ(CheckReplay(fleet.store(), fleet.config(), fleet.downstream_codecs(), GridInitialWeights()),
            absl::OkStatus());
  const RoundRecord last = **fleet.store()->LastRound();
  EXPECT_EQ(last.id, 6);
  EXPECT_TRUE(last.accuracy.has_value());
  EXPECT_EQ(fleet.store()->NewestCheckpointFile()->version, 6);
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(fleet.last_result(i), absl::OkStatus());
    EXPECT_EQ(fleet.state(i)->state().generation, 6);
    ExpectConserved(fleet, i);
  }
}

TEST(EngineRounds, TheModelDoesNotDependOnTheOrderOfArrival) {
  RunConfig config = GridRunConfig(4, 5);
  config.codec.mean_precision = "fp32";  // so that sums depend on their order
  absl::optional<Id128> first_hash;
  std::vector<LogMessage> first_log;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    FleetSimulation fleet(config, 4);
    ASSERT_EQ(fleet.StartAll(), absl::OkStatus());
    Random random(seed);
    ASSERT_EQ(fleet.Settle(&random), absl::OkStatus());
    ASSERT_EQ(fleet.engine()->View().head.version, 5);
    const std::vector<LogMessage> log = *fleet.store()->ReadLog(0, 5);
    if (!first_hash.has_value()) {
      first_hash = fleet.engine()->View().head.model_hash;
      first_log = log;
    }
    EXPECT_EQ(fleet.engine()->View().head.model_hash, *first_hash) << "seed " << seed;
    for (int i = 0; i < 5; ++i) EXPECT_EQ(log[i].downstream, first_log[i].downstream) << "seed " << seed;
  }
}

TEST(EngineRounds, WithoutAQuorumTheRoundIsAbortedAndReopens) {
  FleetSimulation fleet(WithQuorum(3, 2, 2), 3);
  ASSERT_EQ(fleet.StartAll(), absl::OkStatus());
  for (int64_t i = 1; i < 3; ++i) fleet.set_keep_going(i, false);  // they stop before they seal
  ASSERT_EQ(fleet.Settle(), absl::OkStatus());
  ASSERT_EQ(fleet.engine()->View().round, 1);
  fleet.Cut(0, 0);  // its update counts as not applied all the same
  ASSERT_EQ(fleet.Settle(), absl::OkStatus());
  for (int64_t i = 1; i < 3; ++i) {
    EXPECT_TRUE(absl::IsCancelled(fleet.last_result(i)));
    fleet.set_keep_going(i, true);
    fleet.Connect(i);
  }
  ASSERT_LT(fleet.clock()->MonotonicMicros(), fleet.engine()->NextDeadlineMicros());
  ASSERT_EQ(fleet.Handle(Tick{}), absl::OkStatus());  // too early: nothing happens
  EXPECT_EQ(StateOf(fleet, 1), RoundState::kOpen);
  ASSERT_EQ(fleet.PassDeadline(), absl::OkStatus());
  EXPECT_EQ(StateOf(fleet, 1), RoundState::kAborted);
  ASSERT_EQ(EventsOf(fleet, "round_aborted").size(), 1);
  fleet.Connect(0);
  ASSERT_EQ(fleet.Settle(), absl::OkStatus());
  EXPECT_EQ(fleet.engine()->View().head.version, 2);
  EXPECT_EQ(StateOf(fleet, 3), RoundState::kCommitted);
  EXPECT_EQ(fleet.store()->GetClient(0)->updates_not_applied, 1);
  for (int64_t i = 0; i < 3; ++i) ExpectConserved(fleet, i);
}

// One client's update of round 1 arrives after a quorum of the others closed the round.
class LateClient : public ::testing::Test {
 protected:
  LateClient() : fleet_(WithQuorum(3, 2, 3), 3) {}

  void CloseWithoutClient2() {
    ASSERT_EQ(fleet_.StartAll(), absl::OkStatus());
    for (bool moved = true; moved;) {
      moved = false;
      for (int64_t i = 0; i < 3; ++i) {
        moved = *fleet_.DeliverDown(i) || moved;
        const bool held_back = i == 2 && fleet_.state(2)->state().sealed.has_value();
        moved = (!held_back && *fleet_.DeliverUp(i)) || moved;
      }
    }
    ASSERT_TRUE(fleet_.state(2)->state().sealed.has_value());
    ASSERT_EQ(fleet_.PassDeadline(), absl::OkStatus());
    ASSERT_EQ(fleet_.engine()->View().head.version, 1);
  }

  FleetSimulation fleet_;
};

TEST_F(LateClient, FoldsForward) {
  CloseWithoutClient2();
  ASSERT_EQ(fleet_.Settle(), absl::OkStatus());
  EXPECT_EQ(fleet_.store()->GetClient(2)->updates_not_applied, 1);
  EXPECT_EQ(EventsOf(fleet_, "update_late").size(), 1);
  for (int64_t i = 0; i < 3; ++i) ExpectConserved(fleet_, i);
}

TEST_F(LateClient, WorksInTheNextRoundAtOnce) {
  CloseWithoutClient2();
  ASSERT_EQ(fleet_.Settle(), absl::OkStatus());  // no deadline has to pass for the rest of the run
  EXPECT_EQ(fleet_.engine()->View().head.version, 3);
  EXPECT_EQ(fleet_.store()->GetClient(2)->updates_applied, 2);
}

class Scripted : public ::testing::Test {
 protected:
  Scripted() : fleet_(WithQuorum(2, 1, 3), 0) {
    EXPECT_EQ(fleet_.StartCoordinator(), absl::OkStatus());
    a_ = std::make_unique<ScriptedClient>(&fleet_, "a", 1001);
    b_ = std::make_unique<ScriptedClient>(&fleet_, "b", 1002);
    for (ScriptedClient* client : {a_.get(), b_.get()}) {
      EXPECT_EQ(client->SayCheckIn(), absl::OkStatus());
      EXPECT_EQ(client->SayReady(), absl::OkStatus());
      EXPECT_EQ(client->Count<Welcome>(), 1);
    }
    EXPECT_EQ(a_->Count<Assignment>(), 1);
    EXPECT_EQ(b_->Count<Assignment>(), 1);
  }

  FleetSimulation fleet_;
  std::unique_ptr<ScriptedClient> a_, b_;
};

TEST_F(Scripted, ARepeatedUpdateIsAnsweredAgainAndCountsOnce) {
  const Update update = a_->MakeUpdate(1, 0, 0);
  for (int repeat = 0; repeat < 3; ++repeat) ASSERT_EQ(a_->Say(update), absl::OkStatus());
  ASSERT_EQ(a_->Count<Receipt>(), 3);
  EXPECT_EQ(a_->All<Receipt>()[2].update_id, update.update_id);
  ASSERT_EQ(b_->Say(b_->MakeUpdate(1, 1, 0)), absl::OkStatus());
  EXPECT_EQ(fleet_.engine()->View().head.version, 1);
  EXPECT_EQ((*fleet_.store()->Rounds(1, 1))[0].payload_bytes_up,
            update.message.size() + b_->MakeUpdate(1, 1, 0).message.size());
  // Once it is in the model, the same bytes are APPLIED and change nothing.
  a_->Forget();
  ASSERT_EQ(a_->Say(update), absl::OkStatus());
  ASSERT_EQ(a_->Count<Verdict>(), 1);
  EXPECT_EQ(a_->All<Verdict>()[0].outcome, Outcome::kApplied);
  EXPECT_EQ(fleet_.store()->GetClient(0)->updates_applied, 1);
}

// Bytes that a disk gives back differently.
class ChangingBytes final : public HeldBytes {
 public:
  explicit ChangingBytes(std::string bytes) : stored(std::move(bytes)) {}
  absl::string_view bytes() const override { return stored; }

  std::string stored;
};

TEST_F(Scripted, AnUpdateThatIsNoLongerWhatWasReceivedSuspendsTheRun) {
  Update update = a_->MakeUpdate(1, 0, 0);
  const auto held = std::make_shared<ChangingBytes>(std::exchange(update.message, ""));
  update.held = held;
  ASSERT_EQ(fleet_.Handle(Received{1001, std::move(update)}), absl::OkStatus());
  held->stored.back() = static_cast<char>(held->stored.back() ^ 1);
  const absl::Status status = b_->Say(b_->MakeUpdate(1, 1, 0));
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              ::testing::HasSubstr("client 0 in round 1 is no longer what was received"));
  EXPECT_FALSE(fleet_.coordinator_up());
  ASSERT_EQ(fleet_.StartCoordinator(), absl::OkStatus());
  EXPECT_EQ(fleet_.engine()->View().head.version, 0);
  EXPECT_TRUE(fleet_.store()->GetClient(1)->last_applied.IsZero());
}

TEST_F(Scripted, ASpoolThatFailsSuspendsTheRun) {
  ASSERT_EQ(a_->Say(a_->MakeUpdate(1, 0, 0)), absl::OkStatus());
  EXPECT_TRUE(absl::IsResourceExhausted(fleet_.Handle(SpoolFailed{absl::ResourceExhaustedError("the disk is full")})));
  EXPECT_FALSE(fleet_.coordinator_up());
  ASSERT_EQ(fleet_.StartCoordinator(), absl::OkStatus());
  EXPECT_EQ(fleet_.engine()->View().round, 1);
}

TEST_F(Scripted, AConflictingUpdateIsRefusedAndAudited) {
  ASSERT_EQ(a_->Say(a_->MakeUpdate(1, 0, 0)), absl::OkStatus());
  ASSERT_EQ(a_->Say(a_->MakeUpdate(1, 0, 7)), absl::OkStatus());
  ASSERT_EQ(a_->Count<Refusal>(), 1);
  EXPECT_TRUE(a_->All<Refusal>()[0].retry);
  ASSERT_EQ(EventsOf(fleet_, "update_conflict").size(), 1);
  EXPECT_EQ(EventsOf(fleet_, "update_conflict")[0].client, 0);
  ASSERT_EQ(b_->Say(b_->MakeUpdate(1, 1, 0)), absl::OkStatus());
  EXPECT_EQ(fleet_.store()->GetClient(0)->last_applied, a_->MakeUpdate(1, 0, 0).update_id);
}

TEST_F(Scripted, AnUpdateThatDoesNotFollowTheLastOneIsRefused) {
  ASSERT_EQ(a_->Say(a_->MakeUpdate(1, 0, 0, Bogus())), absl::OkStatus());
  EXPECT_EQ(a_->Count<Receipt>(), 0);
  ASSERT_EQ(a_->Count<Refusal>(), 1);
  EXPECT_EQ(EventsOf(fleet_, "update_rejected").size(), 1);
  Update changed = b_->MakeUpdate(1, 1, 0);
  changed.message = *fleet_.codec().Encode(GridDelta(1, 1));  // another content under the old id
  ASSERT_EQ(b_->Say(changed), absl::OkStatus());
  EXPECT_EQ(b_->Count<Receipt>(), 0);
  EXPECT_EQ(b_->Count<Refusal>(), 1);
}

TEST_F(Scripted, BadUpdatesDoNotReachTheEngine) {
  const Update good = a_->MakeUpdate(1, 0, 0);
  std::vector<Update> bad(6, good);
  bad[0].round = 0;
  bad[1].train_us = -1;
  bad[2].loss = std::numeric_limits<float>::quiet_NaN();
  bad[3].update_id = Id128{};
  bad[4].message.pop_back();
  bad[5].message.clear();
  for (const Update& update : bad) EXPECT_TRUE(absl::IsInvalidArgument(a_->Say(update)));
  EXPECT_EQ(a_->Say(good), absl::OkStatus());
}

TEST_F(Scripted, AnUpdateForARoundThatNeverWasIsNotCounted) {
  ASSERT_EQ(a_->Say(a_->MakeUpdate(9, 0, 0)), absl::OkStatus());
  ASSERT_EQ(a_->Count<Verdict>(), 1);
  EXPECT_EQ(a_->All<Verdict>()[0].outcome, Outcome::kPending);
  EXPECT_EQ(a_->Count<Receipt>(), 0);
}

TEST_F(Scripted, ProgressIsShown) {
  ASSERT_EQ(a_->Say(Progress{1, 17}), absl::OkStatus());
  ASSERT_EQ(b_->Say(Progress{9, 5}), absl::OkStatus());  // of another round
  EXPECT_EQ(fleet_.engine()->View().sessions[0].steps_done, 17);
  EXPECT_EQ(fleet_.engine()->View().sessions[1].steps_done, 0);
  EXPECT_EQ(fleet_.engine()->View().sessions[0].state, "training");
}

TEST_F(Scripted, TheOperatorStopsARoundAndTheRunEnds) {
  ASSERT_EQ(a_->Say(a_->MakeUpdate(1, 0, 0)), absl::OkStatus());
  ASSERT_EQ(b_->Say(b_->MakeUpdate(1, 1, 0)), absl::OkStatus());
  const Id128 applied = fleet_.store()->GetClient(0)->last_applied;
  ASSERT_EQ(a_->Say(a_->MakeUpdate(2, 0, 1, applied)), absl::OkStatus());
  a_->Forget();
  ASSERT_EQ(fleet_.Handle(StopRequested{}), absl::OkStatus());
  ASSERT_EQ(a_->Count<Verdict>(), 1);
  EXPECT_EQ(a_->All<Verdict>()[0].outcome, Outcome::kNotApplied);
  ASSERT_EQ(a_->Count<Finished>(), 1);
  EXPECT_THAT(a_->All<Finished>()[0].reason, HasSubstr("operator"));
  EXPECT_TRUE(fleet_.engine()->View().ended);
  EXPECT_EQ((*fleet_.store()->Run())->state, RunState::kStopped);
  EXPECT_EQ(StateOf(fleet_, 2), RoundState::kAborted);
  // The model that the run ends with was made by round 1; that is what gets evaluated and kept.
  EXPECT_THAT(fleet_.background()->evaluated_rounds, ::testing::ElementsAre(1));
  EXPECT_TRUE((*fleet_.store()->Rounds(1, 1))[0].accuracy.has_value());
  EXPECT_EQ(fleet_.store()->NewestCheckpointFile()->version, 1);
  // A client that comes now is told, and a restart does not go on.
  ScriptedClient late(&fleet_, "a", 1003);
  ASSERT_EQ(late.SayCheckIn(applied), absl::OkStatus());
  ASSERT_EQ(late.SayReady(), absl::OkStatus());
  EXPECT_EQ(late.Count<Finished>(), 1);
  fleet_.KillCoordinator();
  ASSERT_EQ(fleet_.StartCoordinator(), absl::OkStatus());
  EXPECT_TRUE(fleet_.engine()->View().ended);
}

#ifdef TERSE_FAULTS
// The mutants do what their names say; that the invariants notice is shown elsewhere.
class ScriptedMutants : public Scripted {
 protected:
  ~ScriptedMutants() override { SetMutant(Mutant::kNone); }
};

TEST_F(ScriptedMutants, NoDeduplicationCountsARepeatedUpdateTwice) {
  SetMutant(Mutant::kNoDeduplication);
  const Update update = a_->MakeUpdate(1, 0, 0);
  ASSERT_EQ(a_->Say(update), absl::OkStatus());
  ASSERT_EQ(a_->Say(update), absl::OkStatus());
  ASSERT_EQ(b_->Say(b_->MakeUpdate(1, 1, 0)), absl::OkStatus());
  EXPECT_EQ(ParseForwarded(fleet_.store()->ReadLog(0, 1)->at(0).downstream)->updates.size(), 3);
}

TEST_F(ScriptedMutants, NoPredecessorCheckTakesAnUpdateOfAnotherPast) {
  SetMutant(Mutant::kNoPredecessorCheck);
  ASSERT_EQ(a_->Say(a_->MakeUpdate(1, 0, 0, Bogus())), absl::OkStatus());
  EXPECT_EQ(a_->Count<Refusal>(), 0);
  ASSERT_EQ(b_->Say(b_->MakeUpdate(1, 1, 0)), absl::OkStatus());
  EXPECT_EQ(fleet_.engine()->View().head.version, 1);
  ScriptedClient again(&fleet_, "a", 1003);
  ASSERT_EQ(again.SayCheckIn(Bogus()), absl::OkStatus());
  EXPECT_NE(again.All<Welcome>().at(0).verdict.value_or(Verdict{}).outcome, Outcome::kReset);
}
#endif  // TERSE_FAULTS

TEST(EngineRounds, TheRunEndsOnceItsLastCheckpointAndEvaluationAreThere) {
  RunConfig config = GridRunConfig(2, 2);
  config.checkpoint_every = 1;
  config.evaluate_every = 1;
  FleetSimulation fleet(config, 2);
  ASSERT_EQ(fleet.StartAll(), absl::OkStatus());
  fleet.hold_background(true);
  ASSERT_EQ(fleet.Settle(), absl::OkStatus());
  ASSERT_EQ(fleet.engine()->View().head.version, 2);
  // The checkpoint of version 1 is still under way.
  while (absl::optional<Event> done = fleet.background()->RunOne()) {
    EXPECT_FALSE(fleet.engine()->View().ended);
    ASSERT_EQ(fleet.Handle(*std::move(done)), absl::OkStatus());
  }
  EXPECT_TRUE(fleet.engine()->View().ended);
  EXPECT_EQ(fleet.store()->NewestCheckpointFile()->version, 2);
  EXPECT_TRUE((*fleet.store()->LastRound())->accuracy.has_value());
}

TEST(EngineRounds, AnEvaluationThatWasCutShortIsMadeUpFor) {
  RunConfig config = GridRunConfig(2, 9);
  config.evaluate_every = 2;
  FleetSimulation fleet(config, 2);
  ASSERT_EQ(fleet.StartAll(), absl::OkStatus());
  fleet.hold_background(true);
  ASSERT_EQ(fleet.Handle(PauseRequested{"for a while"}), absl::OkStatus());
  while (fleet.engine()->View().head.version < 2) {
    ASSERT_EQ(fleet.Handle(ResumeRequested{}), absl::OkStatus());
    ASSERT_EQ(fleet.Handle(PauseRequested{"for a while"}), absl::OkStatus());
    ASSERT_EQ(fleet.Settle(), absl::OkStatus());
  }
  ASSERT_EQ(fleet.engine()->View().head.version, 2);
  ASSERT_FALSE((*fleet.store()->LastRound())->evaluated());
  fleet.KillCoordinator();
  fleet.hold_background(false);
  ASSERT_EQ(fleet.StartCoordinator(), absl::OkStatus());
  ASSERT_EQ(fleet.Handle(Tick{}), absl::OkStatus());
  EXPECT_TRUE((*fleet.store()->LastRound())->evaluated());
  EXPECT_THAT(fleet.background()->evaluated_rounds, ElementsAre(2));
  // The next coordinator finds the evaluation and makes none.
  fleet.KillCoordinator();
  ASSERT_EQ(fleet.StartCoordinator(), absl::OkStatus());
  ASSERT_EQ(fleet.Handle(Tick{}), absl::OkStatus());
  EXPECT_THAT(fleet.background()->evaluated_rounds, IsEmpty());
}

TEST(EngineRounds, TheOperatorStopsARunThatNeverBegan) {
  FleetSimulation fleet(GridRunConfig(2, 3), 0);
  ASSERT_EQ(fleet.StartCoordinator(), absl::OkStatus());
  ASSERT_EQ(fleet.Handle(StopRequested{}), absl::OkStatus());
  EXPECT_TRUE(fleet.engine()->View().ended);
  EXPECT_EQ((*fleet.store()->Run())->state, RunState::kStopped);
}

TEST(EngineRounds, AQuorumStartsOnceItHasWaitedLongEnough) {
  FleetSimulation fleet(WithQuorum(3, 2, 1), 2);
  ASSERT_EQ(fleet.StartAll(), absl::OkStatus());
  ASSERT_EQ(fleet.Settle(), absl::OkStatus());
  EXPECT_EQ(fleet.engine()->View().round, 0);
  ASSERT_EQ(fleet.PassDeadline(), absl::OkStatus());
  ASSERT_EQ(fleet.Settle(), absl::OkStatus());
  EXPECT_EQ(fleet.engine()->View().round, 1);
  ASSERT_EQ(fleet.PassDeadline(), absl::OkStatus());
  EXPECT_EQ(fleet.engine()->View().head.version, 1);
}

// The close hands the store the predecessor that was compared when the update came; the store compares it with its own.
TEST(EngineRounds, ThePredecessorTravelsWithItsUpdate) {
  Crew crew(GridRunConfig(2, 3), 2);
  crew.DeliverAll();
  crew.Deliver(0, 2);
  const Update last = crew.MakeUpdate(1, 2);
  crew.fleet.store()->fault = [](absl::string_view call, bool) {
    return call == "GetClient" ? absl::InternalError("a second look") : absl::OkStatus();
  };
  ASSERT_EQ(crew.at(1).Say(last), absl::OkStatus());
  crew.fleet.store()->fault = nullptr;
  EXPECT_EQ(crew.view().head.version, 2);
  EXPECT_EQ(crew.LastApplied(1), last.update_id);
}

TEST(EngineRounds, TheLedgerHoldsEveryByte) {
  FleetSimulation fleet(GridRunConfig(3, 5), 3);
  ASSERT_EQ(fleet.StartAll(), absl::OkStatus());
  std::vector<std::shared_ptr<MemoryLink>> links;
  for (int64_t i = 0; i < 3; ++i) links.push_back(fleet.shared_link(i));
  ASSERT_EQ(fleet.Settle(), absl::OkStatus());
  const std::vector<LedgerEntry> ledger = *fleet.store()->Ledger(0, 1000);
  int64_t dense[2] = {0, 0};
  for (int64_t i = 0; i < 3; ++i) {
    int64_t wire_up = 0, wire_down = 0, payload_down = 0;
    for (const LedgerEntry& row : ledger) {
      dense[row.direction == Direction::kUp ? 0 : 1] += row.client == i ? row.dense_bytes : 0;
      if (row.client != i) continue;
      (row.direction == Direction::kUp ? wire_up : wire_down) += row.wire_bytes;
      if (row.direction == Direction::kDown) payload_down += row.payload_bytes;
    }
    EXPECT_EQ(wire_up, links[i]->coordinator_end()->Wire().received);
    EXPECT_EQ(wire_down, links[i]->coordinator_end()->Wire().sent);
    int64_t heard = 0;
    for (const FromServer& message : fleet.heard(i)) {
      if (const auto* delta = std::get_if<Downstream>(&message)) heard += delta->message->size();
      // The first download of version 0 is booked as payload too.
      if (std::holds_alternative<Resync>(message)) heard += fleet.checkpoint_bytes();
    }
    EXPECT_EQ(payload_down, heard);
  }
  const int64_t once = 4 * GridLayout().size() * fleet.config().train.local_steps;
  EXPECT_EQ(dense[0], 5 * 3 * once);
  EXPECT_EQ(dense[1], 5 * 3 * once);
}

}  // namespace
}  // namespace terse
