// The clients that an update stands for.
#ifndef TERSE_CORE_COHORT_H_
#define TERSE_CORE_COHORT_H_

#include <cstdint>

namespace terse {

// An update of a relay is the mean over the clients of a round below it, and counts for as much as they would.
struct CohortFacts {
  // More clients than this, or more samples than that, no update stands for: the weights of a round add up in int64.
  static constexpr int64_t kMostClients = 100'000'000;
  static constexpr int64_t kMostSamples = int64_t{1} << 48;

  int64_t clients = 0;  // whose updates are in it, below all relays on the way; 0: a client's own update
  int64_t samples = 0;  // of their training data together; 0 where `clients` is
};

// Whether an update may stand for them.
constexpr bool IsCohort(const CohortFacts& cohort) {
  const bool in_range = cohort.clients >= 0 && cohort.clients <= CohortFacts::kMostClients && cohort.samples >= 0 &&
                        cohort.samples <= CohortFacts::kMostSamples;
  return in_range && (cohort.clients == 0) == (cohort.samples == 0);
}

}  // namespace terse

#endif  // TERSE_CORE_COHORT_H_
