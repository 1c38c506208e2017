// The protocol's steps on the server (docs/PROTOCOL.md): what each changes, and what each refuses.
#include "storage/run_store.h"

#include <cmath>
#include <functional>
#include <limits>
#include <tuple>

#include "absl/strings/ascii.h"
#include "tests/storage/store_place.h"

namespace terse {
namespace {

// A run with clients a, b, c and round 1 closed with updates of a and b.
void OpenRoundOne(RunStore& store) {
  ASSERT_OK(store.CreateRun(TestRun(4), TestWeights(0)));
  for (const char* name : {"a", "b", "c"}) ASSERT_OK(store.RegisterClient(name, 5).status());
  ASSERT_OK(store.OpenRound(1, 0, 1000));
}

void CloseRoundOne(RunStore& store) {
  OpenRoundOne(store);
  ASSERT_OK(store.CloseRound(1, {TestUpdate(0, 1, Id128()), TestUpdate(1, 1, Id128())}, 1002));
}

class RunStoreTest : public ::testing::TestWithParam<SqlEngine> {
 protected:
  void SetUp() override { Reopen(); }
  void Reopen() {
    store_.reset();
    auto store = place_.Open();
    ASSERT_OK(store.status());
    store_ = *std::move(store);
  }
  void CreateRun() { ASSERT_OK(store_->CreateRun(TestRun(4), TestWeights(0))); }
  void CloseFirstRound() { CloseRoundOne(*store_); }
  void ExpectRefusedAndUnchanged(const std::function<absl::Status()>& call, absl::StatusCode code,
                                 const std::string& part) {
    const std::string before = place_.Dump();
    const absl::Status status = call();
    EXPECT_EQ(status.code(), code) << status;
    // SQLite has the name of a constraint's kind in capitals.
    EXPECT_THAT(absl::AsciiStrToLower(status.message()), ::testing::HasSubstr(absl::AsciiStrToLower(part)));
    EXPECT_EQ(place_.Dump(), before) << status;
  }

  const StorePlace place_{GetParam()};
  std::unique_ptr<RunStore> store_;
};

TERSE_ON_BOTH_ENGINES(RunStoreTest);

constexpr absl::StatusCode kRefused = absl::StatusCode::kFailedPrecondition;

TEST_P(RunStoreTest, ANewStoreIsEmpty) {
  EXPECT_EQ(*store_->Run(), absl::nullopt);
  EXPECT_EQ(store_->GetHead()->version, 0);
  EXPECT_TRUE(store_->GetHead()->model_hash.IsZero());
  EXPECT_EQ(store_->GetHead()->epoch, 1);
  EXPECT_EQ(store_->LastRound()->has_value(), false);
  EXPECT_EQ(*store_->GetRoundState(1), absl::nullopt);
  EXPECT_FALSE(*store_->WasChosen(1, 0));
  EXPECT_CODE(store_->ReadNewestCheckpoint().status(), kDataLoss, "none is recorded");
  EXPECT_CODE(store_->NewestCheckpointFile().status(), kNotFound, "no checkpoint yet");
  EXPECT_CODE(store_->SetRunState(RunState::kStopped, "x"), kFailedPrecondition, "no run yet");
  EXPECT_CODE(store_->OpenRound(1, 0, 1), kFailedPrecondition, "no run yet");
  EXPECT_CODE(store_->GetClient(0).status(), kNotFound, "no client 0");
}

TEST_P(RunStoreTest, CreatesOneRun) {
  CreateRun();
  Reopen();
  const auto run = store_->Run();
  ASSERT_OK(run.status());
  EXPECT_EQ((*run)->name, "mnist");
  EXPECT_EQ((*run)->lineage, (Id128{7, 7}));
  EXPECT_EQ((*run)->config, TestRun(4).config);
  EXPECT_EQ((*run)->parameters, 4);
  EXPECT_EQ((*run)->created_us, 100);
  EXPECT_EQ((*run)->state, RunState::kActive);
  EXPECT_EQ(store_->GetHead()->model_hash, TestHash(0));
  EXPECT_EQ(store_->GetHead()->epoch, 2);
  EXPECT_EQ(store_->ReadNewestCheckpoint()->weights, TestWeights(0));
  ExpectRefusedAndUnchanged([&] { return store_->CreateRun(TestRun(4), TestWeights(1)); },
                            absl::StatusCode::kAlreadyExists, "holds run 'mnist'");
  EXPECT_EQ(store_->ReadNewestCheckpoint()->weights, TestWeights(0));
  ASSERT_OK(store_->SetRunState(RunState::kFinished, "all rounds are done"));
  EXPECT_EQ((*store_->Run())->state, RunState::kFinished);
}

TEST_P(RunStoreTest, ARunPausesGoesOnAndEndsWithAReason) {
  RunRecord run = TestRun(4);
  run.state = RunState::kPaused;
  run.reason = "created paused";
  ASSERT_OK(store_->CreateRun(run, TestWeights(0)));
  const auto expect = [&](RunState state, const std::string& reason) {
    Reopen();
    const auto found = *store_->Run();
    EXPECT_EQ(found->state, state);
    EXPECT_EQ(found->reason, reason);
  };
  expect(RunState::kPaused, "created paused");
  for (const auto& [state, reason] :
       {std::pair(RunState::kActive, ""), std::pair(RunState::kPaused, "maintenance"),
        std::pair(RunState::kStopped, "by hand"), std::pair(RunState::kFinished, "accuracy 0.99 reached")}) {
    ASSERT_OK(store_->SetRunState(state, reason));
    expect(state, reason);
  }
}

TEST_P(RunStoreTest, APlanIsKeptWithItsRound) {
  CreateRun();
  ASSERT_OK(store_->RegisterClient("a", 1).status());
  const RoundPlan first{3, 2, 0, "a reason"}, second{4, 255, 3, ""};
  ASSERT_OK(store_->OpenRound(1, 0, 1, first));
  ASSERT_OK(store_->CloseRound(1, {}, 2));
  Commit commit = TestCommit(1);
  commit.next_plan = second;
  ASSERT_OK(store_->CommitRound(commit, /*open_next=*/true));
  ASSERT_OK(store_->AbortRound(2, "because", 3));
  ASSERT_OK(store_->OpenRound(3, 1, 4));
  Reopen();
  const std::vector<RoundRecord> rounds = *store_->Rounds(1, 3);
  EXPECT_TRUE(rounds[0].plan == first);
  EXPECT_TRUE(rounds[1].plan == second);
  EXPECT_FALSE(rounds[2].plan.has_value());
}

TEST_P(RunStoreTest, FailuresInARowAreCountedUntilAnUpdateIsCommitted) {
  CreateRun();
  EXPECT_EQ(store_->RegisterClient("a", 1)->reliability, 1);
  EXPECT_EQ(store_->RecordFailure(0)->failures, 1);
  const auto twice = store_->RecordFailure(0);
  ASSERT_OK(twice.status());
  EXPECT_EQ(twice->failures, 2);
  EXPECT_DOUBLE_EQ(twice->reliability, 0.81);
  EXPECT_EQ(twice->name, "a");
  ASSERT_OK(RunRound(*store_, 1));
  EXPECT_EQ(store_->GetClient(0)->failures, 0);
  EXPECT_DOUBLE_EQ(store_->GetClient(0)->reliability, 0.9 * 0.81 + 0.1);
  EXPECT_CODE(store_->RecordFailure(7).status(), kNotFound, "no client 7");
}

TEST_P(RunStoreTest, ClientsAreSetAsideAndReadmitted) {
  CreateRun();
  for (const char* name : {"a", "b"}) ASSERT_OK(store_->RegisterClient(name, 1).status());
  ASSERT_OK(store_->RecordFailure(1).status());
  ASSERT_OK(store_->SetAside(1, 5000, "3 failures in a row"));
  Reopen();
  EXPECT_EQ(store_->GetClient(1)->set_aside_until_us, 5000);
  EXPECT_EQ(store_->GetClient(1)->set_aside_reason, "3 failures in a row");
  EXPECT_EQ(store_->GetClient(1)->failures, 1);
  EXPECT_EQ(store_->GetClient(0)->set_aside_until_us, 0);
  ASSERT_OK(store_->SetAside(1, 0, "by hand"));
  EXPECT_EQ(store_->GetClient(1)->set_aside_until_us, 0);
  EXPECT_EQ(store_->GetClient(1)->set_aside_reason, "");
  EXPECT_EQ(store_->GetClient(1)->failures, 0);
  const auto events = *store_->Events(10);
  ASSERT_EQ(events.size(), 2);
  EXPECT_EQ(events[0].kind, "client_set_aside");
  EXPECT_EQ(events[0].client, 1);
  EXPECT_EQ(events[0].detail, "3 failures in a row");
  EXPECT_EQ(events[1].kind, "client_readmitted");
  EXPECT_EQ(events[1].detail, "by hand");
  ExpectRefusedAndUnchanged([&] { return store_->SetAside(7, 1, "x"); }, kRefused, "no client 7");
}

TEST_P(RunStoreTest, SamplesBelongToTheClientAndToItsUpdate) {
  CreateRun();
  ASSERT_OK(store_->RegisterClient("a", 1).status());
  ASSERT_OK(store_->SetSamples(0, 600));
  ASSERT_OK(store_->OpenRound(1, 0, 1));
  ChosenUpdate update = TestUpdate(0, 1, Id128());
  update.samples = 599;
  ASSERT_OK(store_->CloseRound(1, {update}, 2));
  Reopen();
  EXPECT_EQ(store_->GetClient(0)->samples, 600);
  EXPECT_EQ(place_.Count("updates WHERE samples = 599"), 1);
  ExpectRefusedAndUnchanged([&] { return store_->SetSamples(0, -1); }, kRefused, "CHECK");
  ExpectRefusedAndUnchanged([&] { return store_->SetSamples(7, 1); }, kRefused, "no client 7");
}

TEST_P(RunStoreTest, WhatRelaysSayIsKeptAsTheySaidItLast) {
  CreateRun();
  EXPECT_TRUE(store_->Below()->empty());
  for (const char* const name : {"a", "b", "c"}) ASSERT_OK(store_->RegisterClient(name, 1).status());
  ASSERT_OK(store_->SetBelow({2, {1, 2, 3, 4, 5}}));
  ASSERT_OK(store_->SetBelow({0, {9, 9, 9, 9, 9}}));
  ASSERT_OK(store_->SetBelow({0, {10, 100, 120, 200, 240}}));
  Reopen();
  const std::vector<BelowRecord> below = store_->Below().value();
  ASSERT_EQ(below.size(), 2u);
  EXPECT_EQ(below[0].client, 0);
  EXPECT_EQ(below[0].facts.clients, 10);
  EXPECT_EQ(below[0].facts.payload_bytes_up, 100);
  EXPECT_EQ(below[0].facts.wire_bytes_up, 120);
  EXPECT_EQ(below[0].facts.payload_bytes_down, 200);
  EXPECT_EQ(below[0].facts.wire_bytes_down, 240);
  EXPECT_EQ(below[1].client, 2);
  EXPECT_EQ(below[1].facts.clients, 1);
  ExpectRefusedAndUnchanged([&] { return store_->SetBelow({0, {0, -1, 0, 0, 0}}); }, kRefused, "CHECK");
  ExpectRefusedAndUnchanged([&] { return store_->SetBelow({7, {}}); }, kRefused, "FOREIGN KEY");
}

TEST_P(RunStoreTest, RefusesARunThatCannotBe) {
  EXPECT_CODE(store_->CreateRun(TestRun(5), TestWeights(0)), kInvalidArgument, "5 parameters and 4 initial weights");
  EXPECT_CODE(store_->CreateRun(TestRun(0), {}), kInvalidArgument, "0 parameters");
  RunRecord run = TestRun(4);
  run.lineage = Id128();
  EXPECT_CODE(store_->CreateRun(run, TestWeights(0)), kInvalidArgument, "lineage");
}

TEST_P(RunStoreTest, ASecondOpenerIsRefused) {
  EXPECT_CODE(place_.Open().status(), kFailedPrecondition, "in use by another process");
  EXPECT_EQ(store_->GetHead()->epoch, 1);
}

TEST_P(RunStoreTest, ClientsAreNumberedInOrderOfCheckIn) {
  EXPECT_EQ(store_->RegisterClient("b", 10)->id, 0);
  EXPECT_EQ(store_->RegisterClient("a", 20)->id, 1);
  const auto again = store_->RegisterClient("b", 30);
  EXPECT_EQ(again->id, 0);
  EXPECT_EQ(again->first_seen_us, 10);
  EXPECT_EQ(again->last_seen_us, 30);
  EXPECT_TRUE(again->last_applied.IsZero());
  ASSERT_OK(store_->RecordReset(1));
  ASSERT_OK(store_->RecordNotApplied(1));
  ASSERT_OK(store_->RecordNotApplied(1));
  EXPECT_EQ(store_->GetClient(1)->resets, 1);
  EXPECT_EQ(store_->GetClient(1)->updates_not_applied, 2);
  EXPECT_EQ(store_->Clients()->size(), 2);
  EXPECT_EQ(store_->Clients()->at(0).name, "b");
  EXPECT_CODE(store_->RegisterClient("", 1).status(), kInvalidArgument, "name");
  EXPECT_CODE(store_->RecordReset(2), kFailedPrecondition, "no client 2");
  EXPECT_CODE(store_->RecordNotApplied(2), kFailedPrecondition, "no client 2");
}

TEST_P(RunStoreTest, ACommitMovesEverythingTogether) {
  CloseFirstRound();
  EXPECT_EQ(*store_->GetRoundState(1), RoundState::kClosed);
  EXPECT_TRUE(*store_->WasChosen(1, 0));
  EXPECT_FALSE(*store_->WasChosen(1, 2));
  const absl::optional<RunStore::Fate> fate = *store_->FateOf(TestUpdate(1, 1, Id128()).update_id, 1, 1);
  ASSERT_TRUE(fate.has_value());
  EXPECT_EQ(fate->client, 1);
  EXPECT_EQ(fate->state, **store_->GetRoundState(1));
  EXPECT_FALSE((*store_->FateOf(Id128{1, 99}, 1, 1)).has_value());
  EXPECT_EQ(*store_->BaseVersionOf(1), absl::optional<int64_t>(0));
  EXPECT_EQ(*store_->BaseVersionOf(77), absl::nullopt);
  EXPECT_TRUE(store_->GetClient(0)->last_applied.IsZero());
  Commit commit = TestCommit(1);
  commit.ledger = {{1, 0, Direction::kUp, 100, 10, 12}, {1, 1, Direction::kDown, 200, 20, 22}};
  ASSERT_OK(store_->CommitRound(commit, true));

  EXPECT_EQ(store_->GetHead()->version, 1);
  EXPECT_EQ(store_->GetHead()->model_hash, TestHash(1));
  EXPECT_EQ(store_->GetClient(0)->last_applied, TestUpdate(0, 1, Id128()).update_id);
  EXPECT_EQ(store_->GetClient(0)->updates_applied, 1);
  EXPECT_TRUE(store_->GetClient(2)->last_applied.IsZero());
  const std::vector<LogMessage> log = *store_->ReadLog(0, 1);
  ASSERT_EQ(log.size(), 1);
  EXPECT_EQ(log[0].version, 1);
  EXPECT_EQ(log[0].model_hash, TestHash(1));
  EXPECT_EQ(log[0].downstream, "message 1");
  const std::vector<RoundRecord> rounds = *store_->Rounds(1, 9);
  ASSERT_EQ(rounds.size(), 2);
  EXPECT_EQ(rounds[0].state, RoundState::kCommitted);
  EXPECT_EQ(rounds[0].opened_us, 1000);
  EXPECT_EQ(rounds[0].closed_us, 1002);
  EXPECT_EQ(rounds[0].committed_us, 1003);
  EXPECT_EQ(rounds[0].updates, 2);
  EXPECT_EQ(rounds[0].train_us_max, 1001);
  EXPECT_DOUBLE_EQ(rounds[0].train_loss, 1.0);
  EXPECT_EQ(rounds[0].payload_bytes_up, 10);
  EXPECT_EQ(rounds[0].wire_bytes_down, 22);
  EXPECT_EQ(rounds[1].state, RoundState::kOpen);
  EXPECT_EQ(rounds[1].base_version, 1);
  EXPECT_EQ((*store_->LastRound())->id, 2);
  EXPECT_EQ(store_->Rounds(1, 1)->size(), 1);
  EXPECT_EQ(store_->Rounds(2, 1)->size(), 0);
}

TEST_P(RunStoreTest, RoundsOpenOnlyInOrderAndOnTheHead) {
  CreateRun();
  ASSERT_OK(store_->RegisterClient("a", 5).status());
  ExpectRefusedAndUnchanged([&] { return store_->OpenRound(2, 0, 1); }, kRefused, "the next one is 1");
  ExpectRefusedAndUnchanged([&] { return store_->OpenRound(1, 1, 1); }, kRefused, "the head is 0");
  ASSERT_OK(store_->OpenRound(1, 0, 1));
  ExpectRefusedAndUnchanged([&] { return store_->OpenRound(1, 0, 1); }, kRefused, "still open");
  ExpectRefusedAndUnchanged([&] { return store_->OpenRound(2, 0, 1); }, kRefused, "still open");
  ExpectRefusedAndUnchanged([&] { return store_->CommitRound(TestCommit(1), false); }, kRefused, "is open, not closed");
  ASSERT_OK(store_->CloseRound(1, {TestUpdate(0, 1, Id128())}, 2));
  ExpectRefusedAndUnchanged([&] { return store_->OpenRound(2, 0, 1); }, kRefused, "still closed");
  ExpectRefusedAndUnchanged([&] { return store_->CloseRound(1, {}, 2); }, kRefused, "is closed, not open");
  ASSERT_OK(store_->AbortRound(1, "no quorum", 3));
  ExpectRefusedAndUnchanged([&] { return store_->AbortRound(1, "again", 3); }, kRefused, "cannot be aborted");
  ExpectRefusedAndUnchanged([&] { return store_->CommitRound(TestCommit(1), false); }, kRefused, "is aborted");
  ExpectRefusedAndUnchanged([&] { return store_->CloseRound(7, {}, 2); }, kRefused, "is unknown");
  ASSERT_OK(store_->OpenRound(2, 0, 1));
  const auto events = store_->Events(10);
  ASSERT_EQ(events->size(), 1);
  EXPECT_EQ(events->at(0).kind, "round_aborted");
  EXPECT_EQ(events->at(0).round, 1);
  EXPECT_EQ(events->at(0).client, -1);
  EXPECT_EQ(events->at(0).detail, "no quorum");
}

TEST_P(RunStoreTest, ACloseChecksEveryPredecessor) {
  CloseFirstRound();
  ASSERT_OK(store_->CommitRound(TestCommit(1), true));
  const Id128 applied = store_->GetClient(0)->last_applied;
  const auto close = [&](const std::vector<ChosenUpdate>& chosen) {
    return [this, chosen] { return store_->CloseRound(2, chosen, 9); };
  };
  ChosenUpdate nameless = TestUpdate(2, 2, Id128());
  nameless.update_id = Id128();
  ExpectRefusedAndUnchanged(close({TestUpdate(2, 2, Id128()), TestUpdate(0, 2, Id128())}), kRefused, "must reset");
  ExpectRefusedAndUnchanged(close({TestUpdate(2, 2, Id128{9, 9})}), kRefused, "must reset");
  ExpectRefusedAndUnchanged(close({TestUpdate(77, 2, Id128())}), kRefused,
                            GetParam() == SqlEngine::kSqlite ? "FOREIGN KEY" : "client 77");
  ExpectRefusedAndUnchanged(close({TestUpdate(2, 2, Id128()), TestUpdate(2, 2, Id128())}), kRefused, "UNIQUE");
  ExpectRefusedAndUnchanged(close({nameless}), absl::StatusCode::kInvalidArgument, "no id");
  EXPECT_OK(store_->CloseRound(2, {TestUpdate(0, 2, applied), TestUpdate(2, 2, Id128())}, 9));
}

TEST_P(RunStoreTest, ACloseRefusesUpdatesAndCountsTheirResets) {
  OpenRoundOne(*store_);
  const Id128 refused = TestUpdate(2, 1, Id128()).update_id;
  ASSERT_OK(store_->CloseRound(1, {TestUpdate(0, 1, Id128())}, 1001, {{2, refused, "too large"}}));
  const RunStore::Fate fate = **store_->FateOf(refused, 0, 1);
  EXPECT_EQ(fate.client, 2);
  EXPECT_EQ(fate.state, RoundState::kClosed);
  EXPECT_EQ(fate.refused, "too large");
  EXPECT_EQ((*store_->FateOf(TestUpdate(0, 1, Id128()).update_id, 0, 1))->refused, "");
  EXPECT_FALSE(*store_->WasChosen(1, 2));
  EXPECT_EQ(store_->GetClient(2)->resets, 1);
  EXPECT_EQ(store_->GetClient(0)->resets, 0);
  const std::vector<EventRecord> events = *store_->Events(1);
  EXPECT_EQ(events[0].kind, "update_rejected");
  EXPECT_EQ(events[0].round, 1);
  EXPECT_EQ(events[0].client, 2);
  EXPECT_EQ(events[0].time_us, 1001);
  EXPECT_EQ(events[0].detail, "too large");
  // It stands whatever becomes of the round.
  ASSERT_OK(store_->AbortRound(1, "no model", 1002));
  EXPECT_EQ((*store_->FateOf(refused, 0, 1))->refused, "too large");
  EXPECT_EQ((*store_->FateOf(refused, 0, 1))->state, RoundState::kAborted);
}

TEST_P(RunStoreTest, ACloseWithARefusalThatCannotBeChangesNothing) {
  OpenRoundOne(*store_);
  const Id128 id = TestUpdate(2, 1, Id128()).update_id;
  const auto close = [&](const RefusedUpdate& refused) {
    return [this, refused] { return store_->CloseRound(1, {TestUpdate(0, 1, Id128())}, 1, {refused}); };
  };
  ExpectRefusedAndUnchanged(close({2, id, ""}), absl::StatusCode::kInvalidArgument, "a reason");
  ExpectRefusedAndUnchanged(close({2, Id128(), "too large"}), absl::StatusCode::kInvalidArgument, "an id");
  ExpectRefusedAndUnchanged(close({77, id, "too large"}), kRefused, "no client 77");
  EXPECT_OK(store_->CloseRound(1, {TestUpdate(0, 1, Id128())}, 1, {{2, id, "too large"}}));
}

TEST_P(RunStoreTest, ACommitThatDoesNotMatchChangesNothing) {
  CloseFirstRound();
  const auto commit = [&](const std::function<void(Commit&)>& change) {
    Commit changed = TestCommit(1);
    change(changed);
    return [this, changed] { return store_->CommitRound(changed, true); };
  };
  ExpectRefusedAndUnchanged(commit([](Commit& c) { c.round = 2; }), kRefused, "round 2 is unknown");
  ExpectRefusedAndUnchanged(commit([](Commit& c) { c.base_version = 1; }), kRefused, "not opened on version 1");
  ExpectRefusedAndUnchanged(commit([](Commit& c) { c.model_hash = Id128(); }), absl::StatusCode::kInvalidArgument,
                            "hash");
  ExpectRefusedAndUnchanged(commit([](Commit& c) {
                              c.ledger = {{1, 77, Direction::kUp, 1, 1, 1}};
                            }),
                            kRefused, "cannot hold bytes of client 77");
  ExpectRefusedAndUnchanged(commit([](Commit& c) {
                              c.ledger = {{1, 0, Direction::kUp, 1, -1, 1}};
                            }),
                            kRefused, "client 0 in round 1: 1, -1 and 1");
  EXPECT_OK(store_->CommitRound(TestCommit(1), true));
  ExpectRefusedAndUnchanged(commit([](Commit&) {}), kRefused, "is committed, not closed");
}

// No call of this interface can bring these changes about, but a bug or a second writer could.
class RunStoreGuards : public ::testing::TestWithParam<SqlEngine> {};

TERSE_ON_BOTH_ENGINES(RunStoreGuards);

TEST_P(RunStoreGuards, ACommitDetectsChangesBehindItsBack) {
  const bool is_sqlite = GetParam() == SqlEngine::kSqlite;
  // Bytes and a message of PostgreSQL's own.
  const std::string id = is_sqlite ? "x'00000000000000000000000000000001'" : "'\\x00000000000000000000000000000001'";
  const std::pair<std::string, const char*> cases[] = {
      {absl::StrCat("UPDATE clients SET last_applied = ", id, " WHERE id = 1"), "of client 1 follows"},
      {"UPDATE clients SET last_applied = (SELECT update_id FROM updates WHERE client = 0) WHERE id = 0",
       "of client 0 follows"},
      {"UPDATE head SET version = 1", "no longer version 0"},
      {"UPDATE head SET epoch = 2", "taken over by another coordinator"},
      {absl::StrCat("INSERT INTO downstream_log (version, model_hash, message) VALUES (1, ", id, ", ", id, ")"),
       is_sqlite ? "UNIQUE" : "unique constraint"},
      {"INSERT INTO rounds (id, state, base_version, opened_us) VALUES (2, 'open', 0, 0)", "cannot open"},
  };
  for (const auto& [change, part] : cases) {
    const StorePlace place(GetParam());
    auto store = place.Open();
    ASSERT_OK(store.status());
    CloseRoundOne(**store);
    ASSERT_OK(place.Connect()->Script(change));
    const std::string before = place.Dump();
    EXPECT_CODE((*store)->CommitRound(TestCommit(1), true), kFailedPrecondition, part);
    EXPECT_EQ(place.Dump(), before) << change;
  }
}

TEST_P(RunStoreTest, LedgerAddsUpAndEqualsTheRounds) {
  CloseFirstRound();
  Commit commit = TestCommit(1);
  commit.ledger = {{1, 0, Direction::kUp, 100, 10, 12}, {1, 1, Direction::kUp, 100, 11, 13}};
  ASSERT_OK(store_->CommitRound(commit, true));
  ASSERT_OK(store_->AddLedger({{1, 0, Direction::kDown, 7, 5, 6}, {2, 2, Direction::kUp, 1, 2, 3}}));
  ASSERT_OK(store_->AddLedger({{1, 0, Direction::kDown, 70, 50, 60}, {0, 2, Direction::kDown, 1, 2, 3}}));
  ASSERT_OK(store_->AddLedger({}));
  ExpectRefusedAndUnchanged(
      [&] {
        return store_->AddLedger({{1, 0, Direction::kUp, 1, 1, 1}, {1, 9, Direction::kUp, 1, 1, 1}});
      },
      kRefused, "cannot hold bytes of client 9");
  ASSERT_OK(store_->AddLedger({{2, 0, Direction::kUp, 1000, 2000, 3000}}));
  const std::vector<LedgerEntry> ledger = *store_->Ledger(0, 100);
  ASSERT_EQ(ledger.size(), 6);
  EXPECT_EQ(ledger[1].direction, Direction::kUp);
  EXPECT_EQ(ledger[2].direction, Direction::kDown);
  EXPECT_EQ(ledger[2].wire_bytes, 66);
  EXPECT_EQ(ledger[2].client_name, store_->GetClient(ledger[2].client)->name);
  EXPECT_EQ(store_->Ledger(1, 1)->size(), 3);
  const std::vector<LedgerEntry> sums = *store_->ClientTotals();
  ASSERT_EQ(sums.size(), 4);
  EXPECT_THAT(std::make_tuple(sums[0].round, sums[0].client, sums[0].direction, sums[0].dense_bytes,
                              sums[0].payload_bytes, sums[0].wire_bytes),
              testing::FieldsAre(0, 0, Direction::kUp, 1100, 2010, 3012));
  EXPECT_THAT(std::make_tuple(sums[1].client, sums[1].direction, sums[1].wire_bytes),
              testing::FieldsAre(0, Direction::kDown, 66));
  EXPECT_EQ(sums[3].client, 2);
  EXPECT_EQ(sums[3].client_name, store_->GetClient(2)->name);
  EXPECT_EQ(sums[3].direction, Direction::kUp);
  const std::vector<RoundRecord> rounds = *store_->Rounds(1, 100);
  ASSERT_EQ(rounds.size(), 2);
  for (const RoundRecord& round : rounds) {
    RoundRecord sums;
    for (const LedgerEntry& entry : ledger) {
      if (entry.round != round.id) continue;
      const bool up = entry.direction == Direction::kUp;
      (up ? sums.dense_bytes_up : sums.dense_bytes_down) += entry.dense_bytes;
      (up ? sums.payload_bytes_up : sums.payload_bytes_down) += entry.payload_bytes;
      (up ? sums.wire_bytes_up : sums.wire_bytes_down) += entry.wire_bytes;
    }
    EXPECT_EQ(round.dense_bytes_up, sums.dense_bytes_up);
    EXPECT_EQ(round.dense_bytes_down, sums.dense_bytes_down);
    EXPECT_EQ(round.payload_bytes_up, sums.payload_bytes_up);
    EXPECT_EQ(round.payload_bytes_down, sums.payload_bytes_down);
    EXPECT_EQ(round.wire_bytes_up, sums.wire_bytes_up);
    EXPECT_EQ(round.wire_bytes_down, sums.wire_bytes_down);
  }
}

TEST_P(RunStoreTest, TotalsOfARunThatHasNoRoundsYet) {
  CreateRun();
  const RunTotals totals = *store_->Totals();
  EXPECT_EQ(totals.accuracy, absl::nullopt);
  EXPECT_EQ(totals.best_accuracy, absl::nullopt);
  EXPECT_EQ(totals.best_test_loss, absl::nullopt);
  EXPECT_EQ(totals.wire_bytes_up, 0);
  EXPECT_EQ(totals.first_opened_us, 0);
  EXPECT_EQ(totals.last_committed_us, 0);
}

TEST_P(RunStoreTest, TotalsAreThoseOfAllRounds) {
  CloseFirstRound();
  Commit commit = TestCommit(1);
  commit.ledger = {{1, 0, Direction::kUp, 100, 10, 12}, {1, 1, Direction::kDown, 100, 11, 13}};
  ASSERT_OK(store_->CommitRound(commit, true));
  ASSERT_OK(store_->SetEvaluation(1, {0.75, 0.5}));
  ASSERT_OK(store_->AddLedger({{2, 2, Direction::kUp, 1, 2, 3}}));
  ASSERT_OK(store_->AbortRound(2, "why not", 99));
  const RoundRecord first = store_->Rounds(1, 1)->at(0);
  RunTotals totals = *store_->Totals();
  EXPECT_EQ(totals.accuracy, 0.75);
  EXPECT_EQ(totals.test_loss, 0.5);
  EXPECT_EQ(totals.dense_bytes_up, 101);
  EXPECT_EQ(totals.payload_bytes_up, 12);
  EXPECT_EQ(totals.wire_bytes_up, 15) << "of aborted rounds, too";
  EXPECT_EQ(totals.wire_bytes_down, 13);
  EXPECT_EQ(totals.first_opened_us, first.opened_us);
  EXPECT_EQ(totals.last_committed_us, first.committed_us) << "not when the next one was aborted";
  ASSERT_OK(store_->SetEvaluation(1, {absl::nullopt, 1.5}));  // another look at the same round
  totals = *store_->Totals();
  EXPECT_EQ(totals.accuracy, absl::nullopt);
  EXPECT_EQ(totals.best_accuracy, absl::nullopt);
  EXPECT_EQ(totals.best_test_loss, 1.5);
}

TEST_P(RunStoreTest, AnEvaluationMayHaveNoAccuracyOrALossThatIsNoNumber) {
  CloseFirstRound();
  ASSERT_OK(store_->CommitRound(TestCommit(1), false));
  EXPECT_FALSE((*store_->LastRound())->evaluated());
  ASSERT_OK(store_->SetEvaluation(1, {absl::nullopt, 1.5}));
  EXPECT_EQ((*store_->LastRound())->accuracy, absl::nullopt);
  EXPECT_EQ((*store_->LastRound())->test_loss, 1.5);
  EXPECT_TRUE((*store_->LastRound())->evaluated());
  ASSERT_OK(store_->SetEvaluation(1, {0.25, std::numeric_limits<double>::quiet_NaN()}));
  EXPECT_EQ((*store_->LastRound())->accuracy, 0.25);
  EXPECT_EQ((*store_->LastRound())->test_loss, absl::nullopt);
  EXPECT_TRUE((*store_->LastRound())->evaluated());
}

TEST_P(RunStoreTest, EvaluationBelongsToCommittedRounds) {
  CloseFirstRound();
  ExpectRefusedAndUnchanged([&] { return store_->SetEvaluation(1, {0.5, 1}); }, kRefused, "not committed");
  ASSERT_OK(store_->CommitRound(TestCommit(1), false));
  EXPECT_EQ((*store_->LastRound())->accuracy, absl::nullopt);
  ASSERT_OK(store_->SetEvaluation(1, {0.75, 1.5}));
  EXPECT_EQ((*store_->LastRound())->top5, absl::nullopt);
  EXPECT_EQ((*store_->LastRound())->accuracy, 0.75);
  EXPECT_EQ((*store_->LastRound())->test_loss, 1.5);
  ASSERT_OK(store_->SetEvaluation(1, {0.75, 1.5, 0.9, absl::nullopt}));
  EXPECT_EQ((*store_->LastRound())->top5, 0.9);
  EXPECT_EQ((*store_->LastRound())->perplexity, absl::nullopt);
  ASSERT_OK(store_->SetEvaluation(1, {0.75, 1.5, 0.95, 4.5}));
  EXPECT_EQ((*store_->LastRound())->top5, 0.95);
  EXPECT_EQ((*store_->LastRound())->perplexity, 4.5);
  ASSERT_OK(store_->SetEvaluation(1, {0.1, NAN}));
  EXPECT_EQ((*store_->LastRound())->test_loss, absl::nullopt);
}

TEST_P(RunStoreTest, MetricsStandWithTheirRound) {
  CreateRun();
  for (const char* name : {"a", "b", "c"}) ASSERT_OK(store_->RegisterClient(name, 5).status());
  ASSERT_OK(store_->OpenRound(1, 0, 1));
  std::vector<ChosenUpdate> chosen = {TestUpdate(0, 1, Id128()), TestUpdate(1, 2, Id128()), TestUpdate(2, 3, Id128())};
  chosen[0].metrics = {{MetricKind::kTraining, "norm", 2, 10}, {MetricKind::kEvaluation, "accuracy", 0.5, 1}};
  chosen[2].metrics = {{MetricKind::kEvaluation, "accuracy", 1, 3}};
  ASSERT_OK(store_->CloseRound(1, chosen, 2));
  ASSERT_OK(store_->CommitRound(TestCommit(1), true));
  ASSERT_OK(store_->SetEvaluation(1, {0.5, 1, {}, {}, {{MetricKind::kTest, "f1", 0.25, 7}}}));
  ASSERT_OK(store_->SetEvaluation(1, {0.5, 1, {}, {}, {{MetricKind::kTest, "f1", 0.75, 7}}}));
  const auto rounds = store_->Rounds(1, 2);
  ASSERT_OK(rounds.status());
  const std::vector<MetricMean>& means = (*rounds)[0].metrics;
  ASSERT_EQ(means.size(), 3);
  EXPECT_EQ(means[0].name, "norm");
  EXPECT_EQ(means[1].mean, 0.875);
  EXPECT_EQ(means[1].clients, 2);
  EXPECT_EQ(means[2].kind, MetricKind::kTest);
  EXPECT_EQ(means[2].mean, 0.75);
  EXPECT_TRUE((*rounds)[1].metrics.empty());
  const auto own = store_->MetricsOfClients(1, 9);
  ASSERT_OK(own.status());
  ASSERT_EQ(own->size(), 2);
  EXPECT_EQ((*own)[0].metrics, chosen[0].metrics);
  EXPECT_EQ((*own)[1].client_name, "c");
  EXPECT_EQ((*own)[1].round, 1);
  EXPECT_TRUE(store_->MetricsOfClients(2, 9)->empty());
}

TEST_P(RunStoreTest, UnsoundMetricsChangeNothing) {
  CreateRun();
  ASSERT_OK(store_->RegisterClient("a", 5).status());
  ASSERT_OK(store_->OpenRound(1, 0, 1));
  ChosenUpdate update = TestUpdate(0, 1, Id128());
  update.metrics = {{MetricKind::kTraining, "norm", std::numeric_limits<double>::quiet_NaN(), 10}};
  EXPECT_CODE(store_->CloseRound(1, {update}, 2), kInvalidArgument, "not finite");
  EXPECT_EQ((*store_->LastRound())->state, RoundState::kOpen);
}

// A client may claim any loss; that must not keep a round from closing.
TEST_P(RunStoreTest, ALossThatIsNoNumberClosesTheRound) {
  CreateRun();
  ASSERT_OK(store_->RegisterClient("a", 5).status());
  ASSERT_OK(store_->OpenRound(1, 0, 1));
  ChosenUpdate update = TestUpdate(0, 1, Id128());
  update.loss = std::numeric_limits<double>::quiet_NaN();
  ASSERT_OK(store_->CloseRound(1, {update}, 2));
  EXPECT_TRUE(std::isnan((*store_->LastRound())->train_loss));
}

TEST_P(RunStoreTest, EventsComeNewestLast) {
  for (int i = 0; i < 5; ++i) {
    EventRecord event;
    event.time_us = i;
    event.kind = "client_joined";
    event.client = i;
    event.detail = "it's \"quoted\"";
    ASSERT_OK(store_->AddEvent(event));
  }
  const auto events = store_->Events(2);
  ASSERT_EQ(events->size(), 2);
  EXPECT_EQ(events->at(0).client, 3);
  EXPECT_EQ(events->at(1).client, 4);
  EXPECT_EQ(events->at(1).detail, "it's \"quoted\"");
  EXPECT_EQ(store_->Events(0)->size(), 0);
  EXPECT_EQ(store_->Events(-1)->size(), 0);
}

TEST_P(RunStoreTest, EventsNameTheirClients) {
  CreateRun();
  const int64_t client = store_->RegisterClient("berlin-1", 5)->id;
  ASSERT_OK(store_->AddEvent({1, "client_joined", 0, client, ""}));
  ASSERT_OK(store_->AddEvent({2, "run_paused", 0, -1, ""}));
  for (const auto& events : {store_->Events(2), store_->EventsAfter(0, 2)}) {
    ASSERT_EQ(events->size(), 2u);
    EXPECT_EQ(events->at(0).client_name, "berlin-1");
    EXPECT_EQ(events->at(1).client_name, "");
  }
}

TEST_P(RunStoreTest, EventsAfterOneAreThoseThatCameLater) {
  for (int i = 0; i < 5; ++i) ASSERT_OK(store_->AddEvent({i, "client_joined", 0, i, ""}));
  const std::vector<EventRecord> all = *store_->EventsAfter(0, 100);
  ASSERT_EQ(all.size(), 5u);
  for (size_t i = 1; i < all.size(); ++i) EXPECT_GT(all[i].id, all[i - 1].id);
  EXPECT_EQ(store_->Events(1)->front().id, all[4].id) << "both number alike";
  const std::vector<EventRecord> later = *store_->EventsAfter(all[1].id, 2);
  ASSERT_EQ(later.size(), 2u);
  EXPECT_EQ(later[0].client, 2) << "from the oldest on";
  EXPECT_EQ(later[1].client, 3);
  EXPECT_EQ(store_->EventsAfter(all[4].id, 100)->size(), 0u);
  EXPECT_EQ(store_->EventsAfter(0, -1)->size(), 0u);
}

}  // namespace
}  // namespace terse
