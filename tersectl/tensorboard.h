// A run's curves for TensorBoard.
#ifndef TERSE_TERSECTL_TENSORBOARD_H_
#define TERSE_TERSECTL_TENSORBOARD_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "terse/v1/admin.pb.h"
#include "tersectl/round_scalars.h"

namespace terse {

// An event file has TFRecords with TensorFlow's Event messages: first TensorBoardBegin, then one TensorBoardStep for
// each committed round.
//
// The record with the file's version, at the time at which the run was made.
std::string TensorBoardBegin(int64_t created_us);
// The record with a committed round's scalars (round_scalars.h) as 32-bit floats, at the time of its commit; its step
// is the round's id.
std::string TensorBoardStep(const v1::Round& round, const Scalars& scalars);

// The content of the event file of these rounds, which are all of the run. The same rounds give the same bytes.
std::string TensorBoardEvents(const v1::Status& status, const std::vector<v1::Round>& rounds);

// The part of an event file's bytes that can be gone on from.
struct TensorBoardPart {
  size_t bytes = 0;   // of the whole records at the beginning, whose checksums are right
  uint64_t step = 0;  // the largest among them
};
TensorBoardPart ReadTensorBoard(absl::string_view file);

}  // namespace terse

#endif  // TERSE_TERSECTL_TENSORBOARD_H_
