// A database that an earlier release wrote (tests/golden/make_storage_golden.py) opens, keeps every row and goes on.
#include "storage/client_sums.h"
#include "storage/schema.h"
#include "tests/storage/storage_testing.h"
#include "tests/storage/system_calls.h"
#include "tests/testing/paths.h"

namespace terse {
namespace {

struct Table {
  const char* name;
  int columns;  // of version 1
  const char* selected = "*";
};
constexpr Table kTables[] = {{"runs", 7},       {"rounds", 11}, {"clients", 8},
                             {"updates", 8},    {"events", 6},  {"downstream_log", 3, "version, model_hash, message"},
                             {"checkpoints", 4}};

int64_t UserVersion(const std::string& directory) {
  auto db = SqliteDb::Open(directory + "/run.sqlite", SqliteDb::Mode::kReader).value();
  Statement version = db->Prepare("PRAGMA user_version");
  EXPECT_TRUE(version.Step().value());
  return version.GetInt(0);
}

std::string Text(const LedgerEntry& entry) {
  return absl::StrCat("ledger|", entry.round, "|", entry.client, "|", entry.direction == Direction::kUp ? "up" : "down",
                      "|", entry.dense_bytes, "|", entry.payload_bytes, "|", entry.wire_bytes);
}

// Returns the ledger of a database of any version, as text.
std::vector<std::string> LedgerTexts(const std::string& directory) {
  const int64_t version = UserVersion(directory);
  auto db = SqliteDb::Open(directory + "/run.sqlite", SqliteDb::Mode::kReader).value();
  std::vector<std::string> texts;
  if (version >= 11) {
    Statement rows = db->Prepare("SELECT round, sums FROM ledger ORDER BY round");
    while (rows.Step().value()) {
      const ClientSums sums = ParseSums(rows.GetBlob(1)).value();
      for (const auto& [client, bytes] : sums) {
        texts.push_back(
            Text({rows.GetInt(0), client, Direction::kUp, bytes.dense_up, bytes.payload_up, bytes.wire_up, ""}));
        texts.push_back(Text(
            {rows.GetInt(0), client, Direction::kDown, bytes.dense_down, bytes.payload_down, bytes.wire_down, ""}));
      }
    }
    return texts;
  }
  Statement rows = db->Prepare(
      "SELECT round, client, direction = 'up', dense_bytes, payload_bytes, wire_bytes FROM ledger "
      "ORDER BY round, client, direction DESC");
  while (rows.Step().value()) {
    texts.push_back(Text({rows.GetInt(0), rows.GetInt(1), rows.GetInt(2) != 0 ? Direction::kUp : Direction::kDown,
                          rows.GetInt(3), rows.GetInt(4), rows.GetInt(5), ""}));
  }
  return texts;
}

class Migration : public ::testing::Test {
 protected:
  void SetUp() override { Fill(directory_.Path()); }
  // Fills a directory with the files of a run as version 1 left them.
  static void Fill(const std::string& directory) {
    std::filesystem::create_directories(directory + "/checkpoints");
    std::filesystem::copy_file(InSource("tests/golden/run_version_1.sqlite"), directory + "/run.sqlite",
                               std::filesystem::copy_options::overwrite_existing);
    ASSERT_OK(WriteFileSynced(PosixFiles(), directory + "/checkpoints/0000000000.ckpt",
                              {SerializeCheckpoint(TestCheckpoint(0))}));
  }
  // The columns that version 1 had.
  static std::vector<std::string> OldRows(const std::string& directory) {
    auto db = SqliteDb::Open(directory + "/run.sqlite", SqliteDb::Mode::kReader).value();
    std::vector<std::string> rows = LedgerTexts(directory);
    for (const Table& table : kTables) {
      Statement statement = db->Prepare(absl::StrCat("SELECT ", table.selected, " FROM ", table.name));
      while (statement.Step().value()) {
        rows.push_back(table.name);
        for (int i = 0; i < table.columns; ++i) {
          absl::StrAppend(&rows.back(), "|", statement.IsNull(i) ? "null" : std::string(statement.GetBlob(i)));
        }
      }
    }
    return rows;
  }

  TempDirectory directory_;
};

TEST_F(Migration, KeepsEveryRowAndGoesOn) {
  const std::vector<std::string> before = OldRows(directory_.Path());
  ASSERT_EQ(before.size(), 1 + 4 + 3 + 5 + 12 + 2 + 2 + 1);
  auto store = RunStore::Open(directory_.Path()).value();
  EXPECT_EQ(OldRows(directory_.Path()), before);
  EXPECT_EQ(store->GetHead()->version, 2);
  EXPECT_EQ(store->GetHead()->model_hash, TestHash(2));
  EXPECT_EQ(store->GetHead()->epoch, 4);
  EXPECT_EQ((*store->Run())->state, RunState::kActive);
  EXPECT_EQ((*store->Run())->reason, "");
  const auto clients = store->Clients();
  for (const ClientRecord& client : *clients) {
    EXPECT_EQ(client.samples, 0);
    EXPECT_EQ(client.reliability, 1);
    EXPECT_EQ(client.failures, 0);
    EXPECT_EQ(client.set_aside_until_us, 0);
    EXPECT_EQ(client.set_aside_reason, "");
  }
  EXPECT_EQ(store->ReadNewestCheckpoint()->version, 0);
  EXPECT_EQ(store->ReadLog(0, 2)->back().downstream, "message 2");

  ASSERT_OK(store->CloseRound(4, {TestUpdate(0, 4, TestUpdate(0, 2, Id128()).update_id)}, 4001));
  Commit commit = TestCommit(4);
  commit.base_version = 2;
  ASSERT_OK(store->CommitRound(commit, true));
  ASSERT_OK(store->SetRunState(RunState::kPaused, "by hand"));
  EXPECT_EQ(store->GetHead()->version, 3);
  EXPECT_EQ(store->GetClient(0)->updates_applied, 3);
}

TEST_F(Migration, MakesTheTablesOfANewDatabase) {
  RunStore::Open(directory_.Path()).value().reset();
  TempDirectory fresh;
  RunStore::Open(fresh.Path()).value().reset();
  const auto schema = [](const std::string& directory) {
    auto db = SqliteDb::Open(directory + "/run.sqlite", SqliteDb::Mode::kReader).value();
    std::vector<std::string> texts;
    Statement rows = db->Prepare("SELECT COALESCE(sql, name) FROM sqlite_schema ORDER BY name");
    while (rows.Step().value()) texts.emplace_back(rows.GetText(0));
    return texts;
  };
  EXPECT_EQ(schema(directory_.Path()), schema(fresh.Path()));
}

TEST_F(Migration, IsWholeOrNotAtAll) {
  const std::vector<std::string> before = OldRows(directory_.Path());
  int failures = 0;
  for (int n = 1;; n += 5) {
    SCOPED_TRACE(n);
    TempDirectory copy;
    Fill(copy.Path());
    int left = n;
    absl::Status status;
    {
      const SystemCallWatch watch([&](absl::string_view call, const std::string& path) {
        if (call == "sync") return kSkipCall;
        return call == "write" && absl::StrContains(path, "run.sqlite") && --left == 0 ? EIO : 0;
      });
      status = RunStore::Open(copy.Path()).status();
    }
    if (left > 0) break;
    failures += status.ok() ? 0 : 1;
    EXPECT_OK(RunStore::Open(copy.Path()).status());
    EXPECT_EQ(OldRows(copy.Path()), before);
  }
  EXPECT_GT(failures, 3);
}

void Execute(const std::string& directory, const std::string& sql) {
  ASSERT_OK(SqliteDb::Open(directory + "/run.sqlite", SqliteDb::Mode::kWriter).value()->Script(sql));
}

// Makes of a database what version 10 had: a row of the ledger for each client and direction, and an index of all ids.
void TakeBackToVersion10(const std::string& directory) {
  Execute(directory,
          "ALTER TABLE ledger RENAME TO ledger_11; ALTER TABLE client_totals RENAME TO client_totals_11;"
          "CREATE TABLE ledger (round INTEGER NOT NULL, client INTEGER NOT NULL, direction TEXT NOT NULL,"
          " dense_bytes INTEGER NOT NULL, payload_bytes INTEGER NOT NULL, wire_bytes INTEGER NOT NULL,"
          " checksum INTEGER NOT NULL AS (terse_checksum(round, client, direction, dense_bytes, payload_bytes,"
          " wire_bytes)) STORED, PRIMARY KEY (round, client, direction)) STRICT, WITHOUT ROWID;"
          "CREATE TABLE client_totals (client INTEGER PRIMARY KEY, dense_up INTEGER NOT NULL, payload_up INTEGER NOT "
          "NULL, wire_up INTEGER NOT NULL, dense_down INTEGER NOT NULL, payload_down INTEGER NOT NULL, wire_down "
          "INTEGER NOT NULL, checksum INTEGER NOT NULL AS (terse_checksum(client, dense_up, payload_up, wire_up,"
          " dense_down, payload_down, wire_down)) STORED) STRICT;"
          "CREATE INDEX updates_by_id ON updates (update_id)");
  const auto db = SqliteDb::Open(directory + "/run.sqlite", SqliteDb::Mode::kWriter).value();
  // The first update of a client stayed among the others when its round was folded.
  ASSERT_OK(
      db->Script("INSERT INTO updates (round, client, update_id, prev_applied, content_hash, payload_bytes, train_us, "
                 "loss, samples)"
                 " SELECT round, client, update_id, zeroblob(16), zeroblob(16), 0, 0, 0.0, 0 FROM first_updates"
                 " WHERE round <= (SELECT folded_round FROM retention); DROP TABLE first_updates; DROP TABLE metrics;"
                 " DROP TABLE update_metrics; DROP TABLE relay; DROP TABLE below"));
  {
    Statement rows = db->Prepare("SELECT round, sums FROM ledger_11");
    const auto add = [&](int64_t client, const char* direction, int64_t dense, int64_t payload, int64_t wire) {
      ASSERT_OK(db->Prepare("INSERT INTO ledger VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO UPDATE SET dense_bytes "
                            "= dense_bytes + ?4, payload_bytes = payload_bytes + ?5, wire_bytes = wire_bytes + ?6")
                    .Int(rows.GetInt(0))
                    .Int(client)
                    .Text(direction)
                    .Int(dense)
                    .Int(payload)
                    .Int(wire)
                    .Run());
    };
    while (rows.Step().value()) {
      const ClientSums sums = ParseSums(rows.GetBlob(1)).value();
      for (const auto& [client, bytes] : sums) {
        add(client, "up", bytes.dense_up, bytes.payload_up, bytes.wire_up);
        add(client, "down", bytes.dense_down, bytes.payload_down, bytes.wire_down);
      }
    }
  }
  {
    Statement blocks = db->Prepare("SELECT sums FROM client_totals_11");
    while (blocks.Step().value()) {
      const ClientSums sums = ParseSums(blocks.GetBlob(0)).value();
      for (const auto& [client, bytes] : sums) {
        ASSERT_OK(db->Prepare("INSERT INTO client_totals VALUES (?, ?, ?, ?, ?, ?, ?)")
                      .Int(client)
                      .Int(bytes.dense_up)
                      .Int(bytes.payload_up)
                      .Int(bytes.wire_up)
                      .Int(bytes.dense_down)
                      .Int(bytes.payload_down)
                      .Int(bytes.wire_down)
                      .Run());
      }
    }
  }
  ASSERT_OK(db->Script("DROP TABLE ledger_11; DROP TABLE client_totals_11; PRAGMA user_version = 10"));
}

TEST(MigrationFromVersion10, PacksTheLedgerAndTheTotals) {
  const SystemCallWatch watch(SkipSync);
  TempDirectory directory;
  constexpr int64_t kClients = 300, kRounds = 7;  // several blocks of totals
  const ChosenUpdate again = TestUpdate(7, 1, Id128());
  std::map<int64_t, int64_t> wire_up;  // of all rounds, folded or not
  {
    const auto store = RunStore::Open(directory.Path()).value();
    ASSERT_OK(store->CreateRun(TestRun(4), TestWeights(0)));
    ASSERT_OK(store->RegisterClient("a", 1).status());
    for (int64_t i = 1; i < kClients; ++i) ASSERT_OK(store->RegisterClient(absl::StrCat("c", i), 1).status());
    ASSERT_OK(store->SetRetention({2, 0}));
    // The first update of client 7 is chosen twice: the round before was aborted.
    ASSERT_OK(store->OpenRound(1, 0, 1));
    ASSERT_OK(store->CloseRound(1, {again}, 2));
    ASSERT_OK(store->AbortRound(1, "why", 3));
    for (int64_t round = 2; round <= kRounds; ++round) {
      ASSERT_OK(store->OpenRound(round, round - 2, 1));
      std::vector<ChosenUpdate> chosen = {TestUpdate(0, round, store->GetClient(0)->last_applied)};
      if (round == 3) chosen.push_back(again);
      ASSERT_OK(store->CloseRound(round, chosen, 2));
      Commit commit = TestCommit(round);
      commit.base_version = round - 2;
      ASSERT_OK(store->CommitRound(commit, false));
      std::vector<LedgerEntry> entries = {{0, 1, Direction::kUp, 5, 6, 7}};
      for (int64_t client = round % 3; client < kClients; client += 3) {
        entries.push_back({round, client, Direction::kUp, round, client, int64_t{1} << 40});
        wire_up[client] += entries.back().wire_bytes;
        entries.push_back({round, client, Direction::kDown, client + 1, 1, 127 + client});
      }
      ASSERT_OK(store->AddLedger(entries));
    }
  }
  TakeBackToVersion10(directory.Path());
  const std::vector<std::string> before = LedgerTexts(directory.Path());
  const auto store = RunStore::Open(directory.Path()).value();
  const std::vector<LedgerEntry> ledger = *store->Ledger(0, kRounds);
  std::vector<std::string> texts;
  for (const LedgerEntry& entry : ledger) {
    texts.push_back(Text(entry));
    EXPECT_EQ(entry.client_name, entry.client == 0 ? "a" : absl::StrCat("c", entry.client));
  }
  std::vector<std::string> not_zero;
  for (const std::string& text : before) {
    if (!absl::EndsWith(text, "|0|0|0")) not_zero.push_back(text);
  }
  EXPECT_EQ(texts, not_zero);
  EXPECT_GT(texts.size(), 400u);
  const std::vector<LedgerEntry> totals = *store->ClientTotals();
  for (const LedgerEntry& total : totals) {
    if (total.direction == Direction::kUp) {
      EXPECT_EQ(total.wire_bytes, wire_up[total.client]);
    }
  }
  EXPECT_EQ(totals.size(), 2 * wire_up.size());
  // Rounds 1 to 5 are folded. The fate of a first update is known whoever asks, and that of another one to its client.
  const auto db = SqliteDb::Open(directory.Path("run.sqlite"), SqliteDb::Mode::kReader).value();
  Statement folded = db->Prepare("SELECT folded_round, (SELECT MIN(round) FROM updates) FROM retention");
  ASSERT_TRUE(*folded.Step());
  EXPECT_EQ(folded.GetInt(0), 5);
  EXPECT_EQ(folded.GetInt(1), 6);
  const absl::optional<RunStore::Fate> first = *store->FateOf(TestUpdate(0, 2, Id128()).update_id, 9, 6);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->client, 0);
  const absl::optional<RunStore::Fate> twice = *store->FateOf(again.update_id, 9, 1);
  ASSERT_TRUE(twice.has_value());
  EXPECT_EQ(twice->state, RoundState::kCommitted) << "the newest round that chose it decides";
  EXPECT_TRUE(store->FateOf(TestUpdate(0, 6, Id128()).update_id, 0, 5)->has_value());
  EXPECT_FALSE(store->FateOf(TestUpdate(0, 6, Id128()).update_id, 9, 5)->has_value());
  EXPECT_FALSE(store->FateOf(TestUpdate(0, 6, Id128()).update_id, 0, 7)->has_value()) << "it was made for round 7";
}

// Makes of a database what version 9 had: every message stood in its row.
void TakeBackToVersion9(const std::string& directory) {
  TakeBackToVersion10(directory);
  Execute(directory,
          "CREATE TABLE downstream_log_9 (version INTEGER PRIMARY KEY, model_hash BLOB NOT NULL, message BLOB NOT NULL,"
          " checksum INTEGER NOT NULL AS (terse_checksum(version, model_hash, message)) STORED) STRICT;"
          "INSERT INTO downstream_log_9 SELECT version, model_hash, message FROM downstream_log;"
          "DROP TABLE downstream_log; ALTER TABLE downstream_log_9 RENAME TO downstream_log;"
          "CREATE TABLE aggregates_9 (version INTEGER PRIMARY KEY, message BLOB NOT NULL,"
          " checksum INTEGER NOT NULL AS (terse_checksum(version, message)) STORED) STRICT;"
          "INSERT INTO aggregates_9 SELECT version, message FROM aggregates;"
          "DROP TABLE aggregates; ALTER TABLE aggregates_9 RENAME TO aggregates; PRAGMA user_version = 9;"
          "VACUUM");  // so that no byte of the tables before is left
}

// Makes of a database what version 8 had: version 9 only added tables.
void TakeBackToVersion8(const std::string& directory) {
  TakeBackToVersion9(directory);
  Execute(directory,
          "DROP TABLE round_totals; DROP TABLE client_totals; DROP TABLE retention; DROP TABLE verified; "
          "PRAGMA user_version = 8");
}

TEST(MigrationFromVersion9, LeavesMessagesInTheirRowsAndPutsNewOnesIntoSegments) {
  const SystemCallWatch watch(SkipSync);
  TempDirectory directory;
  const std::string large(100'000, 'x');
  const auto run_round = [&](RunStore& store, int64_t round) -> absl::Status {
    if (absl::Status status = store.OpenRound(round, round - 1, 1); !status.ok()) return status;
    if (absl::Status status = store.CloseRound(round, {}, 2); !status.ok()) return status;
    Commit commit = TestCommit(round);
    commit.downstream = large + std::to_string(round);
    commit.aggregate = "aggregate " + large;
    return store.CommitRound(commit, false);
  };
  {
    constexpr MessageLimits kAllInline{/*inline_bytes=*/1 << 20, /*segment_bytes=*/1};
    const auto store = RunStore::Open(directory.Path(), PosixFiles(), RunStore::Depth::kRecent, kAllInline).value();
    ASSERT_OK(store->CreateRun(TestRun(4), TestWeights(0)));
    for (int64_t round = 1; round <= 3; ++round) ASSERT_OK(run_round(*store, round));
  }
  TakeBackToVersion9(directory.Path());
  const auto store = RunStore::Open(directory.Path()).value();
  EXPECT_FALSE(std::filesystem::exists(directory.Path("segments")));
  const auto log = store->ReadLog(0, 3);
  ASSERT_OK(log.status());
  for (const LogMessage& message : *log) {
    EXPECT_EQ(message.model_hash, TestHash(message.version));
    EXPECT_EQ(message.downstream, large + std::to_string(message.version));
  }
  EXPECT_EQ(*store->ReadAggregate(2), "aggregate " + large);
  ASSERT_OK(run_round(*store, 4));
  EXPECT_EQ(std::filesystem::file_size(directory.Path("segments/0000000001.seg")), 2 * large.size() + 1 + 10);
  EXPECT_EQ(store->ReadLog(2, 4)->back().downstream, large + "4");
  EXPECT_EQ(*store->ReadAggregate(4), "aggregate " + large);
  EXPECT_EQ(*store->LogBytes(0), static_cast<int64_t>(4 * large.size() + 4));
}

TEST(MigrationFromVersion8, SumsEveryRowOfTheLedger) {
  const SystemCallWatch watch(
      [](absl::string_view call, const std::string&) { return call == "sync" ? kSkipCall : 0; });
  constexpr int64_t kRounds = 150, kClients = 20;
  TempDirectory directory;
  std::vector<LedgerEntry> clients_before;
  std::vector<RoundRecord> rounds_before;
  {
    const auto store = RunStore::Open(directory.Path()).value();
    ASSERT_OK(store->CreateRun(TestRun(4), TestWeights(0)));
    ASSERT_OK(store->RegisterClient("a", 1).status());
    for (int64_t i = 1; i < kClients; ++i) ASSERT_OK(store->RegisterClient(absl::StrCat("c", i), 1).status());
    for (int64_t round = 1; round <= kRounds; ++round) {
      ASSERT_OK(RunRound(*store, round));
      std::vector<LedgerEntry> entries = {{0, 1, Direction::kUp, 5, 6, 7}};
      for (int64_t client = 0; client < kClients; ++client) {
        const int64_t bytes = round * 1000 + client;
        entries.push_back({round, client, Direction::kUp, 4 * bytes, bytes, bytes + 50});
        if (client % 7 != 3) entries.push_back({round, client, Direction::kDown, 4 * bytes, 2 * bytes, 2 * bytes + 5});
      }
      if (round % 10 == 0) continue;
      ASSERT_OK(store->AddLedger(entries));
    }
    clients_before = *store->ClientTotals();
    rounds_before = *store->Rounds(1, kRounds);
    ASSERT_GT(store->Ledger(0, kRounds)->size(), 4000u);
  }
  TakeBackToVersion8(directory.Path());
  const auto store = RunStore::Open(directory.Path()).value();
  const std::vector<LedgerEntry> clients = *store->ClientTotals();
  ASSERT_EQ(clients.size(), clients_before.size());
  for (size_t i = 0; i < clients.size(); ++i) {
    EXPECT_EQ(clients[i].client, clients_before[i].client);
    EXPECT_EQ(clients[i].direction, clients_before[i].direction);
    EXPECT_EQ(clients[i].dense_bytes, clients_before[i].dense_bytes);
    EXPECT_EQ(clients[i].payload_bytes, clients_before[i].payload_bytes);
    EXPECT_EQ(clients[i].wire_bytes, clients_before[i].wire_bytes);
  }
  const std::vector<RoundRecord> rounds = *store->Rounds(1, kRounds);
  ASSERT_EQ(rounds.size(), rounds_before.size());
  for (size_t i = 0; i < rounds.size(); ++i) {
    EXPECT_EQ(rounds[i].update_bytes, 100);
    EXPECT_EQ(rounds[i].dense_bytes_up, rounds_before[i].dense_bytes_up);
    EXPECT_EQ(rounds[i].payload_bytes_up, rounds_before[i].payload_bytes_up);
    EXPECT_EQ(rounds[i].wire_bytes_up, rounds_before[i].wire_bytes_up);
    EXPECT_EQ(rounds[i].dense_bytes_down, rounds_before[i].dense_bytes_down);
    EXPECT_EQ(rounds[i].payload_bytes_down, rounds_before[i].payload_bytes_down);
    EXPECT_EQ(rounds[i].wire_bytes_down, rounds_before[i].wire_bytes_down);
  }
  // Commits fold what the run does not keep any more, a few rounds each.
  ASSERT_OK(store->SetRetention({10, 0}));
  for (int64_t round = kRounds + 1; round <= kRounds + 50; ++round) ASSERT_OK(RunRound(*store, round));
  EXPECT_EQ(store->Ledger(1, kRounds)->size(), 0u);
  EXPECT_EQ(store->Rounds(1, 1)->front().wire_bytes_up, rounds_before[0].wire_bytes_up);
  EXPECT_EQ(store->ClientTotals()->at(3).wire_bytes, clients_before[3].wire_bytes);
}

TEST(MigrationFromVersion8, RefusesDamageOfAnyRow) {
  TempDirectory directory;
  {
    const auto store = RunStore::Open(directory.Path()).value();
    ASSERT_OK(store->CreateRun(TestRun(4), TestWeights(0)));
    for (int64_t round = 1; round <= 5; ++round) ASSERT_OK(RunRound(*store, round));
  }
  TakeBackToVersion8(directory.Path());
  std::string bytes = PosixFiles().Read(directory.Path("run.sqlite")).value();
  const size_t at = bytes.find("message 2");
  ASSERT_NE(at, std::string::npos);
  bytes[at] = static_cast<char>(bytes[at] ^ 1);
  ASSERT_OK(WriteFileSynced(PosixFiles(), directory.Path("run.sqlite"), {bytes}));
  EXPECT_CODE(RunStore::Open(directory.Path()).status(), kDataLoss, "a row of its table downstream_log");
}

TEST_F(Migration, ANewerDatabaseIsRefusedByName) {
  ASSERT_OK(SqliteDb::Open(directory_.Path("run.sqlite"), SqliteDb::Mode::kWriter)
                .value()
                ->Script(absl::StrCat("PRAGMA user_version = ", kSchemaVersion + 1)));
  const absl::Status status = RunStore::Open(directory_.Path()).status();
  EXPECT_CODE(status, kFailedPrecondition, directory_.Path("run.sqlite"));
  EXPECT_CODE(status, kFailedPrecondition,
              absl::StrCat("has schema version ", kSchemaVersion + 1, " and this program knows versions up to ",
                           kSchemaVersion));
}

}  // namespace
}  // namespace terse
