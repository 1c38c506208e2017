// Bits until a training loss is reached: the measure of Yu et al. 2019, Double Quantization, Table 1.
#ifndef TERSE_BENCH_PAPER_BITS_TO_LOSS_H_
#define TERSE_BENCH_PAPER_BITS_TO_LOSS_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "terse/v1/admin.pb.h"

namespace terse {

// Computes the bits that a run took to reach a loss, from the losses at the snapshots, over all training examples,
// which clients report with the full gradient. Bits are those of the payload of all messages of all clients, both ways,
// that were sent until the snapshot was made. Keys, each null when it did not happen:
//   bits           until the loss is `target`, linear between the snapshot before and the one after; until the one
//                  after where the one before has no finite loss
//   target_rounds  committed rounds until then, likewise
//   snapshot_bits  until the first snapshot whose loss is below `target`
//   least_loss     of the snapshots that have a finite one
// `epoch_length` as of the run; `rounds` in order.
nlohmann::ordered_json BitsToLoss(const std::vector<v1::Round>& rounds, double target, int64_t epoch_length);

}  // namespace terse

#endif  // TERSE_BENCH_PAPER_BITS_TO_LOSS_H_
