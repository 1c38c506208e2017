// The promise of docs/PROTOCOL.md under thousands of schedules of faults, and the proof that a broken protocol would be
// noticed. TERSE_SCHEDULES and TERSE_FIRST_SEED in the environment widen the search; terse-schedules does without a
// test.
#include <iostream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/simulation/schedule.h"
#include "tests/simulation/search.h"
#include "tests/simulation/settings.h"

namespace terse {
namespace {

// The sanitizers' builds are an order of magnitude slower.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int64_t kSchedules = 60;
#else
constexpr int64_t kSchedules = 800;
#endif
// Every mutant is noticed much earlier.
constexpr int64_t kSchedulesForMutant = 200;

SearchOptions Options() {
  SearchOptions options;
  options.first_seed = static_cast<uint64_t>(SettingFromEnvironment("TERSE_FIRST_SEED", 1));
  options.schedules = SettingFromEnvironment("TERSE_SCHEDULES", kSchedules);
  return options;
}

std::string Describe(const SearchResult& result, Mutant mutant) {
  if (!result.seed.has_value()) return "";
  return absl::StrCat(result.violation.what, "\n  ", CommandFor(*result.seed, mutant));
}

TEST(Simulation, SameSeedSameTrace) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    const uint64_t trace = Schedule(seed).Run().trace;
    EXPECT_EQ(Schedule(seed).Run().trace, trace) << seed;
    EXPECT_NE(Schedule(seed + 1).Run().trace, trace) << seed;
  }
}

TEST(Simulation, NothingIsLostOrCountedTwice) {
  const SearchResult result = Search(Options());
  EXPECT_FALSE(result.seed.has_value()) << Describe(result, Mutant::kNone);
  const Totals& totals = result.totals;
  for (const auto& [name, value] : FiguresOf(totals)) std::cout << absl::StrCat(name, " ", value, "\n");
  // A schedule in which little happens proves little.
  EXPECT_GT(totals.updates_applied, 5 * totals.schedules);
  EXPECT_GT(totals.coordinator_kills, 4 * totals.schedules);
  EXPECT_GT(totals.client_kills, 4 * totals.schedules);
  for (const auto& [name, value] : FiguresOf(totals)) {
    const bool harm = name == "lost" || name == "doubled";
    EXPECT_EQ(value > 0, !harm) << name << " " << value;
  }
  for (size_t i = 0; i < totals.failpoints.size(); ++i) {
    // Chunks are the connection's business, below what is simulated.
    if (kFailpoints[i] == "client.upload.between_chunks") continue;
    // Nor are relays, and clients that move between them: the kill campaign comes by there.
    if (absl::StartsWith(kFailpoints[i], "client.move.") || absl::StartsWith(kFailpoints[i], "relay.")) continue;
    EXPECT_GT(totals.failpoints[i], 0) << "never came by " << kFailpoints[i];
  }
}

class EveryMutant : public testing::TestWithParam<size_t> {};

TEST_P(EveryMutant, IsNoticed) {
  if (!IsSimulated(static_cast<Mutant>(GetParam()))) GTEST_SKIP() << "other tests notice it: core/fault.h";
  SearchOptions options = Options();
  options.mutant = static_cast<Mutant>(GetParam());
  options.schedules = kSchedulesForMutant;
  const SearchResult result = Search(options);
  ASSERT_TRUE(result.seed.has_value()) << "not in " << options.schedules << " schedules";
  std::cout << absl::StrCat("noticed in schedule ", *result.seed - options.first_seed + 1, ": ", result.violation.what,
                            "\n");
  const ScheduleResult sound = Schedule(*result.seed).Run();
  EXPECT_FALSE(sound.violation.found()) << sound.violation.what;
}

INSTANTIATE_TEST_SUITE_P(Simulation, EveryMutant, testing::Range<size_t>(1, std::size(kMutantNames)),
                         [](const testing::TestParamInfo<size_t>& info) {
                           return std::string(kMutantNames[info.param]);
                         });

}  // namespace
}  // namespace terse
