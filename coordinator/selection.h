// Draws the clients that get work in a round. Pure functions of their arguments.
#ifndef TERSE_COORDINATOR_SELECTION_H_
#define TERSE_COORDINATOR_SELECTION_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/types/optional.h"
#include "core/run_config.h"

namespace terse {

struct Candidate {
  int64_t client = 0;
  int64_t samples = 1;     // at least 1, below 2^62
  double reliability = 1;  // 0..1
};

// Those who may be drawn.
struct Lottery {
  Selection selection = Selection::kAll;
  int64_t clients = 0;       // 0, 1, ... up to here are asked about
  int64_t candidates = 0;    // the number of candidates among them
  int64_t most_samples = 1;  // no candidate has more
  // The client, if it is a candidate.
  std::function<absl::optional<Candidate>(int64_t client)> candidate;
  // All candidates, in the order of their ids.
  std::function<std::vector<int64_t>()> all;
};

// Returns at most `count` of the candidates, in the order of their ids; kAll takes all of them whatever `count` says.
//
// Weighted sampling without replacement: each is drawn from those that are left with a probability in proportion to its
// weight w, which is 1 for kRandom, the number of samples for kSamples, and the reliability, at least a thousandth, for
// kReliability. A small share of the candidates is drawn one by one: a client at random, which is taken with the
// probability w / the largest weight, and again where it is not or was taken before. That is O(count) as long as
// candidates are a fair share of the clients and their weights of one size. For a large share, and where it takes too
// long, it goes on as DrawRanked does among the others: O(candidates). The draws depend on (seed, round) and the
// arguments alone.
std::vector<int64_t> DrawCohort(const Lottery& lottery, int64_t count, uint64_t seed, int64_t round);

// The same by Efraimidis and Spirakis, "Weighted random sampling with a reservoir" (2006), algorithm A-Res: every
// candidate draws u in (0, 1) and the largest u^(1/w) win. Compared are -log2(u) / w, which order the other way round,
// in integers: a floating-point logarithm may differ in its last bit between two machines' libraries. A candidate's u
// depends on (seed, round, client) alone, so the order of the candidates does not matter, and a client that is drawn
// from a set is drawn from every subset that it is in. Equal keys go by id.
std::vector<int64_t> DrawRanked(Selection selection, const std::vector<Candidate>& candidates, int64_t count,
                                uint64_t seed, int64_t round);

}  // namespace terse

#endif  // TERSE_COORDINATOR_SELECTION_H_
