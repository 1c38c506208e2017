// The state of a server at one version, for another thread to read while rounds go on.
#ifndef TERSE_COORDINATOR_HELD_STATE_H_
#define TERSE_COORDINATOR_HELD_STATE_H_

#include <memory>
#include <vector>

#include "absl/types/span.h"

namespace terse {

// The numbers stay where and as they are for as long as `owner` is held.
struct HeldState {
  std::vector<absl::Span<const float>> parts;  // one behind the other; none is empty
  std::shared_ptr<const void> owner;

  std::vector<float> Copy() const {
    std::vector<float> copy;
    for (const absl::Span<const float> part : parts) copy.insert(copy.end(), part.begin(), part.end());
    return copy;
  }
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_HELD_STATE_H_
