// The clients that an update stands for.
#ifndef TERSE_CORE_COHORT_H_
#define TERSE_CORE_COHORT_H_

#include <cstdint>

namespace terse {

// An update of a relay is the mean over the clients of a round below it. It counts for as much as these clients would.
struct CohortFacts {
  // The most clients and the most samples that an update may stand for: the weights of a round add up in int64.
  static constexpr int64_t kMostClients = 100'000'000;
  static constexpr int64_t kMostSamples = int64_t{1} << 48;

  int64_t clients = 0;  // whose updates are in it, of all levels below; 0: a client's own update
  int64_t samples = 0;  // of their training data together; 0 where `clients` is
};

// Whether an update may stand for them.
constexpr bool IsCohort(const CohortFacts& cohort) {
  const bool in_range = cohort.clients >= 0 && cohort.clients <= CohortFacts::kMostClients && cohort.samples >= 0 &&
                        cohort.samples <= CohortFacts::kMostSamples;
  return in_range && (cohort.clients == 0) == (cohort.samples == 0);
}

// The facts that a relay knows about the tree below it, from its own run and from the relays below it. They are for
// people, and nothing depends on them.
struct BelowFacts {
  static constexpr int64_t kMostBytes = int64_t{1} << 60;

  int64_t clients = 0;  // connected to this relay or to one below it; relays do not count
  // The bytes that these clients and the relays between sent and received in the rounds of these relays until now.
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
