// What a run's store does on PostgreSQL alone: chunks, backups into SQLite, the fence between coordinators, connections
// that are lost, and schemas that are new or newer.
#include "storage/postgres_run_store.h"

#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "storage/module_file.h"
#include "storage/postgres_blobs.h"
#include "storage/postgres_schema.h"
#include "storage/run_copy.h"
#include "storage/schema.h"
#include "storage/segment_messages.h"
#include "tests/storage/faulty_files.h"
#include "tests/storage/postgres_testing.h"
#include "tests/storage/store_place.h"
#include "tests/storage/system_calls.h"

namespace terse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A version's weights, in two chunks.
constexpr size_t kParameters = 300'000;
std::vector<float> WideWeights(int64_t version) { return TestWeights(version, kParameters); }
Checkpoint WideCheckpoint(int64_t version) {
  std::vector<float> weights = WideWeights(version);
  weights.back() = 0.5;
  return {version, HashWeights(weights), std::move(weights)};
}

// A message of two chunks and a half, no two of which are alike.
std::string HugeMessage(int64_t number) {
  std::string message(static_cast<size_t>(kChunkBytes) * 5 / 2, 'm');
  for (size_t i = 0; i < message.size(); i += 1000) message[i] = static_cast<char>(i / 1000 + number);
  return message;
}

// A round without updates, of WideCheckpoint's weights.
absl::Status RunWideRound(RunStore& store, int64_t round, const std::string& message,
                          const std::string& aggregate = "") {
  if (absl::Status status = store.OpenRound(round, round - 1, 1); !status.ok()) return status;
  if (absl::Status status = store.CloseRound(round, {}, 2); !status.ok()) return status;
  Commit commit = TestCommit(round);
  commit.model_hash = WideCheckpoint(round).model_hash;
  commit.downstream = message;
  commit.aggregate = aggregate;
  return store.CommitRound(commit, false);
}

class PostgresRunStoreTest : public ::testing::Test {
 protected:
  void SetUp() override { store_ = Open(place_.directory()).value(); }
  absl::StatusOr<std::unique_ptr<RunStore>> Open(const TempDirectory& directory) const {
    return PostgresRunStore::Open(PostgresServer::Shared().address(), place_.schema(), directory.Path(), PosixFiles(),
                                  kSmallLimits);
  }
  absl::Status Reopen() {
    store_.reset();
    auto store = Open(place_.directory());
    if (!store.ok()) return store.status();
    store_ = *std::move(store);
    return absl::OkStatus();
  }
  absl::Status Sql(const std::string& sql) const { return place_.Connect()->Script(sql); }

  const StorePlace place_{SqlEngine::kPostgres};
  const TempDirectory elsewhere_;
  std::unique_ptr<RunStore> store_;
};

TEST_F(PostgresRunStoreTest, WhatIsLargeComesBackOnAnotherMachine) {
  ASSERT_OK(store_->CreateRun(TestRun(kParameters), WideWeights(0)));
  ASSERT_OK(RunWideRound(*store_, 1, HugeMessage(1), LargeMessage(77)));
  ASSERT_OK(RunWideRound(*store_, 2, LargeMessage(2), HugeMessage(2)));
  ASSERT_OK(RunWideRound(*store_, 3, "small", "small too"));
  Checkpoint newest = WideCheckpoint(3);
  newest.server_state = TestWeights(9, 600'000);
  ASSERT_OK(store_->WriteCheckpoint(newest, 2));
  EXPECT_EQ(place_.Count("message_chunks"), 3 + 1 + 1 + 3);
  EXPECT_EQ(place_.Count("checkpoint_chunks"), 2 + 2 + 3);
  store_.reset();

  const auto store = Open(elsewhere_).value();
  const auto log = store->ReadLog(0, 3);
  ASSERT_OK(log.status());
  ASSERT_EQ(log->size(), 3u);
  EXPECT_TRUE((*log)[0].downstream == HugeMessage(1));
  EXPECT_EQ((*log)[1].downstream, LargeMessage(2));
  EXPECT_EQ((*log)[2].downstream, "small");
  EXPECT_EQ(*store->ReadAggregate(1), LargeMessage(77));
  EXPECT_TRUE(*store->ReadAggregate(2) == HugeMessage(2));
  EXPECT_EQ(*store->ReadAggregate(3), "small too");
  EXPECT_EQ(*store->LogBytes(0), static_cast<int64_t>(HugeMessage(1).size()) + 32 + 5);
  const auto checkpoint = store->ReadNewestCheckpoint();
  ASSERT_OK(checkpoint.status());
  EXPECT_EQ(checkpoint->version, 3);
  EXPECT_TRUE(checkpoint->weights == newest.weights);
  EXPECT_TRUE(checkpoint->server_state == newest.server_state);
  // What clients download is made anew, once.
  EXPECT_THAT(*PosixFiles().List(elsewhere_.Path("checkpoints")), IsEmpty());
  const auto file = store->NewestCheckpointFile();
  ASSERT_OK(file.status());
  EXPECT_EQ(file->path, elsewhere_.Path("checkpoints/0000000003.ckpt"));
  const std::string bytes = PosixFiles().Read(file->path).value();
  EXPECT_EQ(file->bytes, static_cast<int64_t>(bytes.size()));
  EXPECT_GT(file->server_state_bytes, 2'400'000);
  EXPECT_TRUE(ParseCheckpoint(bytes)->weights == newest.weights);
  ASSERT_OK(Sql("DELETE FROM checkpoint_chunks"));
  EXPECT_EQ(store->NewestCheckpointFile()->path, file->path);
  EXPECT_THAT(*PosixFiles().List(elsewhere_.Path("checkpoints")), ElementsAre("0000000003.ckpt"));
}

TEST_F(PostgresRunStoreTest, ChunksGoWithTheLogAndTheirCheckpoint) {
  ASSERT_OK(store_->CreateRun(TestRun(kParameters), WideWeights(0)));
  for (int64_t round = 1; round <= 4; ++round) {
    ASSERT_OK(RunWideRound(*store_, round, HugeMessage(round), LargeMessage(round)));
  }
  EXPECT_EQ(place_.Count("message_chunks"), 4 * (3 + 1));
  EXPECT_EQ(place_.Count("checkpoint_chunks"), 2);
  ASSERT_OK(store_->WriteCheckpoint(WideCheckpoint(2), 1));
  EXPECT_EQ(place_.Count("message_chunks"), 2 * (3 + 1));
  EXPECT_EQ(place_.Count("checkpoint_chunks WHERE version = 2"), 2);
  EXPECT_EQ(place_.Count("checkpoint_chunks"), 2);
  EXPECT_TRUE(store_->ReadLog(2, 4)->back().downstream == HugeMessage(4));
  EXPECT_EQ(*store_->ReadAggregate(3), LargeMessage(3));
  ASSERT_OK(store_->WriteCheckpoint(WideCheckpoint(4), 1));
  EXPECT_EQ(place_.Count("message_chunks"), 0) << "one message is more than the checkpoint";
  EXPECT_CODE(store_->ReadLog(3, 4).status(), kOutOfRange, "no longer reaches back");
  // A number that was given before is not that of an old message.
  ASSERT_OK(RunWideRound(*store_, 5, HugeMessage(5)));
  EXPECT_TRUE(store_->ReadLog(4, 5)->back().downstream == HugeMessage(5));
}

TEST_F(PostgresRunStoreTest, ChunksOfACheckpointThatWasNeverRecordedGoAtTheNextOpening) {
  ASSERT_OK(store_->CreateRun(TestRun(4), TestWeights(0)));
  ASSERT_OK(Sql("INSERT INTO checkpoint_chunks VALUES (7, 0, 0, 'x'), (7, 1, 3, 'x')"));
  ASSERT_OK(Reopen());
  EXPECT_EQ(place_.Count("checkpoint_chunks"), 1);
  EXPECT_EQ(store_->ReadNewestCheckpoint()->weights, TestWeights(0));
}

TEST_F(PostgresRunStoreTest, ADamagedMessageIsFoundWhenItIsRead) {
  ASSERT_OK(store_->CreateRun(TestRun(kParameters), WideWeights(0)));
  ASSERT_OK(RunWideRound(*store_, 1, HugeMessage(1)));
  ASSERT_OK(RunWideRound(*store_, 2, HugeMessage(2)));
  ASSERT_OK(Sql("UPDATE message_chunks SET bytes = set_byte(bytes, 5, 1) WHERE segment = 1 AND chunk = 1"));
  ASSERT_OK(Sql("DELETE FROM message_chunks WHERE segment = 2 AND chunk = 2"));
  const absl::Status flipped = store_->ReadLog(0, 1).status();
  EXPECT_CODE(flipped, kDataLoss, "schema " + place_.schema() + " is damaged: the 2621440 bytes of message 1");
  EXPECT_CODE(flipped, kDataLoss, "tersectl restore BACKUP");
  EXPECT_CODE(store_->ReadLog(1, 2).status(), kDataLoss, "schema " + place_.schema() + " lacks chunk 2");
}

TEST_F(PostgresRunStoreTest, ADamagedCheckpointIsLeftOutForTheOneBefore) {
  ASSERT_OK(store_->CreateRun(TestRun(kParameters), WideWeights(0)));
  ASSERT_OK(RunWideRound(*store_, 1, "message"));
  Checkpoint newest = WideCheckpoint(1);
  newest.server_state = TestWeights(9, 4);
  ASSERT_OK(store_->WriteCheckpoint(newest, 2));
  const auto set_byte = [&](int value, const std::string& where) {
    return Sql(absl::StrCat("UPDATE checkpoint_chunks SET bytes = set_byte(bytes, octet_length(bytes) - 9, ", value,
                            ") WHERE ", where));
  };
  for (const char* const part : {"version = 1 AND part = 0 AND chunk = 1", "version = 1 AND part = 1"}) {
    ASSERT_OK(set_byte(77, part));
    ASSERT_OK(Reopen());
    EXPECT_EQ(store_->ReadNewestCheckpoint()->version, 0);
    EXPECT_EQ(store_->NewestCheckpointFile()->version, 0);
    EXPECT_EQ(store_->Events(1)->back().kind, "checkpoint_damaged");
    EXPECT_THAT(store_->Events(1)->back().detail, HasSubstr("schema " + place_.schema() + ", checkpoint 1"));
    // It is written again, and whole.
    ASSERT_OK(store_->WriteCheckpoint(newest, 2));
    EXPECT_EQ(store_->ReadNewestCheckpoint()->version, 1);
    EXPECT_EQ(store_->NewestCheckpointFile()->version, 1);
  }
  ASSERT_OK(Sql("DELETE FROM checkpoint_chunks WHERE chunk = 1"));
  const absl::Status status = store_->ReadNewestCheckpoint().status();
  EXPECT_CODE(status, kDataLoss, "schema " + place_.schema() + " lacks chunk 1 of");
  EXPECT_CODE(status, kDataLoss, "tersectl restore BACKUP");
}

// Rounds of two clients with everything that a round can have.
void RunFullRounds(RunStore& store, int64_t rounds) {
  for (int64_t round = 1; round <= rounds; ++round) {
    RoundPlan plan;
    plan.local_steps = round;
    plan.why = "a plan";
    ASSERT_OK(store.OpenRound(round, round - 1, 1000 * round, plan));
    std::vector<ChosenUpdate> chosen;
    for (const char* const name : {"a", "b"}) {
      const ClientRecord client = store.RegisterClient(name, 1000 * round).value();
      chosen.push_back(TestUpdate(client.id, round, client.last_applied));
      chosen.back().metrics = {{MetricKind::kTraining, "margin", 0.25, 5}};
      ASSERT_OK(store.SetSamples(client.id, 10 + client.id));
      ASSERT_OK(store.SetBelow({client.id, {round, 1, 2, 3, 4}}));
    }
    const int64_t stranger = store.RegisterClient("c", 1000 * round)->id;
    const Id128 refused{99, static_cast<uint64_t>(round)};
    ASSERT_OK(store.CloseRound(round, chosen, 1000 * round + 2, {{stranger, refused, "it is not finite"}}));
    Commit commit = TestCommit(round);
    commit.downstream = round == 2 ? std::string(100'000, 'x') : round == 3 ? LargeMessage(3) : commit.downstream;
    commit.aggregate = absl::StrCat("a ", round);
    commit.ledger = {{round, 0, Direction::kUp, 30, 20, 10}, {round, 1, Direction::kDown, 6, 5, 4}};
    const std::string message = absl::StrCat("update ", round);
    commit.history = {{0, message}, {1, message}};
    ASSERT_OK(store.CommitRound(commit, false));
    Evaluation evaluation;
    evaluation.accuracy = 0.1 * static_cast<double>(round);
    evaluation.loss = NAN;
    evaluation.top5 = 0.75;
    evaluation.metrics = {{MetricKind::kTest, "recall", 0.5, 6}};
    ASSERT_OK(store.SetEvaluation(round, evaluation));
  }
}

class PostgresBackupTest : public PostgresRunStoreTest {
 protected:
  void SetUp() override {
    PostgresRunStoreTest::SetUp();
    ASSERT_OK(store_->CreateRun(TestRun(4), TestWeights(0)));
  }
  std::string CopyPath() const { return elsewhere_.Path("copies/monday"); }
  // Paths of what is in it and is no folder.
  std::vector<std::string> FilesOfCopy() const {
    std::vector<std::string> paths;
    if (!std::filesystem::exists(CopyPath())) return paths;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(CopyPath())) {
      if (!entry.is_directory()) paths.push_back(entry.path().string());
    }
    return paths;
  }

  const SystemCallWatch watch_{SkipSync};
};

TEST_F(PostgresBackupTest, IsTheRunInADirectory) {
  RunFullRounds(*store_, 4);
  ASSERT_OK(store_->CompactHistory(1, 4, "state"));
  ASSERT_OK(store_->SetAside(1, 12345, "it is slow"));
  ASSERT_OK(store_->OpenRound(5, 4, 1));
  ASSERT_OK(store_->AbortRound(5, "nobody came", 2));
  ASSERT_OK(store_->SetRetention({2, 100}));
  ASSERT_OK(store_->WriteCheckpoint(TestCheckpoint(1), 3));
  Checkpoint newest = TestCheckpoint(3);
  newest.server_state = TestWeights(9, 8);
  ASSERT_OK(store_->WriteCheckpoint(newest, 3));
  ASSERT_OK(WriteModule(PosixFiles(), place_.directory().Path(), kTorchScriptModel, "module"));
  ASSERT_OK(store_->Backup(CopyPath()));
  EXPECT_THAT(*PosixFiles().List(CopyPath()), ElementsAre("checkpoints", "module.pt", "run.sqlite", "segments"));
  EXPECT_THAT(*PosixFiles().List(CopyPath() + "/checkpoints"), ElementsAre("0000000003.ckpt", "0000000003.state"));
  EXPECT_THAT(*PosixFiles().List(CopyPath() + "/segments"), ElementsAre("0000000001.seg"));
  EXPECT_CODE(store_->Backup(CopyPath()), kFailedPrecondition, "holds files already");

  auto copy = RunStore::Open(CopyPath(), PosixFiles(), RunStore::Depth::kEverything).value();
  EXPECT_EQ(copy->GetHead()->version, 4);
  EXPECT_EQ(copy->GetHead()->epoch, store_->GetHead()->epoch + 1) << "of the opening";
  EXPECT_EQ(copy->ReadNewestCheckpoint()->weights, newest.weights);
  EXPECT_EQ(copy->ReadNewestCheckpoint()->server_state, newest.server_state);
  EXPECT_EQ(copy->ReadLog(1, 4)->at(0).downstream, std::string(100'000, 'x'));
  EXPECT_EQ(copy->ReadLog(1, 4)->at(1).downstream, LargeMessage(3));
  EXPECT_EQ(copy->ReadLog(1, 4)->at(2).downstream, "message 4");
  EXPECT_EQ(*copy->ReadAggregate(4), "a 4");
  EXPECT_EQ(copy->ReadHistory(0)->log.size(), 4u);
  EXPECT_EQ(copy->ReadHistory(1)->state, "state");
  EXPECT_EQ(copy->Totals()->wire_bytes_up, 40);
  ASSERT_OK(copy->RegisterClient("d", 1).status());
  EXPECT_OK(copy->OpenRound(6, 4, 1)) << "it goes on";
}

// Every row of the copy is that of the run: it goes back into a schema of its own, and the two are compared there.
TEST_F(PostgresBackupTest, HasEveryRow) {
  RunFullRounds(*store_, 4);
  ASSERT_OK(store_->CompactHistory(1, 4, "state"));
  ASSERT_OK(store_->SetAside(1, 12345, "it is slow"));
  ASSERT_OK(store_->SetRetention({2, 1000}));
  for (int64_t i = 0; i < 150; ++i) ASSERT_OK(store_->AddEvent({i, "more_than_are_fetched_at_once", 0, -1, ""}));
  ASSERT_OK(store_->Backup(CopyPath()));
  const StorePlace back(SqlEngine::kPostgres);
  {
    const auto from =
        SqliteDb::Open(CopyPath() + "/run.sqlite", SqliteDb::Mode::kReader, PosixFiles().SqliteVfs()).value();
    const auto segments = SegmentMessages::Open(*from, PosixFiles(), CopyPath(), MessageLimits()).value();
    const auto to =
        PostgresDb::Open(PostgresServer::Shared().address(), back.schema(), PostgresDb::Mode::kWriter).value();
    ASSERT_OK(MigratePostgres(*to));
    BlobMessages messages(kSmallLimits);
    ASSERT_OK(to->InTransaction([&] { return CopyRun(*from, *segments, *to, messages); }));
    // Checkpoints are not among the rows that are copied.
    for (const char* const table : {"checkpoints", "server_states", "checkpoint_chunks"}) {
      ASSERT_OK(to->Script(
          absl::StrCat("INSERT INTO ", table, " SELECT * FROM ", PostgresDb::Quoted(place_.schema()), ".", table)));
    }
  }
  const std::string dump = place_.Dump();
  EXPECT_EQ(back.Dump(), dump);
  for (const char* const empty :
       {"runs", "refused", "scores", "plans", "metrics", "update_metrics", "round_totals", "client_totals", "ledger",
        "events", "aggregates", "message_chunks", "histories", "history_log", "retention"}) {
    EXPECT_THAT(dump, HasSubstr(absl::StrCat("\n", empty, "\n(").substr(std::string(empty) == "runs" ? 1 : 0)))
        << "the run of this test has none";
  }
}

TEST_F(PostgresBackupTest, OneThatFailedLeavesNoFiles) {
  RunFullRounds(*store_, 3);
  ASSERT_OK(WriteModule(PosixFiles(), place_.directory().Path(), kTorchScriptModel, "module"));
  int n = 0;
  for (bool failed = true; failed;) {
    n += 1 + n / 8;  // every write at first, later fewer
    ASSERT_LT(n, 10'000);
    failed = false;
    int left = n;
    const SystemCallWatch watch([&](absl::string_view call, const std::string& path) {
      if (call == "sync") return kSkipCall;
      if (call != "write" || !absl::StrContains(path, "copies/monday") || --left != 0) return 0;
      failed = true;
      return ENOSPC;
    });
    const absl::Status status = store_->Backup(CopyPath());
    EXPECT_TRUE(failed ? IsDiskTrouble(status) : status.ok()) << status;
    if (failed) {
      EXPECT_THAT(FilesOfCopy(), IsEmpty()) << n;
    }
  }
  EXPECT_GT(n, 5);
  EXPECT_EQ(RunStore::Open(CopyPath(), PosixFiles(), RunStore::Depth::kEverything).value()->GetHead()->version, 3);
}

TEST_F(PostgresBackupTest, OneWhoseServerWentAwayLeavesNoFiles) {
  RunFullRounds(*store_, 3);
  FaultyFiles files;
  store_.reset();
  store_ = PostgresRunStore::Open(PostgresServer::Shared().address(), place_.schema(), place_.directory().Path(), files,
                                  kSmallLimits)
               .value();
  bool killed = false;
  files.on_change = [&](const std::string& path) {
    if (killed || !absl::StrContains(path, "copies/monday/checkpoints/")) return;
    killed = true;
    KillConnections();
  };
  EXPECT_CODE(store_->Backup(CopyPath()), kUnavailable, "the connection is lost");
  EXPECT_TRUE(killed);
  EXPECT_THAT(FilesOfCopy(), IsEmpty());
}

class PostgresFenceTest : public PostgresRunStoreTest {
 protected:
  void SetUp() override {
    PostgresRunStoreTest::SetUp();
    ASSERT_OK(store_->CreateRun(TestRun(4), TestWeights(0)));
    ASSERT_OK(store_->RegisterClient("a", 1).status());
    epoch_ = store_->GetHead()->epoch;
  }

  int64_t epoch_ = 0;
};

TEST_F(PostgresFenceTest, WhoOpensTheStoreTakesItOver) {
  EXPECT_CODE(Open(place_.directory()).status(), kFailedPrecondition, "in use by another process");
  EXPECT_EQ(store_->GetHead()->epoch, epoch_);
  const auto second = Open(elsewhere_).value();
  EXPECT_EQ(second->GetHead()->epoch, epoch_ + 1);
  const std::string before = place_.Dump();
  const std::string taken = absl::StrCat("was taken over by another coordinator (epoch ", epoch_ + 1, ", ours is ",
                                         epoch_, "); stop one of the two");
  EXPECT_CODE(store_->RecordReset(0), kFailedPrecondition, taken);
  EXPECT_CODE(store_->OpenRound(1, 0, 1), kFailedPrecondition, taken);
  EXPECT_CODE(store_->WriteCheckpoint(TestCheckpoint(0), 1), kFailedPrecondition, taken);
  ASSERT_OK(store_->BeginBatch());
  EXPECT_CODE(store_->SetRunState(RunState::kPaused, "why"), kFailedPrecondition, taken);
  EXPECT_CODE(store_->CommitBatch(), kFailedPrecondition, taken);
  EXPECT_EQ(place_.Dump(), before);
  EXPECT_OK(RunRound(*second, 1));
  EXPECT_EQ(store_->GetHead()->version, 1) << "it can still be read";
}

TEST_F(PostgresFenceTest, ABatchThatHadBegunIsRefusedToo) {
  ASSERT_OK(store_->BeginBatch());
  const auto second = Open(elsewhere_).value();
  const std::string before = place_.Dump();
  EXPECT_CODE(store_->SetRunState(RunState::kPaused, "why"), kFailedPrecondition, "taken over");
  EXPECT_CODE(store_->CommitBatch(), kFailedPrecondition, "taken over");
  EXPECT_EQ(place_.Dump(), before);
}

// Nobody takes the store over between a transaction's first change and its commit.
TEST_F(PostgresFenceTest, ATransactionThatHadBegunIsWaitedFor) {
  ASSERT_OK(store_->BeginBatch());
  ASSERT_OK(store_->SetRunState(RunState::kPaused, "why"));
  std::unique_ptr<RunStore> second;
  absl::Notification opened;
  std::thread other([&] {
    second = Open(elsewhere_).value();
    opened.Notify();
  });
  EXPECT_FALSE(opened.WaitForNotificationWithTimeout(absl::Milliseconds(100)));
  EXPECT_OK(store_->CommitBatch());
  other.join();
  EXPECT_EQ((*second->Run())->state, RunState::kPaused);
  EXPECT_CODE(store_->SetRunState(RunState::kActive, "why"), kFailedPrecondition, "taken over");
}

TEST_F(PostgresFenceTest, ALostConnectionLeavesNothingOfABatch) {
  const std::string before = place_.Dump();
  ASSERT_OK(store_->BeginBatch());
  ASSERT_OK(store_->SetRunState(RunState::kPaused, "why"));
  ASSERT_OK(RunRound(*store_, 1));
  KillConnections();
  EXPECT_CODE(store_->CommitBatch(), kUnavailable, "the connection is lost");
  EXPECT_EQ(place_.Dump(), before);
  // The store can be read when its readers have seen it, and no longer written.
  store_->GetHead().status().IgnoreError();
  EXPECT_EQ(store_->GetHead()->version, 0);
  EXPECT_CODE(store_->RecordReset(0), kUnavailable, "the connection is lost");
  ASSERT_OK(store_->BeginBatch());
  EXPECT_CODE(store_->RecordReset(0), kUnavailable, "the connection is lost");
  EXPECT_CODE(store_->CommitBatch(), kUnavailable, "the connection is lost");
  EXPECT_EQ(place_.Dump(), before);
  ASSERT_OK(Reopen());
  EXPECT_EQ(store_->GetHead()->epoch, epoch_ + 1);
  EXPECT_OK(RunRound(*store_, 1));
  EXPECT_EQ(store_->GetHead()->version, 1);
}

TEST_F(PostgresFenceTest, AClosedRoundIsAbortedByWhoOpensTheStoreNext) {
  ASSERT_OK(store_->OpenRound(1, 0, 1));
  ASSERT_OK(store_->CloseRound(1, {TestUpdate(0, 1, Id128())}, 2));
  const auto second = Open(elsewhere_).value();
  EXPECT_EQ((*second->LastRound())->state, RoundState::kAborted);
  EXPECT_EQ(second->Events(1)->back().kind, "round_aborted");
  EXPECT_CODE(store_->CommitRound(TestCommit(1), false), kFailedPrecondition, "taken over");
  EXPECT_OK(second->OpenRound(2, 0, 3));
  const TempDirectory another;
  const auto third = Open(another).value();
  EXPECT_EQ((*third->LastRound())->state, RoundState::kOpen);
}

TEST_F(PostgresRunStoreTest, ANewerSchemaIsRefused) {
  ASSERT_OK(Reopen());
  EXPECT_EQ(store_->GetHead()->epoch, 2);
  store_.reset();
  ASSERT_OK(Sql("UPDATE schema_version SET version = 99"));
  const std::string before = place_.Dump();
  EXPECT_CODE(Reopen(), kFailedPrecondition,
              absl::StrCat("schema ", place_.schema(), " has schema version 99 and this program knows versions up to ",
                           kSchemaVersion));
  EXPECT_EQ(place_.Dump(), before);
  ASSERT_OK(Sql("UPDATE schema_version SET version = 3"));
  EXPECT_CODE(Reopen(), kFailedPrecondition, "has schema version 3");
}

TEST(PostgresSchema, OfTwoThatMakeItAtOnceNeitherFails) {
  constexpr int kOpeners = 3;
  for (int attempt = 0; attempt < 4; ++attempt) {
    const StorePlace place(SqlEngine::kPostgres);
    const TempDirectory directory;
    std::unique_ptr<RunStore> stores[kOpeners];
    std::vector<std::thread> openers;
    for (int i = 0; i < kOpeners; ++i) {
      openers.emplace_back([&, i] {
        auto store = PostgresRunStore::Open(PostgresServer::Shared().address(), place.schema(),
                                            directory.Path(absl::StrCat(i)), PosixFiles(), MessageLimits());
        EXPECT_OK(store.status());
        if (store.ok()) stores[i] = *std::move(store);
      });
    }
    for (std::thread& opener : openers) opener.join();
    EXPECT_EQ(place.Count(absl::StrCat("schema_version WHERE version = ", kSchemaVersion)), 1);
    EXPECT_EQ(place.Count("head WHERE epoch = 3"), 1);
    int created = 0;
    for (const auto& store : stores) {
      if (store != nullptr && store->CreateRun(TestRun(4), TestWeights(0)).ok()) ++created;
    }
    EXPECT_EQ(created, 1) << "the newest alone writes";
  }
}

// A process that dies while it makes the tables leaves none.
TEST(PostgresSchema, IsMadeWholeOrNotAtAll) {
  const StorePlace place(SqlEngine::kPostgres);
  ASSERT_OK(place.Connect()->Script(
      absl::StrCat("CREATE SCHEMA ", PostgresDb::Quoted(place.schema()), "; CREATE TABLE retention (somebody TEXT)")));
  EXPECT_CODE(place.Open().status(), kInternal, "relation \"retention\" already exists");
  EXPECT_EQ(place.Count(absl::StrCat("pg_tables WHERE schemaname = '", place.schema(), "'")), 1);
  ASSERT_OK(place.Connect()->Script("DROP TABLE retention"));
  EXPECT_OK(place.Open().status());
}

}  // namespace
}  // namespace terse
