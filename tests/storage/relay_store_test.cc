// The store of a relay, on either engine: its run begins with any version, its models come from above, and its rounds
// make none.
#include <functional>
#include <string>
#include <vector>

#include "core/file_system.h"
#include "tests/storage/faulty_files.h"
#include "tests/storage/store_place.h"
#include "tests/storage/system_calls.h"

namespace terse {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kFacts[] = "what the relay was told";
constexpr absl::StatusCode kNotNow = absl::StatusCode::kFailedPrecondition;

RunRecord RelayRun() {
  RunRecord run = TestRun(4);
  run.relay = kFacts;
  run.first_version = 57;
  return run;
}

LogMessage MessageTo(int64_t version) { return {version, TestHash(version), LargeMessage(version)}; }

// Commit of a relay's round, which makes no model.
Commit RelayCommit(int64_t round, int64_t base_version) {
  Commit commit;
  commit.round = round;
  commit.base_version = base_version;
  commit.committed_us = 1000 * round + 3;
  return commit;
}

class RelayStoreTest : public ::testing::TestWithParam<SqlEngine> {
 protected:
  void SetUp() override {
    Reopen();
    ASSERT_OK(store_->CreateRun(RelayRun(), TestWeights(57)));
  }
  void Reopen() {
    store_.reset();
    auto store = place_.Open(RunStore::Depth::kEverything, kSmallLimits);
    ASSERT_OK(store.status());
    store_ = *std::move(store);
  }
  // Leaves the round closed with an update of a client.
  void CloseRound(int64_t round) {
    ASSERT_OK(store_->OpenRound(round, store_->GetHead()->version, 1000));
    const auto client = store_->RegisterClient("a", 5);
    ASSERT_OK(client.status());
    ASSERT_OK(store_->CloseRound(round, {TestUpdate(client->id, round, client->last_applied)}, 1002));
  }
  std::vector<std::string> Files(const std::string& folder) const {
    const auto names = PosixFiles().List(place_.directory().Path(folder));
    return names.ok() ? *names : std::vector<std::string>();
  }
  void ExpectRefusedAndUnchanged(const std::function<absl::Status()>& call, absl::StatusCode code,
                                 const std::string& part) {
    const std::string before = place_.Dump();
    const std::vector<std::string> files = Files("checkpoints");
    const absl::Status status = call();
    EXPECT_TRUE(HasCode(status, code, part));
    EXPECT_EQ(place_.Dump(), before) << status;
    EXPECT_EQ(Files("checkpoints"), files) << status;
  }
  void ExpectModel(int64_t version) {
    EXPECT_EQ(store_->GetHead()->version, version);
    EXPECT_EQ(store_->GetHead()->model_hash, TestHash(version));
    const auto checkpoint = store_->ReadNewestCheckpoint();
    ASSERT_OK(checkpoint.status());
    const auto log = store_->ReadLog(checkpoint->version, version);
    ASSERT_OK(log.status());
    EXPECT_EQ(log->empty() ? checkpoint->model_hash : log->back().model_hash, TestHash(version));
  }

  const SystemCallWatch watch_{SkipSync};
  const StorePlace place_{GetParam()};
  std::unique_ptr<RunStore> store_;
};

TERSE_ON_BOTH_ENGINES(RelayStoreTest);

TEST_P(RelayStoreTest, TheRunBeginsWithTheVersionThatTheRelayWasGiven) {
  for (const bool reopened : {false, true}) {
    SCOPED_TRACE(reopened);
    if (reopened) Reopen();
    EXPECT_EQ((*store_->Run())->relay, kFacts);
    EXPECT_EQ(store_->GetHead()->version, 57);
    EXPECT_EQ(store_->GetHead()->model_hash, TestHash(57));
    EXPECT_TRUE(store_->StartHash()->IsZero());
    EXPECT_EQ(store_->ReadNewestCheckpoint()->version, 57);
    EXPECT_EQ(store_->ReadNewestCheckpoint()->weights, TestWeights(57));
    EXPECT_EQ(store_->NewestCheckpointFile()->version, 57);
    EXPECT_THAT(*store_->ReadLog(57, 57), IsEmpty());
    EXPECT_EQ(*store_->LogBytes(57), 0);
    EXPECT_CODE(store_->ReadLog(56, 57).status(), kOutOfRange, "begins after 57");
    EXPECT_CODE(store_->LogBytes(0).status(), kOutOfRange, "begins after 57");
    EXPECT_CODE(store_->ReadLog(57, 58).status(), kInvalidArgument, "the head is 57");
  }
  EXPECT_THAT(Files("checkpoints"), ElementsAre("0000000057.ckpt"));
  EXPECT_CODE(store_->OpenRound(1, 0, 1), kFailedPrecondition, "the head is 57");
  EXPECT_OK(store_->OpenRound(1, 57, 1)) << "its rounds count from 1 on";
}

TEST_P(RelayStoreTest, OneThatIsThereFromTheStartKnowsTheStart) {
  const StorePlace place(GetParam());
  auto store = place.Open().value();
  RunRecord run = RelayRun();
  run.first_version = 0;
  ASSERT_OK(store->CreateRun(run, TestWeights(0)));
  EXPECT_EQ(*store->StartHash(), TestHash(0));
  EXPECT_EQ(store->GetHead()->version, 0);
}

TEST_P(RelayStoreTest, ARunThatIsNoRelaysHasNoFacts) {
  const StorePlace place(GetParam());
  auto store = place.Open().value();
  ASSERT_OK(store->CreateRun(TestRun(4), TestWeights(0)));
  EXPECT_EQ((*store->Run())->relay, "");
}

TEST_P(RelayStoreTest, AMessageFromAboveMovesTheHeadAndJoinsTheLog) {
  ASSERT_OK(store_->AppendMessage(MessageTo(58)));
  ASSERT_OK(store_->AppendMessage({59, TestHash(59), "short"}));
  for (const bool reopened : {false, true}) {
    SCOPED_TRACE(reopened);
    if (reopened) Reopen();
    ExpectModel(59);
    const auto log = store_->ReadLog(57, 59);
    ASSERT_OK(log.status());
    ASSERT_EQ(log->size(), 2u);
    EXPECT_EQ(log->at(0).version, 58);
    EXPECT_EQ(log->at(0).model_hash, TestHash(58));
    EXPECT_EQ(log->at(0).downstream, LargeMessage(58));
    EXPECT_EQ(log->at(1).downstream, "short");
  }
  // A checkpoint follows as in any run.
  ASSERT_OK(store_->WriteCheckpoint(TestCheckpoint(59), 1));
  EXPECT_THAT(Files("checkpoints"), ElementsAre("0000000059.ckpt"));
  ASSERT_OK(store_->AppendMessage(MessageTo(60)));
  Reopen();
  ExpectModel(60);
}

TEST_P(RelayStoreTest, AMessageThatDoesNotFollowIsRefused) {
  for (const int64_t version : {int64_t{0}, int64_t{1}, int64_t{57}, int64_t{59}}) {
    ExpectRefusedAndUnchanged([&] { return store_->AppendMessage(MessageTo(version)); }, kNotNow,
                              absl::StrCat("version ", version, " does not follow the head"));
  }
  const StorePlace place(GetParam());
  auto empty = place.Open().value();
  EXPECT_CODE(empty->AppendMessage(MessageTo(1)), kFailedPrecondition, "there is no run yet");
  EXPECT_EQ(empty->GetHead()->version, 0);
}

TEST_P(RelayStoreTest, TheModelStaysWhileARoundIsNotSettled) {
  ASSERT_OK(store_->RegisterClient("a", 5).status());
  ASSERT_OK(store_->OpenRound(1, 57, 1000));
  const auto expect_refused = [&] {
    ExpectRefusedAndUnchanged([&] { return store_->AppendMessage(MessageTo(58)); }, kNotNow, "round 1 is not settled");
    ExpectRefusedAndUnchanged([&] { return store_->ReplaceHead(TestCheckpoint(90)); }, kNotNow,
                              "round 1 is not settled");
  };
  expect_refused();
  ASSERT_OK(store_->CloseRound(1, {TestUpdate(0, 1, Id128())}, 1002));
  expect_refused();
  ASSERT_OK(store_->AbortRound(1, "why", 3));
  EXPECT_OK(store_->AppendMessage(MessageTo(58)));
  EXPECT_OK(store_->ReplaceHead(TestCheckpoint(90)));
}

TEST_P(RelayStoreTest, AWholeModelTakesThePlaceOfAllBefore) {
  for (const int64_t version : {58, 59}) ASSERT_OK(store_->AppendMessage(MessageTo(version)));
  ASSERT_OK(store_->WriteCheckpoint(TestCheckpoint(58), 2));
  ASSERT_OK(store_->ReplaceHead(TestCheckpoint(90)));
  if (GetParam() == SqlEngine::kSqlite) {
    EXPECT_THAT(Files("checkpoints"), ElementsAre("0000000090.ckpt"));
  }
  for (const bool reopened : {false, true}) {
    SCOPED_TRACE(reopened);
    if (reopened) Reopen();
    ExpectModel(90);
    EXPECT_EQ(store_->ReadNewestCheckpoint()->version, 90);
    EXPECT_EQ(store_->ReadNewestCheckpoint()->weights, TestWeights(90));
    EXPECT_EQ(store_->NewestCheckpointFile()->version, 90);
    for (const int64_t before : {57, 58, 59, 89}) {
      EXPECT_CODE(store_->ReadLog(before, 90).status(), kOutOfRange, "begins after 90");
      EXPECT_CODE(store_->LogBytes(before).status(), kOutOfRange, "begins after 90");
    }
    EXPECT_EQ(place_.Count("downstream_log"), 0);
    EXPECT_EQ(place_.Count("checkpoints"), 1);
  }
  if (GetParam() == SqlEngine::kPostgres) {
    EXPECT_EQ(place_.Count("message_chunks"), 0);
    EXPECT_EQ(place_.Count("checkpoint_chunks WHERE version <> 90"), 0);
  }
  ASSERT_OK(store_->AppendMessage(MessageTo(91)));
  Reopen();
  ExpectModel(91);
  EXPECT_EQ(store_->ReadLog(90, 91)->size(), 1u);
}

TEST_P(RelayStoreTest, AWholeModelBeginsALogOfManyMessagesAnew) {
  for (int64_t version = 58; version < 100; ++version) ASSERT_OK(store_->AppendMessage(MessageTo(version)));
  ASSERT_OK(store_->ReplaceHead(TestCheckpoint(200)));
  EXPECT_EQ(place_.Count("downstream_log"), 0);
  // The segment that is being written stays.
  EXPECT_LE(Files("segments").size(), 1u);
  Reopen();
  ExpectModel(200);
}

// What is refused must not leave its numbers in the place of those that are recorded.
TEST_P(RelayStoreTest, AWholeModelThatIsNotLaterIsRefused) {
  for (const int64_t version : {58, 59}) ASSERT_OK(store_->AppendMessage(MessageTo(version)));
  for (const int64_t version : {40, 57, 58, 59}) {
    const std::vector<float> other = TestWeights(1000);
    ExpectRefusedAndUnchanged(
        [&] {
          return store_->ReplaceHead({version, HashWeights(other), other});
        },
        kNotNow, absl::StrCat("version ", version, " is not later than the head, which is 59"));
  }
  ExpectRefusedAndUnchanged(
      [&] {
        return store_->ReplaceHead({90, TestHash(91), TestWeights(90)});
      },
      absl::StatusCode::kInvalidArgument, "its hash is not its weights'");
  EXPECT_EQ(store_->ReadNewestCheckpoint()->weights, TestWeights(57));
  Reopen();
  ExpectModel(59);
  EXPECT_EQ(store_->ReadNewestCheckpoint()->weights, TestWeights(57));
  const StorePlace place(GetParam());
  auto empty = place.Open().value();
  EXPECT_CODE(empty->ReplaceHead(TestCheckpoint(90)), kFailedPrecondition, "there is no run yet");
}

// A checkpoint that was being written when the head was replaced is of no use: nothing leads from it to the head.
TEST_P(RelayStoreTest, ACheckpointFromBeforeTheLogIsRefused) {
  ExpectRefusedAndUnchanged([&] { return store_->WriteCheckpoint(TestCheckpoint(56), 3); }, kNotNow,
                            "the log no longer reaches back to version 56; it begins after 57");
  ASSERT_OK(store_->AppendMessage(MessageTo(58)));
  ASSERT_OK(store_->ReplaceHead(TestCheckpoint(90)));
  ExpectRefusedAndUnchanged([&] { return store_->WriteCheckpoint(TestCheckpoint(58), 3); }, kNotNow,
                            "the log no longer reaches back to version 58; it begins after 90");
  EXPECT_OK(store_->WriteCheckpoint(TestCheckpoint(90), 3)) << "the one before the log may be written again";
  ASSERT_OK(store_->AppendMessage(MessageTo(91)));
  EXPECT_OK(store_->WriteCheckpoint(TestCheckpoint(90), 3));
}

TEST_P(RelayStoreTest, AWholeModelThatWasNotRecordedLeavesTheOneBefore) {
  ASSERT_OK(store_->AppendMessage(MessageTo(58)));
  const bool sqlite = GetParam() == SqlEngine::kSqlite;
  ASSERT_OK(place_.Connect()->Script(
      sqlite ? "CREATE TRIGGER broken BEFORE UPDATE ON head BEGIN SELECT RAISE(ABORT, 'broken'); END"
             : "ALTER TABLE aggregates RENAME TO broken"));
  EXPECT_FALSE(store_->ReplaceHead(TestCheckpoint(90)).ok());
  EXPECT_EQ(store_->GetHead()->version, 58);
  EXPECT_EQ(Files("checkpoints").back(), "0000000090.ckpt") << "the transaction comes after it";
  store_.reset();
  ASSERT_OK(place_.Connect()->Script(sqlite ? "DROP TRIGGER broken" : "ALTER TABLE broken RENAME TO aggregates"));
  Reopen();
  ExpectModel(58);
  EXPECT_EQ(store_->ReadNewestCheckpoint()->version, 57);
  EXPECT_EQ(store_->ReadLog(57, 58)->size(), 1u);
  if (!sqlite) {
    EXPECT_EQ(place_.Count("checkpoint_chunks WHERE version = 90"), 0);
  } else {
    EXPECT_THAT(Files("checkpoints"), ElementsAre("0000000057.ckpt"));
  }
}

// A checkpoint that the head was replaced behind has no log, so it must not be found any more.
TEST(RelayStoreCrash, WhileTheFilesBeforeAWholeModelAreRemoved) {
  const SystemCallWatch watch(SkipSync);
  const TempDirectory directory, crashed;
  FaultyFiles files;
  auto store = RunStore::Open(directory.Path(), files).value();
  ASSERT_OK(store->CreateRun(RelayRun(), TestWeights(57)));
  ASSERT_OK(store->AppendMessage(MessageTo(58)));
  int removals = 0;
  files.on_change = [&](const std::string& path) {
    if (!absl::EndsWith(path, "0000000057.ckpt")) return;
    ++removals;
    CopyDirectory(directory.Path(), crashed.Path());
  };
  ASSERT_OK(store->ReplaceHead(TestCheckpoint(90)));
  ASSERT_EQ(removals, 1);
  store = RunStore::Open(crashed.Path(), PosixFiles(), RunStore::Depth::kEverything).value();
  EXPECT_EQ(store->GetHead()->version, 90);
  EXPECT_EQ(store->ReadNewestCheckpoint()->version, 90);
  EXPECT_CODE(store->ReadLog(58, 90).status(), kOutOfRange, "begins after 90");
  EXPECT_THAT(*PosixFiles().List(crashed.Path("checkpoints")), ElementsAre("0000000090.ckpt"));
}

TEST_P(RelayStoreTest, ItsClosedRoundStaysClosed) {
  CloseRound(1);
  for (int i = 0; i < 2; ++i) {
    Reopen();
    EXPECT_EQ((*store_->LastRound())->state, RoundState::kClosed);
    EXPECT_TRUE(*store_->WasChosen(1, 0));
    EXPECT_THAT(*store_->Events(10), IsEmpty());
  }
  ASSERT_OK(store_->CommitRound(RelayCommit(1, 57), false));
  EXPECT_EQ(store_->GetClient(0)->last_applied, TestUpdate(0, 1, Id128()).update_id);

  const StorePlace place(GetParam());
  auto other = place.Open().value();
  ASSERT_OK(other->CreateRun(TestRun(4), TestWeights(0)));
  ASSERT_OK(other->OpenRound(1, 0, 1));
  ASSERT_OK(other->CloseRound(1, {}, 2));
  other.reset();
  other = place.Open().value();
  EXPECT_EQ((*other->LastRound())->state, RoundState::kAborted) << "that of a run whose models are made here";
}

TEST_P(RelayStoreTest, ARoundMakesNoModel) {
  CloseRound(1);
  Commit commit = RelayCommit(1, 57);
  commit.ledger = {{1, 0, Direction::kUp, 30, 20, 10}};
  commit.history = {{0, "update 1"}};
  ASSERT_OK(store_->CommitRound(commit, false));
  for (const bool reopened : {false, true}) {
    SCOPED_TRACE(reopened);
    if (reopened) Reopen();
    ExpectModel(57);
    EXPECT_EQ(place_.Count("downstream_log"), 0);
    EXPECT_EQ(place_.Count("aggregates"), 0);
    const RoundRecord round = **store_->LastRound();
    EXPECT_EQ(round.state, RoundState::kCommitted);
    EXPECT_EQ(round.committed_us, 1003);
    EXPECT_EQ(store_->GetClient(0)->last_applied, TestUpdate(0, 1, Id128()).update_id);
    EXPECT_EQ(store_->GetClient(0)->updates_applied, 1);
    EXPECT_EQ(store_->ReadHistory(0)->log.size(), 1u);
    EXPECT_EQ(store_->Totals()->wire_bytes_up, 10);
  }
  // The next round is of the same version, or of a later one that came from above.
  CloseRound(2);
  ASSERT_OK(store_->CommitRound(RelayCommit(2, 57), false));
  ASSERT_OK(store_->AppendMessage(MessageTo(58)));
  CloseRound(3);
  ASSERT_OK(store_->CommitRound(RelayCommit(3, 58), false));
  EXPECT_EQ(store_->GetClient(0)->updates_applied, 3);
  ExpectModel(58);
}

TEST_P(RelayStoreTest, ACommitWithoutAModelHasNothingOfOne) {
  CloseRound(1);
  const auto expect_refused = [&](const Commit& commit, bool open_next, absl::StatusCode code,
                                  const std::string& part) {
    ExpectRefusedAndUnchanged([&] { return store_->CommitRound(commit, open_next); }, code, part);
  };
  Commit with_message = RelayCommit(1, 57), with_aggregate = RelayCommit(1, 57);
  with_message.downstream = "message";
  with_aggregate.aggregate = "aggregate";
  constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;
  expect_refused(with_message, false, kInvalid, "a commit needs the new model's hash");
  expect_refused(with_aggregate, false, kInvalid, "a commit needs the new model's hash");
  expect_refused(RelayCommit(1, 57), true, kInvalid, "a commit needs the new model's hash");
  expect_refused(RelayCommit(1, 56), false, kNotNow, "round 1 was not opened on version 56");
  expect_refused(RelayCommit(2, 57), false, kNotNow, "round 2 is unknown, not closed");
  ASSERT_OK(store_->CommitRound(RelayCommit(1, 57), false));
  expect_refused(RelayCommit(1, 57), false, kNotNow, "round 1 is committed, not closed");
}

TEST_P(RelayStoreTest, ACopyIsARelaysToo) {
  for (const int64_t version : {58, 59}) ASSERT_OK(store_->AppendMessage(MessageTo(version)));
  CloseRound(1);
  const TempDirectory copies;
  ASSERT_OK(store_->Backup(copies.Path("copy")));
  {
    auto copy = RunStore::Open(copies.Path("copy"), PosixFiles(), RunStore::Depth::kEverything).value();
    EXPECT_EQ((*copy->Run())->relay, kFacts);
    EXPECT_TRUE(copy->StartHash()->IsZero());
    EXPECT_EQ(copy->GetHead()->version, 59);
    EXPECT_EQ(copy->ReadNewestCheckpoint()->version, 57);
    EXPECT_EQ(copy->ReadLog(57, 59)->back().downstream, LargeMessage(59));
    EXPECT_EQ((*copy->LastRound())->state, RoundState::kClosed);
  }
  // In a lineage of its own no client has sealed what the round chose.
  ASSERT_OK(StartNewLineage(copies.Path("copy")));
  auto copy = RunStore::Open(copies.Path("copy")).value();
  EXPECT_EQ((*copy->Run())->relay, kFacts);
  EXPECT_EQ((*copy->LastRound())->state, RoundState::kAborted);
  EXPECT_TRUE(copy->GetClient(0)->last_applied.IsZero());
  EXPECT_OK(copy->AppendMessage(MessageTo(60)));
}

// Versions 13 and 14 only added a table each.
TEST_P(RelayStoreTest, AStoreOfVersion12OpensAndGoesOn) {
  const StorePlace place(GetParam());
  {
    auto store = place.Open().value();
    ASSERT_OK(store->CreateRun(TestRun(4), TestWeights(0)));
    for (int64_t round = 1; round <= 3; ++round) ASSERT_OK(RunRound(*store, round));
  }
  const std::string before = place.Dump();
  ASSERT_OK(place.Connect()->Script(absl::StrCat(
      "DROP TABLE relay; DROP TABLE below; ",
      GetParam() == SqlEngine::kSqlite ? "PRAGMA user_version = 12" : "UPDATE schema_version SET version = 12")));
  auto store = place.Open(RunStore::Depth::kEverything).value();
  EXPECT_EQ(store->GetHead()->epoch, 2);
  EXPECT_EQ((*store->Run())->relay, "");
  EXPECT_EQ(place.Count("relay"), 0);
  EXPECT_EQ(place.Count("below"), 0);
  ASSERT_OK(place.Connect()->Script("UPDATE head SET epoch = 1"));
  EXPECT_EQ(place.Dump(), before);
  ASSERT_OK(place.Connect()->Script("UPDATE head SET epoch = 2"));
  EXPECT_OK(RunRound(*store, 4));
}

TEST(RelayStoreDamage, OfTheFactsIsFoundAtOpening) {
  const TempDirectory directory;
  {
    auto store = RunStore::Open(directory.Path()).value();
    ASSERT_OK(store->CreateRun(RelayRun(), TestWeights(57)));
  }
  std::string bytes = PosixFiles().Read(directory.Path("run.sqlite")).value();
  const size_t at = bytes.find(kFacts);
  ASSERT_NE(at, std::string::npos);
  bytes[at] = static_cast<char>(bytes[at] ^ 1);
  ASSERT_OK(WriteFileSynced(PosixFiles(), directory.Path("run.sqlite"), {bytes}));
  EXPECT_CODE(RunStore::Open(directory.Path()).status(), kDataLoss,
              "a row of its table relay does not match its checksum");
}

}  // namespace
}  // namespace terse
