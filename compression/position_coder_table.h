// The one table of position coders. Adding one is a file pair and a row in position_coder_table.cc.
#ifndef TERSE_COMPRESSION_POSITION_CODER_TABLE_H_
#define TERSE_COMPRESSION_POSITION_CODER_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compression/position_coder.h"

namespace terse {

// Names of all coders, in table order.
std::vector<std::string> PositionCoderNames();

// The coder of that name, and rice for kSharedPositions (core/run_config.h); it lives as long as the process.
// INVALID_ARGUMENT for an unknown name, listing the known.
absl::StatusOr<const PositionCoder*> FindPositionCoder(absl::string_view name);

// The length of one tensor's positions in a coder's code, for tests and benchmarks.
struct PositionCost {
  std::string coder;
  double bits_per_position;
};

// One entry for each coder, in table order. `positions` as in PositionCoder, at least one.
std::vector<PositionCost> PositionCosts(absl::Span<const uint32_t> positions, int64_t size);

}  // namespace terse

#endif  // TERSE_COMPRESSION_POSITION_CODER_TABLE_H_
