#include "compression/accumulation.h"

#include <algorithm>
#include <vector>

#include "core/status.h"

namespace terse {

absl::Status ForgetSent(const Codec& codec, absl::string_view message, absl::Span<float> state) {
  TERSE_ASSIGN_OR_RETURN(const absl::optional<std::vector<int64_t>> sent, codec.SentPositions(message));
  if (!sent.has_value()) {
    std::fill(state.begin(), state.end(), 0.0f);
    return absl::OkStatus();
  }
  for (size_t vector = 0; vector < state.size(); vector += codec.layout().size()) {
    for (int64_t position : *sent) state[vector + position] = 0;
  }
  return absl::OkStatus();
}

}  // namespace terse
