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

// What a relay knows of the tree below it: what its own run says, and what the relays below it have said. For people;
// nothing depends on it.
struct BelowFacts {
  static constexpr int64_t kMostBytes = int64_t{1} << 60;

  int64_t clients = 0;  // that are connected, to this relay or to one below it; relays do not count
  // What they, and the relays between, sent and received in the rounds of these relays until now.
  int64_t payload_bytes_up = 0, wire_bytes_up = 0;
  int64_t payload_bytes_down = 0, wire_bytes_down = 0;

  BelowFacts& operator+=(const BelowFacts& other) {
    clients += other.clients;
    payload_bytes_up += other.payload_bytes_up;
    wire_bytes_up += other.wire_bytes_up;
    payload_bytes_down += other.payload_bytes_down;
    wire_bytes_down += other.wire_bytes_down;
    return *this;
  }
};

}  // namespace terse

#endif  // TERSE_CORE_COHORT_H_
