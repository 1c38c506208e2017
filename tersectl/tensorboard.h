// A run's curves for TensorBoard.
#ifndef TERSE_TERSECTL_TENSORBOARD_H_
#define TERSE_TERSECTL_TENSORBOARD_H_

#include <string>
#include <vector>

#include "terse/v1/admin.pb.h"

namespace terse {

// The content of an event file: TFRecords with TensorFlow's Event messages, first the file's version at the time at
// which the run was made, then one for each committed round, at the time of its commit; its step is the round's id. Its
// scalars, as 32-bit floats:
//
//   test/accuracy, test/loss, test/top5, test/perplexity   where the round was evaluated and they mean something
//   train/loss
//   train/NAME, evaluation/NAME, test/NAME   metrics by name
//   bytes/{up,down}_{payload,wire}                         of this round
//   bytes_total/{up,down}_wire                             of all rounds until it, aborted ones too
//   compression/up_{payload,wire}                          likewise: what dense updates would take, over what was sent
//   time/round_seconds                                     from opening to commit
//
// The same rounds give the same bytes.
std::string TensorBoardEvents(const v1::Status& status, const std::vector<v1::Round>& rounds);

}  // namespace terse

#endif  // TERSE_TERSECTL_TENSORBOARD_H_
