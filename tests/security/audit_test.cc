// The audit log: what it counts together, and what a coordinator over TLS writes into it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "coordinator/rpc/audit_trail.h"
#include "core/file_system.h"
#include "security/certificate.h"
#include "security/tls_directory.h"
#include "storage/sqlite_db.h"
#include "tests/security/secure_fleet.h"
#include "tests/tersectl/run_tersectl.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/wait_until.h"

namespace terse {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class AuditTrailTest : public testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<AuditTrail>> Open(const std::string& file = "") {
    return AuditTrail::Open({directory_.path(), file, &clock_, [](const absl::Status& status) { FAIL() << status; }});
  }
  static CertificateFacts Peer(const std::string& name, const std::string& serial) {
    CertificateFacts peer;
    peer.identity = {Role::kClient, name};
    peer.serial = serial;
    return peer;
  }
  static std::vector<std::string> Lines(AuditTrail* trail) {
    std::vector<std::string> lines;
    const auto newest = trail->Newest(100);
    EXPECT_TRUE(newest.ok()) << newest.status();
    if (!newest.ok()) return lines;
    for (const AuditRecord& r : *newest) {
      lines.push_back(absl::StrCat(r.who, " ", r.certificate, " ", r.action, " x", r.times, " ", r.result));
    }
    return lines;
  }

  TempDirectory directory_;
  FakeClock clock_;
};

TEST_F(AuditTrailTest, RefusalsOfAKindAreCountedForAMinute) {
  const auto trail = Open();
  ASSERT_TRUE(trail.ok()) << trail.status();
  const CertificateFacts edge = Peer("edge", "1f"), other = Peer("other", "2a");
  const absl::Status denied = absl::PermissionDeniedError("no");
  const int64_t begin_us = clock_.NowMicros();
  (*trail)->Refused(&edge, "/terse.v1.Admin/Pause", "192.0.2.1", denied);
  ASSERT_TRUE(Soon([&] { return Lines(trail->get()).size() == 1; }));
  for (int i = 0; i < 5; ++i) {
    clock_.Advance(1);
    (*trail)->Refused(&edge, "/terse.v1.Admin/Pause", "192.0.2.1", absl::PermissionDeniedError("no, again"));
  }
  (*trail)->Refused(&other, "/terse.v1.Admin/Pause", "192.0.2.1", denied);
  (*trail)->Refused(&edge, "/terse.v1.Admin/Resume", "192.0.2.1", denied);
  (*trail)->Refused(&edge, "/terse.v1.Admin/Pause", "192.0.2.1", absl::UnauthenticatedError("expired"));
  (*trail)->Refused(nullptr, "/whatever/the caller chose", "192.0.2.1", denied);
  (*trail)->Refused(nullptr, "/whatever/else", "192.0.2.1", denied);
  ASSERT_TRUE(Soon([&] { return Lines(trail->get()).size() == 5; }));
  const std::string first = "client edge 1f Pause x1 PERMISSION_DENIED: no";
  EXPECT_THAT(Lines(trail->get()),
              ::testing::UnorderedElementsAre(first, "client other 2a Pause x1 PERMISSION_DENIED: no",
                                              "client edge 1f Resume x1 PERMISSION_DENIED: no",
                                              "client edge 1f Pause x1 UNAUTHENTICATED: expired",
                                              "nobody of this fleet  unknown method x2 PERMISSION_DENIED: no"));
  clock_.Advance(61);
  ASSERT_TRUE(Soon([&] { return Lines(trail->get()).size() == 6; }));
  const AuditRecord counted = (*trail)->Newest(1)->front();
  EXPECT_EQ(Lines(trail->get()).back(), "client edge 1f Pause x5 PERMISSION_DENIED: no, again");
  EXPECT_EQ(counted.time_us, begin_us + 1'000'000);
  EXPECT_EQ(counted.ended_us, begin_us + 5'000'000);
  clock_.Advance(200);
  absl::SleepFor(absl::Milliseconds(1500));
  EXPECT_EQ(Lines(trail->get()).size(), 6) << "nothing was refused since";
}

TEST_F(AuditTrailTest, RefusalsOfAHostAreCountedTogether) {
  const CertificateFacts edge = Peer("edge", "1f");
  {
    const auto trail = Open();
    for (const char* host : {"192.0.2.1", "192.0.2.2", "2001:db8::1", "192.0.2.1", "2001:db8::2", ""}) {
      (*trail)->Refused(&edge, "/terse.v1.Admin/Pause", host, absl::PermissionDeniedError("no"));
    }
  }
  const auto trail = Open();
  std::vector<std::string> counted;
  const std::vector<AuditRecord> records = *(*trail)->Newest(100);
  for (const AuditRecord& record : records) {
    counted.push_back(absl::StrCat(record.address, " x", record.times));
  }
  EXPECT_THAT(counted, ::testing::UnorderedElementsAre(" x1", "192.0.2.1 x2", "192.0.2.2 x1", "2001:db8::1 x2"))
      << "whoever has an address of IPv6 has its network";
}

// Handshakes fail for whoever reaches the port.
TEST_F(AuditTrailTest, HandshakesOfAddressesWithoutEndPushNobodyOut) {
  const CertificateFacts edge = Peer("edge", "1f");
  {
    const auto trail = Open();
    for (int i = 0; i < 5000; ++i) {
      (*trail)->HandshakeFailed(absl::StrCat("10.0.", i / 250, ".", i % 250), "it has shown no certificate");
    }
    (*trail)->Refused(&edge, "/terse.v1.Admin/Pause", "192.0.2.1", absl::PermissionDeniedError("no"));
  }
  const auto trail = Open();
  int64_t times = 0, records = 0;
  bool has_edge = false;
  const std::vector<AuditRecord> newest = *(*trail)->Newest(10'000);
  for (const AuditRecord& record : newest) {
    has_edge |= record.who == "client edge" && record.address == "192.0.2.1";
    if (record.action != "TLS handshake") continue;
    ++records;
    times += record.times;
  }
  EXPECT_EQ(times, 5000);
  EXPECT_LE(records, 600);
  EXPECT_TRUE(has_edge);
}

TEST_F(AuditTrailTest, WhatWasCountedIsWrittenAtTheEnd) {
  const CertificateFacts edge = Peer("edge", "1f");
  {
    const auto trail = Open();
    for (int i = 0; i < 3; ++i)
      (*trail)->Refused(&edge, "/terse.v1.Admin/Pause", "192.0.2.1", absl::PermissionDeniedError("no"));
  }
  EXPECT_THAT(Lines(Open()->get()), ElementsAre("client edge 1f Pause x3 PERMISSION_DENIED: no"));
}

TEST_F(AuditTrailTest, RefusalsWaitForADiskThatDoesNotTakeThem) {
  const CertificateFacts edge = Peer("edge", "1f");
  const auto trail = Open();
  {
    const auto other = SqliteDb::Open(absl::StrCat(directory_.path(), "/", kAuditFile), SqliteDb::Mode::kWriter);
    const absl::Status held = (*other)->InTransaction([&]() -> absl::Status {
      (*trail)->Refused(&edge, "/terse.v1.Admin/Pause", "192.0.2.1", absl::PermissionDeniedError("no"));
      absl::SleepFor(absl::Seconds(8));  // longer than SQLite waits for another writer
      (*trail)->Refused(&edge, "/terse.v1.Admin/Pause", "192.0.2.1", absl::PermissionDeniedError("no"));
      return absl::OkStatus();
    });
    ASSERT_TRUE(held.ok()) << held;
  }
  EXPECT_THAT(Lines(trail->get()), IsEmpty());
  clock_.Advance(61);
  ASSERT_TRUE(Soon([&] { return !Lines(trail->get()).empty(); }));
  EXPECT_THAT(Lines(trail->get()), ElementsAre("client edge 1f Pause x2 PERMISSION_DENIED: no"));
}

TEST_F(AuditTrailTest, AFileThatCannotBeWrittenIsNoStart) {
  const auto trail = Open(directory_.path() + "/none/audit.jsonl");
  EXPECT_EQ(trail.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(trail.status().message()), HasSubstr("--audit-file cannot be written"));
}

// storage/audit_log_test.cc has the golden database; this is the golden line.
TEST_F(AuditTrailTest, WhatAProcessLeftBegunIsInTheFile) {
  const std::string file = directory_.path() + "/audit.jsonl";
  {
    auto log = AuditLog::Open(directory_.path());
    AuditRecord record;
    record.time_us = 1000;
    record.who = "operator ada";
    record.certificate = "1f";
    record.address = "192.0.2.1";
    record.action = "Pause";
    record.run = "demo";
    record.detail = "\"quoted\" \xff";
    ASSERT_TRUE((*log)->Begin(record).ok());
  }
  EXPECT_TRUE(Open(file).ok());
  EXPECT_EQ(Slurp(file),
            "{\"id\":1,\"time_us\":1000,\"ended_us\":1700000000000000,\"who\":\"operator ada\",\"certificate\":\"1f\","
            "\"address\":\"192.0.2.1\",\"action\":\"Pause\",\"run\":\"demo\",\"detail\":\"\\\"quoted\\\" "
            "\xef\xbf\xbd\",\"result\":\"the process ended before\",\"times\":1}\n");
}

class Audit : public testing::Test {
 protected:
  void SetUp() override {
    const std::string path = fleet_.Path("run.toml");
    std::ofstream(path) << "name = 'r'\n[train]\nlocal_steps = 1\noptimizer.learning_rate = 1.0\n[codec]\nname = "
                           "'sbc'\n[rounds]\ncount = 5\nclients = 1\n";
    fleet_.Serve(path);
    ada_ = fleet_.Issue(Role::kOperator, "ada");
  }
  CtlOutcome Ctl(const std::string& folder, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--admin", fleet_.addresses().admin, "--tls", folder});
    return Invoke(arguments);
  }
  json Records() {
    const CtlOutcome outcome = Ctl(ada_, {"--json", "audit"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return json::parse(outcome.out, nullptr, false);
  }
  // "who action run: detail = result", of each.
  std::vector<std::string> Lines() {
    std::vector<std::string> lines;
    for (const json& r : Records()) {
      lines.push_back(absl::StrCat(r["who"].get<std::string>(), " ", r["action"].get<std::string>(), " ",
                                   r["run"].get<std::string>(), ": ", r["detail"].get<std::string>(), " = ",
                                   r["result"].get<std::string>()));
    }
    return lines;
  }

  SecureFleet fleet_;
  std::string ada_;
};

TEST_F(Audit, WhatOperatorsDo) {
  EXPECT_EQ(Ctl(ada_, {"pause", "--reason", "a new \x1b[31m disk"}).code, 0);
  EXPECT_EQ(Ctl(ada_, {"--run", "none", "resume"}).code, 1);
  EXPECT_EQ(Ctl(ada_, {"resume"}).code, 0);
  EXPECT_EQ(Ctl(ada_, {"abort"}).code, 1);
  EXPECT_EQ(Ctl(ada_, {"clients", "--set-aside", "edge", "--for", "9", "--reason", "noise"}).code, 1);
  EXPECT_EQ(Ctl(ada_, {"clients", "--readmit", "edge"}).code, 1);
  EXPECT_EQ(Ctl(ada_, {"backup", "--out", fleet_.Path("backup")}).code, 0);
  EXPECT_EQ(Ctl(ada_, {"export", "--format", "npz", "--out", fleet_.Path("out")}).code, 0);
  EXPECT_EQ(Ctl(ada_, {"stop"}).code, 0);
  for (const char* looks : {"status", "rounds", "clients", "events", "ledger"}) EXPECT_EQ(Ctl(ada_, {looks}).code, 0);
  EXPECT_THAT(
      Lines(),
      ElementsAre("operator ada Pause : a new \x1b[31m disk = ok",
                  StartsWith("operator ada Resume none:  = NOT_FOUND: no run 'none'"), "operator ada Resume :  = ok",
                  StartsWith("operator ada AbortRound :  = FAILED_PRECONDITION: no round is open"),
                  StartsWith("operator ada SetAside : edge for 9 s: noise = NOT_FOUND: no client"),
                  StartsWith("operator ada SetAside : readmits edge = NOT_FOUND: no client"),
                  "operator ada Backup :  = ok", "operator ada Export : FORMAT_NPZ = ok", "operator ada Stop :  = ok"));
  const json first = Records()[0];
  EXPECT_GT(first["ended_us"].get<int64_t>(), first["time_us"].get<int64_t>());
  EXPECT_EQ(first["address"], "127.0.0.1");
  const absl::StatusOr<CertificateFacts> ada =
      ReadCertificate(PosixFiles().Read(absl::StrCat(ada_, "/", kCertificateFile)).value_or(""));
  ASSERT_TRUE(ada.ok()) << ada.status();
  EXPECT_EQ(first["certificate"], ada->serial);
  const CtlOutcome table = Ctl(ada_, {"audit", "--newest", "10"});
  EXPECT_THAT(table.out, HasSubstr("a new \\u001b[31m disk")) << "a reason steers no terminal";
  EXPECT_THAT(Ctl(ada_, {"audit", "--newest", "1"}).out, Not(HasSubstr("Export")));
  // The file has the same.
  const std::vector<std::string> written = absl::StrSplit(Slurp(fleet_.Path("audit.jsonl")), '\n', absl::SkipEmpty());
  json lines = json::array();
  for (const std::string& line : written) lines.push_back(json::parse(line, nullptr, false));
  EXPECT_EQ(lines, Records());
}

TEST_F(Audit, WhoIsRefused) {
  const std::string eve = fleet_.Issue(Role::kObserver, "eve");
  EXPECT_EQ(Ctl(eve, {"pause"}).code, 1);
  EXPECT_EQ(Ctl(eve, {"audit"}).code, 1);
  fleet_.Revoke("eve");
  ASSERT_TRUE(Soon([&] { return Ctl(eve, {"status"}).code == 1; }));
  ASSERT_TRUE(Soon([&] { return Lines().size() == 3; })) << Records();
  EXPECT_THAT(Lines(),
              ::testing::UnorderedElementsAre(
                  StartsWith("observer eve Pause :  = PERMISSION_DENIED: 'eve' is observer by its certificate"),
                  StartsWith("observer eve ListAudit :  = PERMISSION_DENIED"),
                  ::testing::AllOf(StartsWith("observer eve GetStatus :  = PERMISSION_DENIED: the certificate"),
                                   HasSubstr("is revoked"))));
}

TEST_F(Audit, WhatCannotBeWrittenDownIsNotDone) {
  const auto other = SqliteDb::Open(absl::StrCat(fleet_.Path("state"), "/", kAuditFile), SqliteDb::Mode::kWriter);
  const absl::Status held = (*other)->InTransaction([&]() -> absl::Status {
    const CtlOutcome outcome = Ctl(ada_, {"pause"});
    EXPECT_EQ(outcome.code, 1);
    EXPECT_THAT(outcome.err, HasSubstr("nothing was done, because the audit log cannot be written"));
    return absl::OkStatus();
  });
  ASSERT_TRUE(held.ok()) << held;
  EXPECT_THAT(Ctl(ada_, {"status"}).out, HasSubstr("active"));
  EXPECT_THAT(Lines(), IsEmpty());
  EXPECT_EQ(Ctl(ada_, {"pause"}).code, 0);
  EXPECT_THAT(Lines(), Contains("operator ada Pause :  = ok"));
}

}  // namespace
}  // namespace terse
