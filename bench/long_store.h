// A store as a long run leaves it, for measurements and their test.
#ifndef TERSE_BENCH_LONG_STORE_H_
#define TERSE_BENCH_LONG_STORE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "storage/run_store.h"

namespace terse {

// Every client takes part in every round, sends 100 bytes and receives 2,800.
struct LongRun {
  int64_t rounds = 100'000;
  int64_t clients = 1000;
  int64_t events = 1'000'000;
  Retention retention{1000, 1'000'000};
};

// Plays the rounds one by one, in a store that holds a run (RunStore::CreateRun) and no round yet.
absl::Status PlayRounds(RunStore& store, const LongRun& run);

// Writes into the store of `directory`, which nobody has open, the rows that PlayRounds leaves there, in seconds and
// not in hours. tests/storage/long_store_test.cc compares them.
absl::Status FillRounds(const std::string& directory, const LongRun& run);

}  // namespace terse

#endif  // TERSE_BENCH_LONG_STORE_H_
