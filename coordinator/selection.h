// Draws the clients that get work in a round. Pure functions of their arguments.
#ifndef TERSE_COORDINATOR_SELECTION_H_
#define TERSE_COORDINATOR_SELECTION_H_

#include <cstdint>
#include <vector>

#include "core/run_config.h"

namespace terse {

struct Candidate {
  int64_t client = 0;
  int64_t samples = 1;     // at least 1, below 2^62
  double reliability = 1;  // 0..1
};

// Returns at most `count` of the candidates, in the order of their ids; kAll takes all of them whatever `count` says.
//
// Weighted sampling without replacement by Efraimidis and Spirakis, "Weighted random sampling with a reservoir" (2006),
// algorithm A-Res: every candidate draws u in (0, 1) and the largest u^(1/w) win. The weight w is 1 for kRandom, the
// number of samples for kSamples, and the reliability, at least a thousandth, for kReliability. Compared are -log2(u) /
// w, which order the other way round, in integers: a floating-point logarithm may differ in its last bit between two
// machines' libraries. A candidate's u depends on (seed, round, client) alone, so the order of the candidates does not
// matter, and a client that is drawn from a set is drawn from every subset that it is in. Equal keys go by id.
std::vector<int64_t> DrawCohort(Selection selection, const std::vector<Candidate>& candidates, int64_t count,
                                uint64_t seed, int64_t round);

}  // namespace terse

#endif  // TERSE_COORDINATOR_SELECTION_H_
