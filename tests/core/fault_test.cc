#include "core/fault.h"

#include <csignal>
#include <cstdlib>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace terse {
namespace {

absl::Status Pass() {
  TERSE_FAILPOINT("client.train.done");
  return absl::OkStatus();
}

TEST(Failpoints, NamesAreUnique) {
  const std::set<absl::string_view> names(std::begin(kFailpoints), std::end(kFailpoints));
  EXPECT_EQ(names.size(), std::size(kFailpoints));
  EXPECT_EQ(FailpointIndex("file.write.before_sync"), 0);
  EXPECT_EQ(FailpointIndex("no.such.place"), -1);
}

#ifdef TERSE_FAULTS

// The environment is read once in a process, so each of these runs in one of its own.
class FailpointsDeathTest : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

// Passes `times` times with that environment; the exit code tells at which pass there was an error (0: none).
[[noreturn]] void PassWith(const char* failpoints, int times) {
  setenv("TERSE_FAILPOINTS", failpoints, 1);
  int failed = 0;
  for (int i = 1; i <= times; ++i) {
    if (!Pass().ok() && failed == 0) failed = i;
  }
  std::_Exit(failed);
}

TEST_F(FailpointsDeathTest, KillsAtTheNamedPass) {
  EXPECT_EXIT(PassWith("client.train.done=kill", 1), ::testing::KilledBySignal(SIGKILL), "");
  EXPECT_EXIT(PassWith("client.train.done=kill@3", 2), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(PassWith("client.train.done=kill@3", 3), ::testing::KilledBySignal(SIGKILL), "");
}

TEST_F(FailpointsDeathTest, FailsOnceAtTheNamedPass) {
  EXPECT_EXIT(PassWith("client.seal.done=kill,client.train.done=error@2", 4), ::testing::ExitedWithCode(2), "");
}

TEST_F(FailpointsDeathTest, SleepsFromTheNamedPassOn) {
  EXPECT_EXIT(
      {
        setenv("TERSE_FAILPOINTS", "client.train.done=sleep:30@2", 1);
        const absl::Time begin = absl::Now();
        for (int i = 0; i < 3; ++i) Pass().IgnoreError();
        std::_Exit(absl::Now() - begin >= absl::Milliseconds(60) ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_F(FailpointsDeathTest, RefusesWhatMakesNoSense) {
  EXPECT_EXIT(PassWith("client.train.dome=kill", 1), ::testing::ExitedWithCode(2), "no failpoint 'client.train.dome'");
  EXPECT_EXIT(PassWith("client.train.done=die", 1), ::testing::ExitedWithCode(2), "'die' is no action");
  EXPECT_EXIT(PassWith("client.train.done=kill@0", 1), ::testing::ExitedWithCode(2), "'0' is no number of passes");
  EXPECT_EXIT(PassWith("client.train.done=sleep:x", 1), ::testing::ExitedWithCode(2), "'sleep:x' is no action");
}

class FailHook : public FailpointHook {
 public:
  absl::Status OnFailpoint(absl::string_view name) override {
    seen.emplace_back(name);
    return absl::InternalError("dead");
  }
  std::vector<std::string> seen;
};

TEST(Failpoints, AHookSeesItsOwnThreadOnly) {
  FailHook hook;
  const int64_t before = FailpointHits(FailpointIndex("client.train.done"));
  SetThreadFailpointHook(&hook);
  EXPECT_TRUE(absl::IsInternal(Pass()));
  std::thread([] { EXPECT_TRUE(Pass().ok()); }).join();
  SetThreadFailpointHook(nullptr);
  EXPECT_TRUE(Pass().ok());
  EXPECT_THAT(hook.seen, ::testing::ElementsAre("client.train.done"));
  EXPECT_EQ(FailpointHits(FailpointIndex("client.train.done")), before + 3);
}

TEST(Mutants, OneAtATime) {
  EXPECT_FALSE(Mutated(Mutant::kSplitTransaction));
  SetMutant(Mutant::kSplitTransaction);
  EXPECT_TRUE(Mutated(Mutant::kSplitTransaction));
  EXPECT_FALSE(Mutated(Mutant::kSyncNormal));
  SetMutant(Mutant::kNone);
  EXPECT_FALSE(Mutated(Mutant::kSplitTransaction));
}

#else

TEST(Failpoints, AreNothingInARelease) {
  setenv("TERSE_FAILPOINTS", "client.train.done=kill", 1);
  EXPECT_TRUE(Pass().ok());
  static_assert(!Mutated(Mutant::kSyncNormal));
}

#endif

}  // namespace
}  // namespace terse
