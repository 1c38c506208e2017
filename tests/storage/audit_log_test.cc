#include "storage/audit_log.h"

#include "tests/storage/storage_testing.h"
#include "tests/testing/paths.h"

namespace terse {
namespace {

AuditRecord Pausing(int64_t time_us) {
  AuditRecord record;
  record.time_us = time_us;
  record.who = "operator ada";
  record.certificate = "1f";
  record.address = "192.0.2.1";
  record.action = "Pause";
  record.run = "demo";
  record.detail = "reason: maintenance";
  return record;
}

std::vector<std::string> Dump(const std::vector<AuditRecord>& records) {
  std::vector<std::string> lines;
  for (const AuditRecord& r : records) {
    lines.push_back(absl::StrCat(r.id, "|", r.time_us, "|", r.ended_us, "|", r.who, "|", r.certificate, "|", r.address,
                                 "|", r.action, "|", r.run, "|", r.detail, "|", r.result, "|", r.times));
  }
  return lines;
}

class AuditLogTest : public ::testing::Test {
 protected:
  std::unique_ptr<AuditLog> Open(int64_t max_records = AuditLog::kMaxRecords) {
    absl::StatusOr<std::unique_ptr<AuditLog>> log = AuditLog::Open(directory_.Path(), max_records);
    EXPECT_OK(log.status());
    return log.ok() ? *std::move(log) : nullptr;
  }
  std::unique_ptr<SqliteDb> Database() { return *SqliteDb::Open(directory_.Path(kAuditFile), SqliteDb::Mode::kWriter); }

  TempDirectory directory_;
};

TEST_F(AuditLogTest, WhatBeganIsThereBeforeItsEnd) {
  auto log = Open();
  const int64_t id = *log->Begin(Pausing(1000));
  EXPECT_THAT(Dump(*log->Newest(10)),
              ::testing::ElementsAre("1|1000|0|operator ada|1f|192.0.2.1|Pause|demo|reason: maintenance||1"));
  const absl::StatusOr<AuditRecord> ended = log->End(id, 2000, "ok");
  ASSERT_OK(ended.status());
  const std::string line = "1|1000|2000|operator ada|1f|192.0.2.1|Pause|demo|reason: maintenance|ok|1";
  EXPECT_THAT(Dump({*ended}), ::testing::ElementsAre(line));
  log.reset();
  EXPECT_THAT(Dump(*Open()->Newest(10)), ::testing::ElementsAre(line));
}

TEST_F(AuditLogTest, NothingEndsTwice) {
  auto log = Open();
  const int64_t id = *log->Begin(Pausing(1000));
  EXPECT_OK(log->End(id, 2000, "ok").status());
  EXPECT_CODE(log->End(id, 3000, "again").status(), kNotFound, "the id 1");
  EXPECT_CODE(log->End(7, 3000, "never").status(), kNotFound, "the id 7");
  EXPECT_EQ(log->Newest(1)->front().result, "ok");
}

TEST_F(AuditLogTest, WhatAProcessLeftBegunIsEndedByTheNext) {
  {
    auto log = Open();
    EXPECT_OK(log->Begin(Pausing(1)).status());
    EXPECT_OK(log->End(*log->Begin(Pausing(2)), 3, "ok").status());
    EXPECT_OK(log->Begin(Pausing(4)).status());
  }
  auto log = Open();
  const auto interrupted = log->EndInterrupted(9, "the process ended");
  ASSERT_OK(interrupted.status());
  ASSERT_EQ(interrupted->size(), 2);
  EXPECT_EQ((*interrupted)[0].id, 1);
  EXPECT_EQ((*interrupted)[1].id, 3);
  const auto all = log->Newest(10);
  EXPECT_THAT((*all)[0].result, "the process ended");
  EXPECT_THAT((*all)[1].result, "ok");
  EXPECT_EQ((*all)[2].ended_us, 9);
  EXPECT_EQ(Dump({(*all)[0], (*all)[2]}), Dump(*interrupted));
  EXPECT_TRUE(log->EndInterrupted(10, "again")->empty());
}

TEST_F(AuditLogTest, TheOldestGo) {
  auto log = Open(/*max_records=*/3);
  for (int64_t time = 1; time <= 5; ++time) EXPECT_EQ(log->Add(Pausing(time))->id, time);
  const auto left = log->Newest(10);
  ASSERT_EQ(left->size(), 3);
  EXPECT_EQ(left->front().id, 3);
  EXPECT_EQ(left->back().id, 5);
  EXPECT_EQ(log->Newest(1)->front().id, 5);
  log.reset();
  EXPECT_EQ(Open(3)->Add(Pausing(6))->id, 6) << "ids go on after a restart";
}

TEST_F(AuditLogTest, WhatIsDoneAgainAndAgainIsOneRecord) {
  auto log = Open();
  AuditRecord first = Pausing(1000);
  first.who = "operator bob";
  EXPECT_OK(log->Add(first).status());
  const auto pause = [&](int64_t time_us, absl::string_view result) {
    AuditRecord record = Pausing(time_us);
    const auto ended = log->End(*log->Begin(record), time_us + 5, result);
    EXPECT_OK(ended.status());
    return ended.ok() ? *ended : AuditRecord();
  };
  for (int i = 0; i < 100; ++i) EXPECT_EQ(pause(2000 + i, "ok").times, i + 1);
  EXPECT_EQ(pause(3000, "INTERNAL: no").times, 1) << "another result is a record of its own";
  EXPECT_EQ(pause(3001, "ok").times, 101);
  EXPECT_EQ(pause(2000 + AuditLog::kCountedTogetherUs, "ok").times, 1) << "an hour later";
  EXPECT_THAT(
      Dump(*log->Newest(10)),
      ::testing::ElementsAre("1|1000|0|operator bob|1f|192.0.2.1|Pause|demo|reason: maintenance||1",
                             "2|2000|3006|operator ada|1f|192.0.2.1|Pause|demo|reason: maintenance|ok|101",
                             "3|3000|3005|operator ada|1f|192.0.2.1|Pause|demo|reason: maintenance|INTERNAL: no|1",
                             "4|3600002000|3600002005|operator ada|1f|192.0.2.1|Pause|demo|reason: maintenance|ok|1"));
}

TEST_F(AuditLogTest, NobodyPushesOldRecordsOutByNoise) {
  auto log = Open(/*max_records=*/640);
  AuditRecord first = Pausing(1000);
  first.who = "operator bob";
  EXPECT_OK(log->Add(first).status());
  for (int i = 0; i < 800; ++i) {
    AuditRecord noise = Pausing(2000 + i);
    noise.detail = absl::StrCat("reason: ", i);
    ASSERT_OK(log->End(*log->Begin(noise), 2000 + i, "ok").status());
  }
  for (int i = 0; i < 800; ++i) {
    AuditRecord refused = Pausing(4000 + i);
    refused.who = "client mallory";
    refused.detail = absl::StrCat(i);
    refused.result = "PERMISSION_DENIED: no";
    ASSERT_OK(log->Add(refused).status());
  }
  const auto left = *log->Newest(1000);
  EXPECT_EQ(left.front().who, "operator bob");
  EXPECT_EQ(left[1].detail, "reason: 0") << "nor his own";
  int64_t times = 0;
  for (const AuditRecord& record : left) times += record.times;
  EXPECT_EQ(times, 1601) << "all are counted";
  EXPECT_LT(left.size(), 200);
  EXPECT_EQ(AuditLog::Check(directory_.Path()), absl::OkStatus());
}

TEST_F(AuditLogTest, LongTextsAreCutBetweenCharacters) {
  auto log = Open();
  AuditRecord record = Pausing(1);
  record.detail = std::string(AuditLog::kMaxTextBytes - 1, 'x') + "\xc3\xa9";
  record.result = std::string(100'000, 'y');
  const auto written = log->Add(record);
  EXPECT_EQ(written->detail, std::string(AuditLog::kMaxTextBytes - 1, 'x'));
  EXPECT_EQ(written->result.size(), AuditLog::kMaxTextBytes);
}

TEST_F(AuditLogTest, ADamagedRecordIsNotPassedOn) {
  EXPECT_OK(Open()->Add(Pausing(1)).status());
  // As a flipped bit would: the stored checksum stays what it was.
  ASSERT_OK(
      Database()->Script("PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, 'checksum "
                         "INTEGER NOT NULL AS (terse_checksum(id, time_us, ended_us, who, certificate, address, "
                         "action, run, detail,\n                                               result, times)) "
                         "STORED', 'checksum INTEGER NOT NULL') WHERE name = 'audit'"));
  ASSERT_OK(Database()->Script("UPDATE audit SET who = 'operator eve'"));
  EXPECT_CODE(Open()->Newest(1).status(), kDataLoss, "record 1 of ");
}

TEST_F(AuditLogTest, OpensNeitherANewerNorADamagedOne) {
  EXPECT_OK(Open()->Add(Pausing(1)).status());
  ASSERT_OK(Database()->Script("PRAGMA user_version = 2"));
  EXPECT_CODE(AuditLog::Open(directory_.Path()).status(), kFailedPrecondition, "schema version 2");
  std::filesystem::resize_file(directory_.Path(kAuditFile), 100);
  EXPECT_CODE(AuditLog::Open(directory_.Path()).status(), kDataLoss, "move it and what begins with its name away");
}

// Opens a log that the first release wrote (tests/golden/make_storage_golden.py).
TEST_F(AuditLogTest, GoldenFile) {
  std::filesystem::copy_file(InSource("tests/golden/audit_version_1.sqlite"), directory_.Path(kAuditFile));
  auto log = Open();
  EXPECT_THAT(Dump(*log->Newest(10)),
              ::testing::ElementsAre(
                  "41|1700000000000000|1700000000250000|operator ada|1f|ipv4:192.0.2.1:4711|Pause|demo|reason: "
                  "maintenance|ok|1",
                  "42|1700000001000000|1700000059000000|client edge-1|2a||Pause|||PERMISSION_DENIED: not an "
                  "operator|17",
                  "43|1700000060000000|0|socket||unix:|Stop||shutdown||1"));
  EXPECT_EQ(log->EndInterrupted(1700000061000000, "the process ended")->size(), 1);
  EXPECT_EQ(log->Add(Pausing(1))->id, 44);
}

}  // namespace
}  // namespace terse
