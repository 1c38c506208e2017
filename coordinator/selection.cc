#include "coordinator/selection.h"

#include <algorithm>
#include <cmath>

#include "absl/container/btree_set.h"
#include "core/random.h"

namespace terse {
namespace {

constexpr int kFractionBits = 48;

// -log2(x / 2^64) in units of 2^-48, for x >= 1: the integer part from the leading bit, then one bit of the fraction
// for each squaring of the mantissa.
uint64_t NegativeLog2(uint64_t x) {
  const int leading_zeros = __builtin_clzll(x);
  uint64_t mantissa = x << leading_zeros;  // [1, 2) in units of 2^-63
  uint64_t log = static_cast<uint64_t>(63 - leading_zeros);
  for (int bit = 0; bit < kFractionBits; ++bit) {
    const __uint128_t square = static_cast<__uint128_t>(mantissa) * mantissa;  // [1, 4) in units of 2^-126
    const bool carry = (square >> 127) != 0;
    mantissa = static_cast<uint64_t>(carry ? square >> 64 : square >> 63);
    log = 2 * log + (carry ? 1 : 0);
  }
  return (uint64_t{64} << kFractionBits) - log;
}

uint64_t WeightOf(Selection selection, const Candidate& candidate) {
  constexpr double kScale = 1e6;
  if (selection == Selection::kSamples) return static_cast<uint64_t>(std::max<int64_t>(1, candidate.samples));
  if (selection != Selection::kReliability) return 1;
  return static_cast<uint64_t>(std::llround(kScale * std::clamp(candidate.reliability, 0.001, 1.0)));
}

struct Draw {
  uint64_t surprise = 0;  // NegativeLog2 of the draw, below 2^55
  uint64_t weight = 1;    // below 2^62
  int64_t client = 0;

  // surprise / weight, compared without a division.
  bool operator<(const Draw& other) const {
    const __uint128_t mine = static_cast<__uint128_t>(surprise) * other.weight;
    const __uint128_t others = static_cast<__uint128_t>(other.surprise) * weight;
    return mine != others ? mine < others : client < other.client;
  }
};

// A cohort of more than an eighth of the candidates is drawn from all of them.
constexpr int64_t kSmallShare = 8;

uint64_t MostWeight(const Lottery& lottery) {
  return WeightOf(lottery.selection, {0, lottery.most_samples, /*reliability=*/1});
}

// Draws one by one until `count` are drawn, or it took as many attempts as there are candidates.
absl::btree_set<int64_t> DrawSome(const Lottery& lottery, int64_t count, Random random) {
  absl::btree_set<int64_t> drawn;
  const uint64_t most = MostWeight(lottery);
  for (int64_t left = lottery.candidates; left > 0 && static_cast<int64_t>(drawn.size()) < count; --left) {
    const int64_t client = static_cast<int64_t>(random.Below(static_cast<uint64_t>(lottery.clients)));
    const absl::optional<Candidate> candidate = lottery.candidate(client);
    const bool taken = candidate.has_value() && random.Below(most) < WeightOf(lottery.selection, *candidate);
    if (taken) drawn.insert(client);
  }
  return drawn;
}

}  // namespace

std::vector<int64_t> DrawCohort(const Lottery& lottery, int64_t count, uint64_t seed, int64_t round) {
  if (lottery.selection == Selection::kAll) return lottery.all();
  absl::btree_set<int64_t> drawn;
  if (count < lottery.candidates / kSmallShare) {
    drawn = DrawSome(lottery, count, Random(seed, static_cast<uint64_t>(round)));
  }
  const int64_t missing = count - static_cast<int64_t>(drawn.size());
  if (missing > 0) {
    std::vector<Candidate> others;
    for (int64_t client : lottery.all()) {
      if (!drawn.contains(client)) others.push_back(*lottery.candidate(client));
    }
    const std::vector<int64_t> rest = DrawRanked(lottery.selection, others, missing, seed, round);
    drawn.insert(rest.begin(), rest.end());
  }
  return std::vector<int64_t>(drawn.begin(), drawn.end());
}

std::vector<int64_t> DrawRanked(Selection selection, const std::vector<Candidate>& candidates, int64_t count,
                                uint64_t seed, int64_t round) {
  const uint64_t round_seed = Random(seed, static_cast<uint64_t>(round)).Next();
  std::vector<Draw> draws;
  draws.reserve(candidates.size());
  for (const Candidate& candidate : candidates) {
    const uint64_t drawn = Random(round_seed, static_cast<uint64_t>(candidate.client)).Next();
    draws.push_back({NegativeLog2(std::max<uint64_t>(drawn, 1)), WeightOf(selection, candidate), candidate.client});
  }
  std::sort(draws.begin(), draws.end());
  if (selection != Selection::kAll) {
    draws.resize(std::min(draws.size(), static_cast<size_t>(std::max<int64_t>(count, 0))));
  }
  std::vector<int64_t> clients;
  clients.reserve(draws.size());
  for (const Draw& draw : draws) clients.push_back(draw.client);
  std::sort(clients.begin(), clients.end());
  return clients;
}

}  // namespace terse
