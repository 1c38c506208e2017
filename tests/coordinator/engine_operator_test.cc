// Tests how operators and limits steer a run: pause, resume, abort, an end before the last round, and the list of
// clients.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/crew.h"

namespace terse {
namespace {

using ::testing::HasSubstr;

class Operated : public ::testing::Test {
 protected:
  Operated() : crew_(GridRunConfig(2, 10), 2) {}

  RunRecord Run() { return **crew_.fleet.store()->Run(); }
  void Handle(Event event) { ASSERT_EQ(crew_.fleet.Handle(std::move(event)), absl::OkStatus()); }

  Crew crew_;
};

TEST_F(Operated, APausedRunFinishesItsRoundAndOpensNone) {
  Handle(PauseRequested{"maintenance of the rack"});
  EXPECT_EQ(crew_.view().phase, "collecting updates");
  crew_.DeliverAll();
  EXPECT_EQ(crew_.view().head.version, 1);
  EXPECT_EQ(crew_.view().phase, "paused");
  EXPECT_EQ((*crew_.fleet.store()->LastRound())->id, 1);
  // The clients hear what became of their work all the same.
  EXPECT_EQ(crew_.at(0).Count<Verdict>(), 1);
  EXPECT_EQ(crew_.at(0).Count<Downstream>(), 1);
  EXPECT_EQ(crew_.StateOf(0), "waiting");
  EXPECT_EQ(Run().state, RunState::kPaused);
  EXPECT_EQ(Run().reason, "maintenance of the rack");
  EXPECT_EQ(crew_.fleet.engine()->NextDeadlineMicros(), kNever);
  crew_.Pass(1000);
  EXPECT_EQ((*crew_.fleet.store()->LastRound())->id, 1);
}

TEST_F(Operated, APauseSurvivesARestartAndEndsWithResume) {
  Handle(PauseRequested{"maintenance"});
  crew_.DeliverAll();
  crew_.Restart();
  crew_.Join(0);
  crew_.Join(1);
  EXPECT_EQ(crew_.view().phase, "paused");
  Handle(ResumeRequested{});
  EXPECT_EQ(crew_.view().phase, "collecting updates");
  EXPECT_EQ(crew_.Working(2).size(), 2);
  EXPECT_EQ(Run().state, RunState::kActive);
  EXPECT_EQ(Run().reason, "");
  EXPECT_EQ(EventsOf(crew_.fleet, "run_paused").size(), 1);
  EXPECT_EQ(EventsOf(crew_.fleet, "run_resumed").size(), 1);
}

// The operator was told that it stops, and its last evaluation may take long.
TEST_F(Operated, AStopSurvivesADeathBeforeTheLastEvaluation) {
  crew_.DeliverAll();
  crew_.fleet.hold_background(true);
  Handle(StopRequested{});
  EXPECT_EQ(Run().state, RunState::kStopping);
  crew_.Restart();
  crew_.Join(0);
  crew_.Join(1);
  EXPECT_EQ(crew_.view().phase, "finishing");
  EXPECT_EQ(crew_.at(0).Count<Finished>(), 1);
  EXPECT_EQ(crew_.at(0).Count<Assignment>(), 0);
  crew_.fleet.hold_background(false);
  Handle(Tick{});
  EXPECT_TRUE(crew_.view().ended);
  EXPECT_EQ(Run().state, RunState::kStopped);
  EXPECT_EQ(Run().reason, "stopped by the operator");
  EXPECT_EQ(EventsOf(crew_.fleet, "run_ended").size(), 1);
}

TEST_F(Operated, AnOpenRoundGoesOnAfterARestartInAPause) {
  Handle(PauseRequested{"maintenance"});
  crew_.Restart();
  crew_.Join(0);
  crew_.Join(1);
  crew_.DeliverAll();
  EXPECT_EQ(crew_.view().head.version, 1);
  EXPECT_EQ(crew_.view().phase, "paused");
}

TEST_F(Operated, PauseAndResumeTwiceAreOnce) {
  Handle(ResumeRequested{});
  Handle(PauseRequested{"first"});
  Handle(PauseRequested{"second"});
  EXPECT_EQ(Run().reason, "first");
  Handle(ResumeRequested{});
  Handle(ResumeRequested{});
  EXPECT_EQ(EventsOf(crew_.fleet, "run_paused").size(), 1);
  EXPECT_EQ(EventsOf(crew_.fleet, "run_resumed").size(), 1);
  crew_.DeliverAll();
  EXPECT_EQ(crew_.view().round, 2);
}

TEST_F(Operated, APausedRunCanBeStopped) {
  Handle(PauseRequested{"maintenance"});
  crew_.DeliverAll();
  Handle(StopRequested{});
  EXPECT_EQ(Run().state, RunState::kStopped);
  EXPECT_EQ(Run().reason, "stopped by the operator");
  EXPECT_EQ(crew_.at(0).Count<Finished>(), 1);
  Handle(PauseRequested{"too late"});
  Handle(ResumeRequested{});
  EXPECT_EQ(Run().state, RunState::kStopped);
}

TEST_F(Operated, AnAbortedRoundFoldsForwardAndTheRunGoesOn) {
  crew_.Deliver(0, 1);
  Handle(AbortRequested{"the data of round 1 were wrong"});
  EXPECT_EQ(crew_.RoundStateOf(1), RoundState::kAborted);
  EXPECT_EQ(EventsOf(crew_.fleet, "round_aborted").at(0).detail, "the data of round 1 were wrong");
  EXPECT_EQ(crew_.at(0).All<Verdict>().at(0).outcome, Outcome::kNotApplied);
  EXPECT_EQ(crew_.Record(1).failures, 0);  // nobody missed a deadline
  crew_.Deliver(1, 1);
  EXPECT_EQ(crew_.at(1).All<Verdict>().at(0).outcome, Outcome::kNotApplied);
  EXPECT_EQ(crew_.view().round, 2);
  crew_.DeliverAll();
  EXPECT_EQ(crew_.view().head.version, 1);
  EXPECT_EQ(Run().state, RunState::kActive);
}

TEST_F(Operated, WithoutAnOpenRoundThereIsNothingToAbort) {
  Handle(PauseRequested{"maintenance"});
  crew_.DeliverAll();
  Handle(AbortRequested{"mistake"});
  EXPECT_EQ(crew_.RoundStateOf(1), RoundState::kCommitted);
  EXPECT_TRUE(EventsOf(crew_.fleet, "round_aborted").empty());
}

TEST_F(Operated, DroppedSessionsAreToldToTryAgain) {
  crew_.fleet.engine()->DropSessions("the disk is full");
  for (int64_t i = 0; i < 2; ++i) {
    ASSERT_EQ(crew_.at(i).Count<Refusal>(), 1);
    EXPECT_TRUE(crew_.at(i).All<Refusal>()[0].retry);
    EXPECT_EQ(crew_.at(i).All<Refusal>()[0].reason, "the disk is full");
  }
}

RunConfig Limited(double seconds, double accuracy, double loss) {
  RunConfig config = GridRunConfig(2, 10);
  config.evaluate_every = 1;
  config.limits.seconds = seconds;
  config.limits.accuracy = accuracy;
  config.limits.loss = loss;
  return config;
}

TEST(EngineLimits, TheTimeEndsTheRunAndAbortsTheRound) {
  Crew crew(Limited(7, 0, 0), 2);
  crew.Deliver(0, 1);
  EXPECT_NEAR(crew.SecondsToDeadline(), 7, 0.01);
  crew.Pass(6.9);
  EXPECT_FALSE(crew.view().ended);
  crew.Pass(0.2);
  EXPECT_TRUE(crew.view().ended);
  const RunRecord run = **crew.fleet.store()->Run();
  EXPECT_EQ(run.state, RunState::kFinished);
  EXPECT_THAT(run.reason, HasSubstr("has used its"));
  EXPECT_EQ(crew.RoundStateOf(1), RoundState::kAborted);
  EXPECT_EQ(crew.at(0).All<Finished>().at(0).reason, run.reason);
  EXPECT_EQ(crew.fleet.engine()->NextDeadlineMicros(), kNever);
  crew.Restart();
  EXPECT_TRUE(crew.view().ended);
  EXPECT_EQ(EventsOf(crew.fleet, "run_ended").size(), 1);
}

TEST(EngineLimits, TheTimeIsOverWhileNobodyRan) {
  Crew crew(Limited(7, 0, 0), 2);
  crew.fleet.clock()->Advance(8);
  crew.Restart();
  EXPECT_TRUE(crew.view().ended);
  EXPECT_EQ(crew.RoundStateOf(1), RoundState::kAborted);
  EXPECT_EQ((*crew.fleet.store()->Run())->state, RunState::kFinished);
}

TEST(EngineLimits, ATargetThatIsReachedEndsTheRun) {
  for (const RunConfig& config : {Limited(0, 1e-9, 0), Limited(0, 0, 1)}) {
    Crew crew(config, 2);
    crew.DeliverAll();
    EXPECT_TRUE(crew.view().ended);
    const RunRecord run = **crew.fleet.store()->Run();
    EXPECT_EQ(run.state, RunState::kFinished);
    EXPECT_THAT(run.reason, HasSubstr("after round 1"));
    EXPECT_EQ(EventsOf(crew.fleet, "run_ended").at(0).detail, run.reason);
    EXPECT_EQ(crew.RoundStateOf(2), RoundState::kAborted);
    EXPECT_EQ(crew.view().head.version, 1);
  }
}

// An improvement that no evaluation can bring: the first one stays the best.
TEST(EngineLimits, PatienceOutlivesARestart) {
  RunConfig config = Limited(0, 0, 0);
  config.limits.patience = 3;
  config.limits.min_delta = 1e29;
  Crew crew(config, 2);
  for (int round = 1; round <= 3; ++round) {
    crew.DeliverAll();
    EXPECT_FALSE(crew.view().ended) << round;
  }
  crew.Restart();
  crew.Join(0);
  crew.Join(1);
  crew.DeliverAll();
  EXPECT_TRUE(crew.view().ended);
  const RunRecord run = **crew.fleet.store()->Run();
  EXPECT_EQ(run.state, RunState::kFinished);
  EXPECT_THAT(run.reason, HasSubstr("has not improved in 3 evaluations"));
  EXPECT_THAT(run.reason, HasSubstr("after round 1"));
  EXPECT_EQ(crew.view().head.version, 4);
}

// Rounds of 3 iterations; under a schedule, the first of 2.
RunConfig EnoughAfter(int64_t iterations, const std::string& control) {
  RunConfig config = GridRunConfig(2, 10);
  config.train.local_steps = 3;
  config.limits.iterations = iterations;
  config.control.name = control;
  config.control.at = {1};
  config.control.local_steps = {2, 3};
  return config;
}

TEST(EngineLimits, IterationsEnoughEndTheRun) {
  for (const auto& [control, rounds] : {std::pair("fixed", 2), std::pair("schedule", 3)}) {
    Crew crew(EnoughAfter(6, control), 2);
    for (int64_t round = 1; round < rounds; ++round) {
      crew.DeliverAll();
      EXPECT_FALSE(crew.view().ended) << control << round;
      crew.Restart();
      crew.Join(0);
      crew.Join(1);
    }
    crew.DeliverAll();
    EXPECT_TRUE(crew.view().ended) << control;
    EXPECT_EQ(crew.view().head.version, rounds);
    const RunRecord run = **crew.fleet.store()->Run();
    EXPECT_EQ(run.state, RunState::kFinished);
    EXPECT_EQ(run.reason, "the run's 6 iterations are done");
    EXPECT_EQ(crew.at(0).All<Finished>().at(0).reason, run.reason);
    EXPECT_EQ(crew.RoundStateOf(rounds), RoundState::kCommitted);
    crew.Restart();
    EXPECT_TRUE(crew.view().ended);
  }
}

TEST(EngineLimits, AnAbortedRoundsIterationsDoNotCount) {
  for (const auto& [control, iterations] : {std::pair("fixed", 6), std::pair("schedule", 5)}) {
    Crew crew(EnoughAfter(iterations, control), 2);
    crew.DeliverAll();
    crew.Deliver(0, 2);
    crew.Pass(crew.SecondsToDeadline() + 1);
    crew.Pass(crew.SecondsToDeadline() + 1);
    ASSERT_EQ(crew.RoundStateOf(2), RoundState::kAborted);
    crew.Restart();
    EXPECT_FALSE(crew.view().ended) << control;
    crew.Join(0);
    crew.Join(1);
    crew.DeliverAll();
    EXPECT_TRUE(crew.view().ended) << control;
    EXPECT_EQ(crew.view().iterations, iterations);
  }
}

TEST(EngineLimits, ATargetOutOfReachDoesNot) {
  Crew crew(Limited(0, 1.1, 1e-300), 2);
  for (int round = 1; round <= 3; ++round) crew.DeliverAll();
  EXPECT_EQ(crew.view().head.version, 3);
  EXPECT_FALSE(crew.view().ended);
}

// A run whose round 1 was evaluated so, by a process that died before it drew a conclusion: of an earlier release, for
// which both were two transactions.
void ReachTarget(Crew* crew, const Evaluation& evaluation) {
  crew->fleet.store()->fault = [](absl::string_view call, bool after) {
    return call == "SetEvaluation" && !after ? absl::InternalError("the process ends here") : absl::OkStatus();
  };
  crew->Deliver(0, 1);
  EXPECT_TRUE(absl::IsInternal(crew->at(1).Say(crew->MakeUpdate(1, 1))));
  crew->Restart();
  EXPECT_FALSE(crew->view().ended);
  EXPECT_EQ(crew->fleet.store()->SetEvaluation(1, evaluation), absl::OkStatus());
  crew->Restart();
  crew->Pass(0);  // the last checkpoint is written
}

TEST(EngineLimits, ATargetIsNotForgottenWhenTheProcessDies) {
  Crew crew(Limited(0, 1e-9, 0), 2);
  ReachTarget(&crew, {0.5, 1});
  EXPECT_TRUE(crew.view().ended);
  EXPECT_THAT((*crew.fleet.store()->Run())->reason, HasSubstr("target accuracy"));
}

// In regression only the loss says that a round was evaluated.
TEST(EngineLimits, ATargetLossNeedsNoAccuracy) {
  Crew crew(Limited(0, 0.5, 1), 2);
  ReachTarget(&crew, {absl::nullopt, 0.25});
  EXPECT_TRUE(crew.view().ended);
  EXPECT_THAT((*crew.fleet.store()->Run())->reason, HasSubstr("target loss"));
  EXPECT_TRUE(crew.fleet.background()->evaluated_rounds.empty()) << "the round was evaluated already";
}

TEST(EngineAdmission, OnlyNamesOnTheListJoin) {
  RunConfig config = GridRunConfig(2, 10);
  config.clients.allow = {"c0", "lab-*"};
  Crew crew(config, 1);
  EXPECT_EQ(crew.at(0).Count<Welcome>(), 1);
  ScriptedClient lab(&crew.fleet, "lab-7", 2001), other(&crew.fleet, "c1", 2002);
  ASSERT_EQ(lab.SayCheckIn(), absl::OkStatus());
  EXPECT_EQ(lab.Count<Welcome>(), 1);
  ASSERT_EQ(other.SayCheckIn(), absl::OkStatus());
  EXPECT_EQ(other.Count<Welcome>(), 0);
  ASSERT_EQ(other.Count<Refusal>(), 1);
  EXPECT_FALSE(other.All<Refusal>()[0].retry);
  EXPECT_THAT(other.All<Refusal>()[0].reason, HasSubstr("clients.allow"));
  EXPECT_EQ(EventsOf(crew.fleet, "client_refused").size(), 1);
  EXPECT_EQ(crew.fleet.store()->Clients()->size(), 2);
}

TEST(EngineAdmission, ACheckInForAnotherRunIsRefused) {
  Crew crew(GridRunConfig(2, 10), 0);
  for (const char* run : {"grid", "another"}) {
    CheckIn message;
    message.name = "c0";
    message.run = run;
    ScriptedClient client(&crew.fleet, "c0", 2000 + message.run.size());
    ASSERT_EQ(client.Say(message), absl::OkStatus());
    EXPECT_EQ(client.Count<Welcome>(), message.run == "grid" ? 1 : 0);
  }
}

CheckIn FromAnotherRun() {
  CheckIn message;
  message.name = "c0";
  message.lineage = HashBytes("another run");
  message.prev_applied = HashBytes("its last update");
  message.pending_update_id = HashBytes("its pending update");
  message.pending_round = 1;
  return message;
}

TEST(EngineAdmission, AClientThatComesFromAnEndedRunLostNothing) {
  Crew crew(GridRunConfig(2, 10), 0);
  ScriptedClient client(&crew.fleet, "c0", 2001);
  ASSERT_EQ(client.Say(FromAnotherRun()), absl::OkStatus());
  EXPECT_FALSE(client.All<Welcome>().at(0).verdict.has_value());
  EXPECT_EQ(crew.Record(0).resets, 0);
  EXPECT_TRUE(EventsOf(crew.fleet, "residual_lost").empty());
}

TEST(EngineAdmission, WorkForThisRunIsLostWhenItsClientComesWithAnotherRunsState) {
  Crew crew(GridRunConfig(2, 10), 0);
  ASSERT_EQ(crew.fleet.store()->RegisterClient("c0", 1).status(), absl::OkStatus());
  ASSERT_EQ(crew.fleet.store()->RecordNotApplied(0), absl::OkStatus());  // it folded into the residual
  ScriptedClient client(&crew.fleet, "c0", 2001);
  ASSERT_EQ(client.Say(FromAnotherRun()), absl::OkStatus());
  EXPECT_FALSE(client.All<Welcome>().at(0).verdict.has_value());
  EXPECT_EQ(crew.Record(0).resets, 1);
  ASSERT_EQ(EventsOf(crew.fleet, "residual_lost").size(), 1);
  EXPECT_THAT(EventsOf(crew.fleet, "residual_lost")[0].detail, HasSubstr("another run"));
}

// Every transaction of a check-in is a sync of the disk that a thousand clients wait for after a restart.
TEST(EngineAdmission, ACheckInIsOneTransaction) {
  Crew crew(GridRunConfig(2, 10), 1);
  std::vector<std::string> writes;
  crew.fleet.store()->fault = [&](absl::string_view call, bool after) {
    const bool reads = call == "GetClient" || call == "GetRoundState" || call == "GetHead" || call == "Run";
    if (call == "BeginBatch" && !after) writes.clear();
    if (after && !reads) writes.push_back(std::string(call));
    return absl::OkStatus();
  };
  crew.Connect(0);
  EXPECT_THAT(writes, ::testing::ElementsAre("BeginBatch", "RegisterClient", "AddEvent", "CommitBatch"));
}

TEST(EngineAdmission, AnUpdateBeforeReadyIsRefused) {
  Crew crew(GridRunConfig(2, 10), 2);
  crew.Connect(0);
  crew.Deliver(0, 1);
  EXPECT_EQ(crew.at(0).Count<Refusal>(), 1);
  EXPECT_EQ(crew.at(0).Count<Receipt>(), 0);
}

}  // namespace
}  // namespace terse
