// The figures of a run's rounds by name, as every tool for curves gets them.
#ifndef TERSE_TERSECTL_ROUND_SCALARS_H_
#define TERSE_TERSECTL_ROUND_SCALARS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "terse/v1/admin.pb.h"

namespace terse {

// Name and value, in the order in which tools show them.
using Scalars = std::vector<std::pair<std::string, double>>;

// Turns rounds into scalars:
//
//   test/accuracy, test/loss, test/top5, test/perplexity   where the round was evaluated and they mean something
//   train/loss
//   train/NAME, evaluation/NAME, test/NAME   metrics by name
//   bytes/{up,down}_{payload,wire}                         of this round
//   bytes_total/{up,down}_wire                             of all rounds until it, aborted ones too
//   compression/up_{payload,wire}, compression/both_wire   likewise: what dense updates would take, over what was sent
//   time/round_seconds                                     from opening to commit
//
// Not thread-safe.
class RoundScalars {
 public:
  // Counts a round towards the totals; call it for every round from the run's first on. Returns the scalars of a
  // committed one, and nothing for any other.
  Scalars Add(const v1::Round& round);

 private:
  uint64_t dense_bytes_up_ = 0, payload_bytes_up_ = 0, wire_bytes_up_ = 0;
  uint64_t dense_bytes_down_ = 0, wire_bytes_down_ = 0;
};

}  // namespace terse

#endif  // TERSE_TERSECTL_ROUND_SCALARS_H_
