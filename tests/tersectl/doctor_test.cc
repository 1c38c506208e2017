// `tersectl doctor`: each check's verdicts, and the command against a coordinator on a loopback port.
#include "tersectl/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/version.h"
#include "tersectl/cli.h"
#include "tests/tersectl/run_tersectl.h"
#include "tests/testing/fake_admin_server.h"
#include "tests/testing/temp_directory.h"

namespace terse {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(DoctorChecks, TheClockIsKnownToHalfOfTheCall) {
  const absl::Time sent = absl::FromUnixSeconds(1'700'000'000), received = sent + absl::Seconds(2);
  const auto off_by = [&](absl::Duration off) {
    v1::Coordinator coordinator;
    coordinator.set_now_us(absl::ToUnixMicros(sent + absl::Seconds(1) + off));
    return CheckClock(coordinator, sent, received);
  };
  EXPECT_EQ(off_by(absl::Seconds(3)).health, Health::kOk) << "it may be two seconds";
  EXPECT_EQ(off_by(absl::Seconds(-3)).health, Health::kOk);
  EXPECT_EQ(off_by(absl::Seconds(4)).health, Health::kWarning);
  EXPECT_EQ(off_by(absl::Seconds(-4)).health, Health::kWarning);
  EXPECT_THAT(off_by(absl::Seconds(-4)).detail, HasSubstr("4.0 s behind"));
  EXPECT_EQ(off_by(absl::Seconds(300)).health, Health::kWarning);
  EXPECT_EQ(off_by(absl::Seconds(302)).health, Health::kFailure);
  EXPECT_EQ(off_by(absl::Seconds(-302)).health, Health::kFailure);
  EXPECT_THAT(off_by(absl::Seconds(302)).remedy, HasSubstr("NTP"));
}

TEST(DoctorChecks, ADiskThatFillsUp) {
  v1::Coordinator coordinator;
  coordinator.set_state_directory("/state");
  EXPECT_EQ(CheckDisk(coordinator).health, Health::kWarning) << "unknown";
  const auto with = [&](uint64_t free) {
    coordinator.set_disk_free_bytes(free);
    coordinator.set_disk_bytes(10'000'000'000);
    return CheckDisk(coordinator);
  };
  EXPECT_EQ(with(1'000'000'000).health, Health::kOk);
  EXPECT_EQ(with(1'000'000'000).remedy, "");
  EXPECT_EQ(with(999'999'999).health, Health::kWarning);
  EXPECT_EQ(with(99'999'999).health, Health::kFailure);
  EXPECT_THAT(with(0).detail, HasSubstr("0 B of 10.0 GB free for /state"));
}

TEST(DoctorChecks, RunsThatAreNotServed) {
  v1::Run run;
  run.set_name("r");
  run.set_phase("down: damaged");
  EXPECT_EQ(CheckRun(run).health, Health::kFailure);
  EXPECT_THAT(CheckRun(run).remedy, HasSubstr("tersectl restore"));
  run.set_phase("suspended: the disk is full");
  EXPECT_EQ(CheckRun(run).health, Health::kWarning);
  run.set_phase("collecting");
  run.set_serving(true);
  EXPECT_EQ(CheckRun(run).health, Health::kOk);
}

TEST(DoctorChecks, ACertificateIsToBeRenewedInItsLastTwoWeeks) {
  const absl::Time now = absl::FromUnixSeconds(1'700'000'000);
  const auto left = [&](absl::Duration left) { return CheckEnd("certificate", now + left, now, "renew").health; };
  EXPECT_EQ(left(absl::Hours(14 * 24)), Health::kOk);
  EXPECT_EQ(left(absl::Hours(14 * 24) - absl::Seconds(1)), Health::kWarning);
  EXPECT_EQ(left(absl::ZeroDuration()), Health::kFailure);
}

TEST(DoctorChecks, AListThatTheCoordinatorDoesNotHaveYet) {
  const absl::Time issued = absl::FromUnixSeconds(1'700'000'000);
  v1::Coordinator coordinator;
  EXPECT_EQ(CheckRevocations(coordinator, issued).health, Health::kOk) << "cleartext";
  coordinator.set_revocations_us(absl::ToUnixMicros(issued));
  EXPECT_EQ(CheckRevocations(coordinator, issued).health, Health::kOk);
  const Finding old = CheckRevocations(coordinator, issued + absl::Seconds(1));
  EXPECT_EQ(old.health, Health::kFailure);
  EXPECT_THAT(old.remedy, HasSubstr("crl.pem"));
}

class DoctorTest : public ::testing::Test {
 protected:
  DoctorTest() {
    v1::Run run;
    run.set_name("r");
    run.set_state("active");
    run.set_phase("collecting");
    run.set_serving(true);
    server_.runs = {run};
    server_.coordinator.set_program_version(kVersion);
    server_.coordinator.set_now_us(absl::ToUnixMicros(absl::Now()));
    server_.coordinator.set_state_directory("/state");
    server_.coordinator.set_disk_free_bytes(5'000'000'000);
    server_.coordinator.set_disk_bytes(10'000'000'000);
  }
  // Returns the results by check.
  std::map<std::string, std::string> Examine(std::vector<std::string> arguments, int code) {
    arguments.insert(arguments.begin(), {"doctor", "--json"});
    const CtlOutcome outcome = InvokeAt(server_.address(), std::move(arguments));
    EXPECT_EQ(outcome.code, code) << outcome.out << outcome.err;
    std::map<std::string, std::string> results;
    for (const json& finding : json::parse(outcome.out)) results[finding["check"]] = finding["result"];
    return results;
  }

  FakeAdminServer server_;
  TempDirectory directory_;
};

TEST_F(DoctorTest, AllIsWell) {
  const auto results = Examine({}, kExitOk);
  EXPECT_EQ(results.size(), 5u);
  for (const auto& [check, result] : results) EXPECT_EQ(result, "ok") << check;
  const CtlOutcome table = Invoke({"doctor", "--admin", server_.address()});
  EXPECT_THAT(table.out, HasSubstr("run r        ok      active, collecting\n"));
  EXPECT_THAT(table.out, Not(HasSubstr("->"))) << "nothing is to be done";
  EXPECT_THAT(table.err, IsEmpty());
}

TEST_F(DoctorTest, WarningsAreNoFailure) {
  server_.coordinator.set_program_version("0.0.1");
  EXPECT_EQ(Examine({}, kExitOk)["version"], "warning");
}

TEST_F(DoctorTest, AFailureIsExitCode1) {
  server_.coordinator.set_disk_free_bytes(1);
  EXPECT_EQ(Examine({}, kExitFailed)["disk"], "failure");
  const CtlOutcome table = Invoke({"doctor", "--admin", server_.address()});
  EXPECT_THAT(table.out, HasSubstr("-> make room there"));
  EXPECT_THAT(table.err, HasSubstr("1 of 5 checks failed"));
  EXPECT_EQ(Invoke({"doctor", "--admin", "unix:/nowhere"}).code, kExitFailed) << "not reachable is a finding here";
}

TEST_F(DoctorTest, ACoordinatorOfAnEarlierReleaseSaysLess) {
  server_.coordinator.Clear();
  const auto results = Examine({}, kExitOk);
  EXPECT_EQ(results.count("clock") + results.count("disk"), 0u);
  EXPECT_EQ(results.at("version"), "warning");
}

TEST_F(DoctorTest, LooksAtThisMachinesTlsFolder) {
  const std::string pki = directory_.path() + "/pki", tls = directory_.path() + "/tls";
  ASSERT_EQ(Invoke({"pki", "--pki", pki, "init"}).code, kExitOk);
  ASSERT_EQ(Invoke({"pki", "--pki", pki, "issue", "operator", "ada", "--days", "5", "--out", tls}).code, kExitOk);
  auto results = Examine({"--tls", tls}, kExitFailed);  // the coordinator here speaks no TLS
  EXPECT_EQ(results["TLS folder"], "ok");
  EXPECT_EQ(results["key"], "ok");
  EXPECT_EQ(results["certificate"], "warning") << "five days are left";
  EXPECT_EQ(results["coordinator"], "failure");
  ASSERT_EQ(chmod((tls + "/node.key").c_str(), 0640), 0);
  EXPECT_EQ(Examine({"--tls", tls}, kExitFailed)["key"], "failure");
  EXPECT_EQ(Examine({"--tls", pki}, kExitFailed)["TLS folder"], "failure");
  const std::string hub = directory_.path() + "/hub";
  ASSERT_EQ(Invoke({"pki", "--pki", pki, "issue", "relay", "hub", "--host", "localhost", "--out", hub}).code, kExitOk);
  results = Examine({"--tls", hub}, kExitFailed);
  EXPECT_EQ(results["TLS folder"], "ok");
  EXPECT_EQ(results["certificate"], "ok");

  server_.coordinator.set_revocations_us(1);
  EXPECT_EQ(Examine({"--pki", pki}, kExitFailed)["revocations"], "failure");
  server_.coordinator.set_revocations_us(absl::ToUnixMicros(absl::Now()));
  EXPECT_EQ(Examine({"--pki", pki}, kExitOk)["revocations"], "ok");
}

}  // namespace
}  // namespace terse
