// The attacks of hostile clients, which replace what they trained (docs/ROBUSTNESS.md, "Measured"). An attack changes
// the delta before it is compressed, so that the codec, the residual and the validation are those of any client.
#ifndef TERSE_BENCH_ROBUST_ATTACK_H_
#define TERSE_BENCH_ROBUST_ATTACK_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace terse {

struct Attack {
  std::string name;   // "sign_flip"
  std::string title;  // "sign flipped"
  // Changes the deltas of the hostile clients in place; all have the same length.
  std::function<void(absl::Span<const absl::Span<float>> hostile)> change;
};

// none        what was trained
// scaled      100 times what was trained
// sign_flip   10 times what was trained, the other way
// colluding   all send mean - 1.5 deviations of what they trained together, coordinate by coordinate (Baruch et al.
// 2019,
//             A Little Is Enough, Algorithm 3); deviations are those of a sample, 0 for one client
// huge        3e38 everywhere, the largest that a message may carry
// random      what was trained, each value at a random position
const std::vector<Attack>& Attacks();

}  // namespace terse

#endif  // TERSE_BENCH_ROBUST_ATTACK_H_
