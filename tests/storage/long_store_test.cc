// The store that bench/long_store.h writes at once is the one that so many rounds leave.
#include "bench/long_store.h"

#include "tests/storage/storage_testing.h"
#include "tests/storage/system_calls.h"

namespace terse {
namespace {

// Without the epochs, of which the two stores had different numbers.
std::string Tables(const std::string& directory) {
  std::string dump = DumpTables(directory);
  const size_t rounds = dump.find("rounds\n");
  return dump.substr(rounds);
}

TEST(LongStore, IsThatOfSoManyRounds) {
  const SystemCallWatch watch(SkipSync);
  for (const Retention& retention : {Retention{5, 7}, Retention{0, 0}, Retention{100, 100}}) {
    const LongRun run{23, 3, 40, retention};
    TempDirectory played, filled;
    for (const TempDirectory* directory : {&played, &filled}) {
      const auto store = RunStore::Open(directory->Path()).value();
      ASSERT_OK(store->CreateRun(TestRun(4), TestWeights(0)));
    }
    ASSERT_OK(PlayRounds(*RunStore::Open(played.Path()).value(), run));
    ASSERT_OK(FillRounds(filled.Path(), run));
    EXPECT_EQ(Tables(played.Path()), Tables(filled.Path()));
    const auto one = RunStore::Open(played.Path(), PosixFiles(), RunStore::Depth::kEverything).value();
    const auto other = RunStore::Open(filled.Path(), PosixFiles(), RunStore::Depth::kEverything).value();
    EXPECT_EQ(one->GetHead()->version, other->GetHead()->version);
    EXPECT_EQ(one->GetHead()->model_hash, other->GetHead()->model_hash);
  }
}

}  // namespace
}  // namespace terse
