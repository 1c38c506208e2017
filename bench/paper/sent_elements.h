// The number of elements that an update of a row carries, by which its payload can be divided.
#ifndef TERSE_BENCH_PAPER_SENT_ELEMENTS_H_
#define TERSE_BENCH_PAPER_SENT_ELEMENTS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "bench/paper/paper_table.h"

namespace terse {

// Returns the number of elements in a message of the row's codec for an update without zeros: what is planned of every
// tensor, or all of them. Errors of the row's run file, model or codec.
absl::StatusOr<int64_t> SentElements(const PaperRow& row);

}  // namespace terse

#endif  // TERSE_BENCH_PAPER_SENT_ELEMENTS_H_
