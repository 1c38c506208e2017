// Helpers that the tests of storage/ share.
#ifndef TERSE_TESTS_STORAGE_STORAGE_TESTING_H_
#define TERSE_TESTS_STORAGE_STORAGE_TESTING_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "storage/run_store.h"
#include "storage/sqlite_db.h"
#include "tests/testing/temp_directory.h"

#define EXPECT_OK(expression) EXPECT_EQ((expression), ::absl::OkStatus())
#define ASSERT_OK(expression) ASSERT_EQ((expression), ::absl::OkStatus())
// The status has this code, and `part` is in its message.
#define EXPECT_CODE(expression, expected, part) \
  EXPECT_TRUE(::terse::HasCode((expression), ::absl::StatusCode::expected, (part)))

namespace terse {

inline ::testing::AssertionResult HasCode(const absl::Status& status, absl::StatusCode code, const std::string& part) {
  if (status.code() == code && absl::StrContains(status.message(), part)) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "got " << status << ", not " << absl::StatusCodeToString(code) << " with '"
                                       << part << "'";
}

// Copies what a power cut would leave: the files as they are now, while the original stays in use.
inline void CopyDirectory(const std::string& from, const std::string& to) {
  std::filesystem::remove_all(to);
  std::filesystem::copy(from, to, std::filesystem::copy_options::recursive);
}

// Every row of every table, in order. The store may be open.
inline std::string DumpTables(const std::string& directory) {
  auto db = SqliteDb::Open(directory + "/run.sqlite", SqliteDb::Mode::kReader);
  if (!db.ok()) return db.status().ToString();
  std::string dump;
  const auto rows = [&](const std::string& sql, int columns) {
    Statement statement = (*db)->Prepare(sql);
    while (statement.Step().value()) {
      for (int i = 0; i < columns; ++i) {
        absl::StrAppend(&dump, "|", statement.IsNull(i) ? "null" : std::string(statement.GetBlob(i)));
      }
      absl::StrAppend(&dump, "\n");
    }
  };
  const std::pair<const char*, int> tables[] = {
      {"runs", 8},      {"head", 4},         {"rounds", 11},        {"clients", 13},      {"updates", 9},
      {"ledger", 3},    {"events", 6},       {"downstream_log", 7}, {"checkpoints", 4},   {"plans", 5},
      {"histories", 3}, {"history_log", 3},  {"refused", 4},        {"first_updates", 3}, {"scores", 3},
      {"retention", 4}, {"round_totals", 8}, {"client_totals", 2},  {"aggregates", 6},    {"relay", 2}};
  for (const auto& [table, columns] : tables) {
    absl::StrAppend(&dump, table, "\n");
    rows(absl::StrCat("SELECT * FROM ", table, " ORDER BY 1, 2"), columns);
  }
  return dump;
}

inline RunRecord TestRun(int64_t parameters) {
  RunRecord run;
  run.name = "mnist";
  run.lineage = Id128{7, 7};
  run.config = std::string("config\0bytes", 12);
  run.parameters = parameters;
  run.created_us = 100;
  return run;
}

// Weights of version v in these tests: {v, v, ...}.
inline std::vector<float> TestWeights(int64_t version, size_t count = 4) {
  return std::vector<float>(count, static_cast<float>(version));
}
inline Id128 TestHash(int64_t version) { return HashWeights(TestWeights(version)); }

inline Checkpoint TestCheckpoint(int64_t version) { return {version, TestHash(version), TestWeights(version)}; }

// Client's update of a round, following `previous`.
inline ChosenUpdate TestUpdate(int64_t client, int64_t round, Id128 previous) {
  ChosenUpdate update;
  update.client = client;
  update.update_id = Id128{static_cast<uint64_t>(round), static_cast<uint64_t>(client) + 1};
  update.prev_applied = previous;
  update.content_hash = Id128{1, 2};
  update.payload_bytes = 100;
  update.train_us = 1000 + client;
  update.loss = 0.5 + static_cast<double>(client);
  return update;
}

// Limits under which a message of more than 16 bytes is large, and three of them fill a segment.
inline constexpr MessageLimits kSmallLimits{/*inline_bytes=*/16, /*segment_bytes=*/100};

// A message of 32 bytes, which is large under kSmallLimits.
inline std::string LargeMessage(int64_t number) { return absl::StrFormat("a large message, number %08d", number); }

// Commit of `round` on version round - 1.
inline Commit TestCommit(int64_t round) {
  Commit commit;
  commit.round = round;
  commit.base_version = round - 1;
  commit.model_hash = TestHash(round);
  commit.downstream = absl::StrCat("message ", round);
  commit.committed_us = 1000 * round + 3;
  return commit;
}

// Opens (unless it is open), closes and commits `round` with client 0's update, and opens no other. Without a message
// it is that of TestCommit.
inline absl::Status RunRound(RunStore& store, int64_t round, const std::string& message = "") {
  if (absl::Status status = store.OpenRound(round, round - 1, 1000 * round); !status.ok()) return status;
  const auto client = store.RegisterClient("a", 1000 * round);
  if (!client.ok()) return client.status();
  if (absl::Status status = store.CloseRound(round, {TestUpdate(0, round, client->last_applied)}, 1000 * round + 2);
      !status.ok()) {
    return status;
  }
  Commit commit = TestCommit(round);
  if (!message.empty()) commit.downstream = message;
  const std::string update = absl::StrCat("update ", round);
  commit.history = {{client->id, update}};
  return store.CommitRound(commit, false);
}

}  // namespace terse

#endif  // TERSE_TESTS_STORAGE_STORAGE_TESTING_H_
