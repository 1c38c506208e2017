// The rows and columns of `terse-bench robust`: rules of aggregation against attacks by so many of the clients.
#ifndef TERSE_BENCH_ROBUST_ROBUST_TABLE_H_
#define TERSE_BENCH_ROBUST_ROBUST_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/robust/attack.h"

namespace terse {

// A defence of the run. A rule is told the true number of hostile clients, or the middle one of the table where there
// are none.
struct Defence {
  std::string name;         // "median-skip"
  std::string aggregation;  // keys of [aggregation] beside byzantine and trim
  std::string policy = {};  // keys of [policy]
};

const std::vector<Defence>& Defences();

struct RobustSettings {
  int64_t clients = 20;
  int64_t rounds = 0;
  std::string codec = "stc";
  std::string model = "perceptron";
  uint64_t seed = 1;
};

struct RobustCell {
  const Defence* defence = nullptr;
  const Attack* attack = nullptr;
  int64_t hostile = 0;  // clients 0 to hostile - 1, so that ties are theirs
  std::string key;      // "krum-sign_flip-4"
  std::string run;      // a run file (TOML)
};

// Returns how many of the clients are hostile for each of the percentages, rounded down. INVALID_ARGUMENT where that is
// nobody, or as many as for another one, because the table would show the same column twice.
absl::StatusOr<std::vector<int64_t>> HostileCounts(int64_t clients, const std::vector<int64_t>& percent);

// The model on MNIST, iid, 10 local steps a round. `assumed` is what the rule is told of hostile clients.
RobustCell MakeRobustCell(const Defence& defence, const Attack& attack, int64_t hostile, int64_t assumed,
                          const RobustSettings& settings);

}  // namespace terse

#endif  // TERSE_BENCH_ROBUST_ROBUST_TABLE_H_
