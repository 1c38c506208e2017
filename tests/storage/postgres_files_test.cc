// Files in a database: what each operation does, that only the last opener may do any, and what a lost connection or a
// lost server leaves behind.
#include "storage/postgres_files.h"

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "storage/postgres_blobs.h"
#include "storage/postgres_lease.h"
#include "tests/storage/client_state_testing.h"
#include "tests/storage/postgres_testing.h"
#include "tests/testing/wait_until.h"

namespace terse {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr absl::Duration kLittlePatience = absl::Milliseconds(300);

std::unique_ptr<PostgresFiles> OpenFiles(const PostgresServer& server, const std::string& schema,
                                         absl::Duration patience = PostgresFiles::kPatience) {
  auto files = PostgresFiles::Open(server.address(), schema, nullptr, patience);
  EXPECT_OK(files.status());
  return files.ok() ? *std::move(files) : nullptr;
}

// Every row of the schema but the writer's.
std::string DumpFiles(const PostgresServer& server, const std::string& schema) {
  const auto db = PostgresDb::Open(server.address(), schema, PostgresDb::Mode::kReader).value();
  Statement rows = db->Prepare("SELECT name, chunk, bytes FROM file_chunks ORDER BY name, chunk");
  std::string dump;
  while (rows.Step().value()) absl::StrAppend(&dump, rows.GetText(0), " ", rows.GetInt(1), " ", rows.GetBlob(2), "\n");
  return dump;
}

class PostgresFilesTest : public ::testing::Test {
 protected:
  absl::Status Put(const std::string& path, absl::string_view bytes) { return WriteFileSynced(*files_, path, {bytes}); }
  std::string Get(const std::string& path) {
    const auto bytes = files_->Read(path);
    return bytes.ok() ? *bytes : bytes.status().ToString();
  }

  PostgresServer& server_ = PostgresServer::Shared();
  const std::string schema_ = server_.NewSchema();
  std::unique_ptr<PostgresFiles> files_ = OpenFiles(server_, schema_);
};

TEST_F(PostgresFilesTest, AFileIsThereOnceItIsSynced) {
  const auto file = files_->Create("d/a").value();
  ASSERT_OK(file->Append("one "));
  ASSERT_OK(file->Append("two"));
  EXPECT_CODE(files_->Read("d/a").status(), kNotFound, "d/a");
  ASSERT_OK(file->Sync());
  EXPECT_EQ(Get("d/a"), "one two");
  ASSERT_OK(file->Append(" three"));
  ASSERT_OK(file->Sync());
  EXPECT_EQ(Get("d/a"), "one two three");
  const auto shorter = files_->Overwrite("d/a").value();
  ASSERT_OK(shorter->Append("4"));
  EXPECT_EQ(Get("d/a"), "one two three");
  ASSERT_OK(shorter->Sync());
  files_ = OpenFiles(server_, schema_);
  EXPECT_EQ(Get("d/a"), "4");
  EXPECT_CODE(files_->Read("d/a", 0).status(), kResourceExhausted, "d/a");
  EXPECT_EQ(files_->Read("d/a", 1).value(), "4");
}

TEST_F(PostgresFilesTest, BytesAreInChunks) {
  for (const int64_t size :
       {int64_t{0}, int64_t{1}, kChunkBytes - 1, kChunkBytes, kChunkBytes + 1, kChunkBytes * 2, kChunkBytes * 5 / 2}) {
    std::string bytes(static_cast<size_t>(size), '\0');
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 2654435761u >> 13);
    ASSERT_OK(Put("d/large", bytes));
    EXPECT_TRUE(Get("d/large") == bytes) << size;
    for (const int64_t offset : {int64_t{0}, int64_t{7}, kChunkBytes - 3, kChunkBytes, size, size + 1}) {
      for (const int64_t length : {int64_t{0}, int64_t{6}, kChunkBytes, size + 1}) {
        const std::string part =
            offset > size ? "" : bytes.substr(static_cast<size_t>(offset), static_cast<size_t>(length));
        EXPECT_TRUE(files_->ReadPart("d/large", offset, length).value() == part)
            << size << " " << offset << " " << length;
      }
    }
  }
  const auto db = PostgresDb::Open(server_.address(), schema_, PostgresDb::Mode::kWriter).value();
  Statement sizes = db->Prepare("SELECT length(bytes) FROM file_chunks ORDER BY chunk");
  std::vector<int64_t> seen;
  while (sizes.Step().value()) seen.push_back(sizes.GetInt(0));
  EXPECT_THAT(seen, ElementsAre(kChunkBytes, kChunkBytes, kChunkBytes / 2));
  ASSERT_OK(db->Script("DELETE FROM file_chunks WHERE chunk = 1"));
  EXPECT_CODE(files_->Read("d/large").status(), kDataLoss, "chunk 1");
  EXPECT_CODE(files_->ReadPart("d/none", 0, 1).status(), kNotFound, "d/none");
}

TEST_F(PostgresFilesTest, RenamesRemovesAndLists) {
  EXPECT_THAT(files_->List("d").value(), IsEmpty());
  for (const char* path : {"d/b", "d/B", "d/a", "d/e/x", "d/e/y", "dd/z", "d.z"}) ASSERT_OK(Put(path, path));
  EXPECT_THAT(files_->List("d").value(), ElementsAre("B", "a", "b", "e"));
  ASSERT_OK(files_->Rename("d/a", "d/b"));
  EXPECT_EQ(Get("d/b"), "d/a");
  EXPECT_CODE(files_->Rename("d/a", "d/b"), kNotFound, "d/a");
  ASSERT_OK(files_->Rename("d/b", "d/b"));
  ASSERT_OK(files_->Rename("d/b", "d/c"));
  EXPECT_THAT(files_->List("d").value(), ElementsAre("B", "c", "e"));
  for (int i = 0; i < 2; ++i) ASSERT_OK(files_->Remove("d/c"));
  EXPECT_THAT(files_->List("d").value(), ElementsAre("B", "e"));
  EXPECT_OK(files_->MakeDirectory("d"));
  EXPECT_OK(files_->SyncDirectory("d"));
  EXPECT_OK(files_->Lock("d").status());
  EXPECT_EQ(files_->SqliteVfs(), "");
}

TEST_F(PostgresFilesTest, WhoeverOpenedLastIsTheOnlyOne) {
  ASSERT_OK(Put("d/a", "old"));
  const auto begun = files_->Create("d/a").value();
  ASSERT_OK(begun->Append("late"));
  const auto next = OpenFiles(server_, schema_);
  const std::string before = DumpFiles(server_, schema_);
  const std::function<absl::Status()> calls[] = {
      [&] { return begun->Sync(); },
      [&] { return Put("d/b", "late"); },
      [&] { return files_->Rename("d/a", "d/b"); },
      [&] { return files_->Remove("d/a"); },
      [&] { return files_->Read("d/a").status(); },
      [&] { return files_->ReadPart("d/a", 0, 1).status(); },
      [&] { return files_->List("d").status(); },
      [&] { return files_->Lock("d").status(); },
  };
  int number = 0;
  for (const auto& call : calls) {
    SCOPED_TRACE(number++);
    EXPECT_CODE(call(), kFailedPrecondition, "was taken over by another process; stop one of the two");
    EXPECT_EQ(DumpFiles(server_, schema_), before);
  }
  ASSERT_OK(WriteFileSynced(*next, "d/a", {"new"}));
  EXPECT_EQ(next->Read("d/a").value(), "new");
}

TEST_F(PostgresFilesTest, OpeningNeedsTheLease) {
  PostgresLease a(server_.address(), "a", absl::Hours(1)), b(server_.address(), "b", absl::Hours(1));
  ASSERT_EQ(a.Take().value(), "");
  ASSERT_OK(Put("d/a", "old"));
  EXPECT_CODE(PostgresFiles::Open(server_.address(), schema_, &b).status(), kFailedPrecondition, "another process");
  EXPECT_EQ(Get("d/a"), "old") << "an opening that was refused took the files";
  EXPECT_OK(PostgresFiles::Open(server_.address(), schema_, &a).status());
  EXPECT_CODE(Put("d/a", "late"), kFailedPrecondition, "taken over");
}

TEST_F(PostgresFilesTest, ALostConnectionIsMadeAgain) {
  ASSERT_OK(Put("d/a", "1"));
  KillConnections();
  EXPECT_EQ(Get("d/a"), "1");
  KillConnections();
  ASSERT_OK(files_->Rename("d/a", "d/b"));
  KillConnections();
  ASSERT_OK(Put("d/a", "2"));
  EXPECT_THAT(files_->List("d").value(), ElementsAre("a", "b"));
}

// As after a server was lost with what it had not given to its standby.
TEST_F(PostgresFilesTest, AHistoryThatLacksChangesIsNotGoneOnWith) {
  ASSERT_OK(Put("d/a", "1"));
  const auto db = PostgresDb::Open(server_.address(), schema_, PostgresDb::Mode::kWriter).value();
  ASSERT_OK(db->Script("UPDATE writer SET changes = 0"));
  EXPECT_CODE(Put("d/a", "2"), kFailedPrecondition, "start again with what it has");
  EXPECT_EQ(OpenFiles(server_, schema_)->Read("d/a").value(), "1");
}

TEST_F(PostgresFilesTest, KeepAClientsState) {
  TempDirectory directory;
  auto expected = OpenState(directory.Path("state"));
  const auto open = [&] {
    // Elsewhere, as by another process.
    files_ = OpenFiles(server_, schema_);
    return ClientState::Open("upstream", *files_).value();
  };
  auto state = open();
  const Id128 kFamily{1, 10};
  const std::function<absl::Status(ClientState&)> steps[] = {
      [&](ClientState& s) { return s.Begin(kLineage, kFamily, Durability::kStrict); },
      [](ClientState& s) { return SealNumber(s, 1); },
      [](ClientState& s) { return s.Settle(true); },
      [](ClientState& s) { return SealNumber(s, 2); },
      [](ClientState& s) { return s.Settle(false); },
      [](ClientState& s) { return SealNumber(s, 3); },
      [](ClientState& s) {
        return s.Move(Id128{1, 2}, Dense(20)).status();
      },
      [](ClientState& s) { return SealNumber(s, 4); },
      [](ClientState& s) { return s.Move(kLineage, Dense(21)).status(); },
      [](ClientState& s) {
        return s.Reset(Id128{9, 9});
      },
      [](ClientState& s) { return SealNumber(s, 5); },
      [](ClientState& s) { return SealNumber(s, 6); },  // refused
      [](ClientState& s) {
        return s.SaveModel({Id128{1, 10}, 7, std::vector<float>(1000, 1.5f)});
      },
      [](ClientState& s) { return s.SaveModule("no module"); },
  };
  int number = 0;
  for (const auto& step : steps) {
    SCOPED_TRACE(number++);
    EXPECT_EQ(step(*state).code(), step(*expected).code());
    EXPECT_EQ(Describe(*state), Describe(*expected));
    state.reset();
    state = open();
    EXPECT_EQ(Describe(*state), Describe(*expected));
  }
  EXPECT_EQ(state->LoadModel()->version, 7);
  EXPECT_FALSE(state->lost());
  EXPECT_THAT(files_->List("upstream").value(), ElementsAre("MANIFEST", "dense.7", "history.7", "model", "module.pt",
                                                            "outbox.7", "parted.6", "trainer.7"));
}

TEST_F(PostgresFilesTest, AStateThatWasTakenOverChangesNoMore) {
  const auto state = ClientState::Open("upstream", *files_).value();
  ASSERT_OK(state->Begin(kLineage, kLineage, Durability::kStrict));
  ASSERT_OK(SealNumber(*state, 1));
  const std::string before = Describe(*state);
  const auto next_files = OpenFiles(server_, schema_);
  const auto next = ClientState::Open("upstream", *next_files).value();
  const std::string dump = DumpFiles(server_, schema_);
  // It cannot even look whether its manifest is still the one.
  EXPECT_CODE(state->Settle(true), kUnknown, "taken over");
  EXPECT_EQ(DumpFiles(server_, schema_), dump);
  EXPECT_EQ(Describe(*next), before);
  EXPECT_OK(next->Settle(true));
}

// A server of its own, which is lost. It has a synchronous standby that never comes.
class PostgresFilesLost : public ::testing::Test {
 protected:
  static constexpr char kSchema[] = "files";

  PostgresFilesLost() {
    HoldCommits(false);
    Do("ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
    server_.Crash();
    server_.Start();
    files_ = OpenFiles(server_, kSchema, kLittlePatience);
    EXPECT_OK(WriteFileSynced(*files_, "d/a", {"1"}));
  }

  void Do(const std::string& sql) {
    const auto db = PostgresDb::Open(server_.address(), "public", PostgresDb::Mode::kLease).value();
    ASSERT_OK(db->Script("SET synchronous_commit TO local"));
    ASSERT_OK(db->Script(sql));
  }
  // Ends the sessions that stores have.
  void EndSessions() {
    Do(absl::StrCat("SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name = '",
                    kStoreApplication, "'"));
  }
  // Whether each COMMIT of a new session waits for the standby, once it is on the server's own disk.
  void HoldCommits(bool held) {
    Do(absl::StrCat("ALTER ROLE terse SET synchronous_commit TO ", held ? "on" : "local"));
  }
  // Calls it in another thread up to the wait of its COMMIT.
  void Begin(std::function<absl::Status()> change) {
    HoldCommits(true);
    EndSessions();
    thread_ = std::thread([this, change = std::move(change)] { status_ = change(); });
    const auto db = PostgresDb::Open(server_.address(), "public", PostgresDb::Mode::kLease).value();
    ASSERT_TRUE(Soon([&] {
      return db->Prepare("SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND application_name = ?")
          .Text(kStoreApplication)
          .Step()
          .value();
    }));
  }
  absl::Status End() {
    thread_.join();
    return status_;
  }

  PostgresServer server_;
  std::unique_ptr<PostgresFiles> files_;
  std::thread thread_;
  absl::Status status_;
};

TEST_F(PostgresFilesLost, AServerThatIsAwayLeavesThingsAsTheyWere) {
  server_.Crash();
  EXPECT_CODE(files_->Rename("d/a", "d/b"), kUnavailable, "d/a");
  EXPECT_CODE(files_->Read("d/a").status(), kUnavailable, "d/a");
  server_.Start();
  EXPECT_EQ(files_->Read("d/a").value(), "1");
  ASSERT_OK(files_->Rename("d/a", "d/b"));
  EXPECT_THAT(files_->List("d").value(), ElementsAre("b"));
}

// The connection is lost in a COMMIT that happened, and that took longer than the patience: the change is not made a
// second time, which would be refused.
TEST_F(PostgresFilesLost, AChangeWhoseAnswerIsLostIsMadeOnce) {
  Begin([&] { return files_->Rename("d/a", "d/b"); });
  absl::SleepFor(kLittlePatience * 2);
  HoldCommits(false);
  EndSessions();
  EXPECT_OK(End());
  EXPECT_THAT(files_->List("d").value(), ElementsAre("b"));
  EXPECT_OK(files_->Rename("d/b", "d/c"));
}

TEST_F(PostgresFilesLost, WithoutTheServerNobodyKnowsWhetherAChangeWasMade) {
  Begin([&] { return files_->Rename("d/a", "d/b"); });
  server_.Crash();
  const absl::Status status = End();
  EXPECT_CODE(status, kUnknown, "is not known");
  EXPECT_TRUE(IsSyncFailure(status));
  server_.Start();
  HoldCommits(false);
  EXPECT_THAT(OpenFiles(server_, kSchema)->List("d").value(), ElementsAre("b")) << "this one was";
}

}  // namespace
}  // namespace terse
