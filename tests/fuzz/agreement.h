// All ways to read a message must tell the same.
#ifndef TERSE_TESTS_FUZZ_AGREEMENT_H_
#define TERSE_TESTS_FUZZ_AGREEMENT_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "compression/codec.h"

namespace terse {

// The elements that a message carries.
struct Elements {
  std::vector<int64_t> positions;  // flat, increasing
  std::vector<float> values;       // finite
};

// Reads the message with Validate, with a cursor, and in one of the other ways that the library has, which `pieces`
// chooses: AddDecoded, SentPositions, cursors with limits and clones, UpdateIndex, AverageUpdates. Ends the process
// when they disagree, leave the layout's bounds, give NaN or infinity, or fail with another code than INVALID_ARGUMENT.
// Returns what was read, or nothing for a message that is refused.
absl::optional<Elements> ReadEveryWay(const Codec& codec, absl::string_view message, uint64_t pieces);

}  // namespace terse

#endif  // TERSE_TESTS_FUZZ_AGREEMENT_H_
