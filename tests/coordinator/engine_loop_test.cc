// EventLoop and BackgroundWorker with real threads.
#include <algorithm>
#include <atomic>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "coordinator/background.h"
#include "coordinator/event_loop.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/fleet_simulation.h"
#include "tests/testing/scripted_client.h"
#include "tests/testing/temp_directory.h"

namespace terse {
namespace {

using ::testing::ElementsAre;

// A loop on a real engine, whose timer is due `deadline_seconds` after its round opened.
class Loop : public ::testing::Test {
 protected:
  Loop() : fleet_(GridRunConfig(1, 1000), 0), loop_(fleet_.clock()) {
    EXPECT_EQ(fleet_.StartCoordinator(), absl::OkStatus());
  }
  void Start() {
    thread_ = std::thread([this] { result_ = loop_.Run(fleet_.engine()); });
  }
  absl::Status Join() {
    thread_.join();
    return result_;
  }
  // In the loop's thread: everything that was posted before has been handled.
  void WaitForQueue() {
    ASSERT_EQ(loop_.Call([] {}), absl::OkStatus());
  }

  FleetSimulation fleet_;
  EventLoop loop_;
  std::thread thread_;
  absl::Status result_;
};

TEST_F(Loop, EventsKeepTheirOrderAlsoFromBeforeRun) {
  std::vector<std::shared_ptr<RecordingLink>> links;
  for (SessionId id = 1; id <= 3; ++id) {
    links.push_back(std::make_shared<RecordingLink>());
    loop_.Post(Connected{id, links.back()});
    CheckIn message;
    message.name = "a";  // each replaces the one before
    loop_.Post(Received{id, message});
  }
  Start();
  WaitForQueue();
  loop_.Quit();
  EXPECT_EQ(Join(), absl::OkStatus());
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(std::holds_alternative<Welcome>(links[i]->sent.at(0))) << i;
    EXPECT_EQ(links[i]->sent.size(), i < 2 ? 2 : 1) << i;
  }
}

TEST_F(Loop, ManyThreadsMayPost) {
  Start();
  std::vector<std::thread> posters;
  for (SessionId id = 1; id <= 8; ++id) {
    posters.emplace_back([this, id] {
      loop_.Post(Connected{id, std::make_shared<RecordingLink>()});
      for (int i = 0; i < 50; ++i) loop_.Post(Received{id, Progress{1, i}});
      EXPECT_EQ(loop_.Call([] {}), absl::OkStatus());
      loop_.Post(Disconnected{id});
      fleet_.engine()->View();
    });
  }
  for (std::thread& poster : posters) poster.join();
  WaitForQueue();
  loop_.Quit();
  EXPECT_EQ(Join(), absl::OkStatus());
  EXPECT_TRUE(fleet_.engine()->View().sessions.empty());
}

TEST_F(Loop, APosterHearsWhetherItsEventWasHandledOrDropped) {
  std::vector<bool> heard;
  loop_.Post(Connected{1, std::make_shared<RecordingLink>()}, [&](bool handled) { heard.push_back(handled); });
  EXPECT_TRUE(heard.empty()) << "nothing runs yet";
  Start();
  WaitForQueue();
  EXPECT_EQ(heard, std::vector<bool>({true}));
  loop_.Quit();
  EXPECT_EQ(Join(), absl::OkStatus());
  loop_.Post(Disconnected{1}, [&](bool handled) { heard.push_back(handled); });
  EXPECT_EQ(heard, std::vector<bool>({true, false}));
}

TEST_F(Loop, CallsRunInTheLoopsThreadAndEndWithTheLoop) {
  Start();
  std::thread::id ran_in;
  ASSERT_EQ(loop_.Call([&] { ran_in = std::this_thread::get_id(); }), absl::OkStatus());
  EXPECT_EQ(ran_in, thread_.get_id());
  // A call that waits in the queue when the loop ends is answered too, and so is one that comes afterwards.
  absl::Notification busy, go_on;
  std::thread blocker([&] {
    EXPECT_EQ(loop_.Call([&] {
      busy.Notify();
      go_on.WaitForNotification();
    }),
              absl::OkStatus());
  });
  busy.WaitForNotification();
  std::atomic<bool> ran{false};
  absl::Status waiting;
  std::thread waiter([&] { waiting = loop_.Call([&] { ran = true; }); });
  absl::SleepFor(absl::Milliseconds(20));
  loop_.Quit();
  waiter.join();
  go_on.Notify();
  blocker.join();
  EXPECT_TRUE(absl::IsCancelled(waiting));
  EXPECT_FALSE(ran);
  EXPECT_EQ(Join(), absl::OkStatus());
  EXPECT_TRUE(absl::IsCancelled(loop_.Call([&] { ran = true; })));
  EXPECT_FALSE(ran);
}

class LoopWithARound : public Loop {
 protected:
  LoopWithARound() {
    ScriptedClient client(&fleet_, "a", 1);
    EXPECT_EQ(client.SayCheckIn(), absl::OkStatus());
    EXPECT_EQ(client.SayReady(), absl::OkStatus());
    EXPECT_EQ(fleet_.engine()->View().round, 1);
  }
};

TEST_F(LoopWithARound, TheTimerFollowsTheClock) {
  Start();
  WaitForQueue();
  EXPECT_EQ(fleet_.engine()->View().round, 1);
  fleet_.clock()->Advance(fleet_.config().rounds.deadline_seconds + 1);
  WaitForQueue();  // wakes the loop: it looks at the clock again
  WaitForQueue();
  EXPECT_EQ(fleet_.engine()->View().phase, "waiting for clients");  // round 1 was aborted without a quorum
  loop_.Quit();
  EXPECT_EQ(Join(), absl::OkStatus());
}

TEST_F(LoopWithARound, AQueueThatNeverEmptiesDoesNotHoldTheTimerUp) {
  fleet_.clock()->Advance(fleet_.config().rounds.deadline_seconds + 1);
  std::string phase_at_first_item;
  std::thread caller([&] {
    EXPECT_EQ(loop_.Call([&] { phase_at_first_item = fleet_.engine()->View().phase; }), absl::OkStatus());
    loop_.Quit();
  });
  absl::SleepFor(absl::Milliseconds(20));
  Start();
  caller.join();
  EXPECT_EQ(Join(), absl::OkStatus());
  EXPECT_EQ(phase_at_first_item, "waiting for clients");
}

// On a machine so slow that every look at the clock finds the next deadline passed, each tick gives one client's round
// up and opens the next client's.
TEST(SlowLoop, ATimerThatIsAlwaysDueDoesNotHoldTheQueueUp) {
  RunConfig config = GridRunConfig(20, 1000);
  config.rounds.selection = Selection::kRandom;
  config.rounds.cohort = config.rounds.invited = config.rounds.quorum = 1;
  FleetSimulation fleet(config, 0);
  ASSERT_EQ(fleet.StartCoordinator(), absl::OkStatus());
  std::vector<std::unique_ptr<ScriptedClient>> clients;
  for (SessionId id = 1; id <= 20; ++id) {
    clients.push_back(std::make_unique<ScriptedClient>(&fleet, absl::StrCat("c", id), id));
    ASSERT_EQ(clients.back()->SayCheckIn(), absl::OkStatus());
    ASSERT_EQ(clients.back()->SayReady(), absl::OkStatus());
  }
  ASSERT_EQ(fleet.engine()->View().round, 1);
  fleet.clock()->Advance(config.rounds.deadline_seconds + 1);
  fleet.clock()->set_step(100);
  EventLoop loop(fleet.clock());
  int64_t round = 0;
  // Hears that it was handled when the loop lets go of it, which is soon enough to look.
  loop.Post(Received{1, Progress{1, 1}}, [&](bool handled) {
    round = fleet.engine()->View().round;
    loop.Quit();
  });
  EXPECT_EQ(loop.Run(fleet.engine()), absl::OkStatus());
  EXPECT_EQ(round, 2) << "one tick, then what waits";
}

TEST_F(LoopWithARound, AnErrorOfTheEngineEndsTheLoop) {
  fleet_.store()->fault = [](absl::string_view, bool) { return absl::InternalError("the disk is gone"); };
  Start();
  loop_.Post(StopRequested{});
  EXPECT_TRUE(absl::IsInternal(Join()));
  EXPECT_TRUE(absl::IsCancelled(loop_.Call([] {})));
}

TEST(LoopAfterQuit, ResultsAreNotLost) {
  RunConfig config = GridRunConfig(2, 2);
  config.evaluate_every = 1;
  FleetSimulation fleet(config, 2);
  ASSERT_EQ(fleet.StartAll(), absl::OkStatus());
  fleet.hold_background(true);
  ASSERT_EQ(fleet.Settle(), absl::OkStatus());
  EventLoop loop(fleet.clock());
  loop.Post(*fleet.background()->RunOne());
  loop.Post(Disconnected{1});
  loop.Quit();
  loop.Post(Disconnected{2});
  loop.Post(Evaluated{2, absl::UnavailableError("told to stop")});
  while (absl::optional<Event> done = fleet.background()->RunOne()) loop.Post(*std::move(done));
  ASSERT_FALSE((*fleet.store()->LastRound())->evaluated());
  EXPECT_EQ(loop.Run(fleet.engine()), absl::OkStatus());
  EXPECT_FALSE((*fleet.store()->LastRound())->evaluated()) << "a loop that was told to quit decides nothing";
  EXPECT_EQ(loop.waiting(), 3) << "two evaluations and the last checkpoint; not clients, nor what failed";
  EXPECT_EQ(loop.HandleResults(fleet.engine()), absl::OkStatus());
  EXPECT_TRUE((*fleet.store()->LastRound())->evaluated());
  EXPECT_EQ(loop.waiting(), 0);
  EXPECT_EQ(loop.HandleResults(fleet.engine()), absl::OkStatus()) << "nothing is left";
}

class SlowEvaluator : public Evaluator {
 public:
  absl::StatusOr<Evaluation> Evaluate(absl::Span<const float> weights) override {
    started.fetch_add(1);
    release.WaitForNotification();
    return Evaluation{weights[0], 0};
  }
  bool sets_own_pace() const override { return own_pace; }

  bool own_pace = false;
  std::atomic<int> started{0};
  absl::Notification release;
};

// Room for what the worker posts, in order.
class Posted {
 public:
  void Add(Event event) {
    absl::MutexLock lock(&mutex_);
    const auto* evaluated = std::get_if<Evaluated>(&event);
    rounds_.push_back(evaluated != nullptr ? evaluated->round : -std::get<CheckpointWritten>(event).version);
  }
  std::vector<int64_t> rounds() {
    absl::MutexLock lock(&mutex_);
    return rounds_;
  }

 private:
  absl::Mutex mutex_;
  std::vector<int64_t> rounds_ ABSL_GUARDED_BY(mutex_);
};

class BackgroundWorkerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    RunRecord record;
    record.lineage = HashBytes("run");
    record.parameters = 2;
    ASSERT_EQ(store_->CreateRun(record, *weights_), absl::OkStatus());
  }

  HeldCheckpoint Checkpoint() const { return {0, HashWeights(*weights_), weights_}; }

  TempDirectory directory_;
  const std::unique_ptr<RunStore> store_ = *RunStore::Open(directory_.path());
  const SharedWeights weights_ = std::make_shared<const std::vector<float>>(std::vector<float>{1, 2});
  SlowEvaluator evaluator_;
  Posted posted_;
};

TEST_F(BackgroundWorkerTest, WorksInOrderAndFinishesItsQueue) {
  evaluator_.release.Notify();
  {
    BackgroundWorker worker(&evaluator_, store_.get(), 1, [&](Event event) { posted_.Add(std::move(event)); });
    for (int64_t round = 1; round <= 10; ++round) worker.Evaluate(round, weights_);
    worker.WriteCheckpoint(Checkpoint());
    worker.Evaluate(11, weights_);
  }
  std::vector<int64_t> rounds = posted_.rounds();
  EXPECT_EQ(std::count(rounds.begin(), rounds.end(), 0), 1) << "the checkpoint";
  rounds.erase(std::remove(rounds.begin(), rounds.end(), 0), rounds.end());
  EXPECT_THAT(rounds, ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
}

TEST_F(BackgroundWorkerTest, AnEvaluationThatTakesLongHoldsNoCheckpointUp) {
  BackgroundWorker worker(&evaluator_, store_.get(), 1, [&](Event event) { posted_.Add(std::move(event)); });
  worker.Evaluate(1, weights_);
  worker.WriteCheckpoint(Checkpoint());
  while (posted_.rounds().empty()) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_THAT(posted_.rounds(), ElementsAre(0));
  evaluator_.release.Notify();
}

// One that is a program of the user's own never holds rounds up.
TEST_F(BackgroundWorkerTest, AnEvaluatorOfItsOwnPaceMissesWhatItHasNoRoomFor) {
  evaluator_.own_pace = true;
  {
    BackgroundWorker worker(&evaluator_, store_.get(), 1, [&](Event event) { posted_.Add(std::move(event)); });
    worker.Evaluate(1, weights_);
    while (evaluator_.started.load() == 0) absl::SleepFor(absl::Milliseconds(1));
    for (int64_t round = 2; round <= BackgroundWorker::kMaxQueued + 3; ++round) worker.Evaluate(round, weights_);
    EXPECT_THAT(posted_.rounds(), ElementsAre(6, 7));
    evaluator_.release.Notify();
  }
  EXPECT_THAT(posted_.rounds(), ElementsAre(6, 7, 1, 2, 3, 4, 5));
}

TEST_F(BackgroundWorkerTest, HoldsNoMoreThanItsLimit) {
  BackgroundWorker worker(&evaluator_, nullptr, 1, [&](Event event) { posted_.Add(std::move(event)); });
  std::atomic<int> queued{0};
  std::thread caller([&] {
    for (int64_t round = 1; round <= BackgroundWorker::kMaxQueued + 3; ++round) {
      worker.Evaluate(round, std::make_shared<const std::vector<float>>(std::vector<float>{0.5f}));
      queued.fetch_add(1);
    }
  });
  while (queued.load() < BackgroundWorker::kMaxQueued + 1) absl::SleepFor(absl::Milliseconds(1));
  absl::SleepFor(absl::Milliseconds(20));
  EXPECT_EQ(queued.load(), BackgroundWorker::kMaxQueued + 1);  // one is in hand, the rest waits
  EXPECT_EQ(evaluator_.started.load(), 1);
  evaluator_.release.Notify();
  caller.join();
}

}  // namespace
}  // namespace terse
