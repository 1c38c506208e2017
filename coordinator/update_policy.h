// Which updates of a round are refused when it closes: [policy] of proto/terse/v1/run_config.proto. What a refusal
// means for the client is in docs/PROTOCOL.md, "Refused updates".
#ifndef TERSE_COORDINATOR_UPDATE_POLICY_H_
#define TERSE_COORDINATOR_UPDATE_POLICY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compression/codec.h"
#include "core/run_config.h"

namespace terse {

// One line for people for each of `messages`, which are validated and in the order of their clients: why it is refused,
// or nothing. A pure function of its arguments, of the updates' parameters alone; buffers are not looked at. In turn,
// each among those that the ones before left:
//
//   norm_bound  refuses |u| > norm_bound.
//   z_score     refuses |u| - median > z_score * max(1.4826 MAD, median / 100), with median and MAD, the median
//   distance
//               from it, of the norms (Iglewicz and Hoaglin 1993, section 3.3, one-sided: a small update does no harm).
//               The hundredth is for rounds whose norms hardly differ.
//   cosine      refuses cos(u, sum of the others / their norms) < cosine. Each counts by its direction, so a long
//   update
//               does not decide what the others look like. Not for an update that is zero. A reference that a run would
//               keep, such as its last step, would have to survive restarts, and there is none in the first round.
//
// The last two need 3 updates and otherwise refuse none; they are of use while fewer than half of the updates are
// hostile. Sums are double, in the order of messages and positions. INVALID_ARGUMENT for a message that does not
// decode. O(elements sent); memory: that of UpdateBlocks, and 8 bytes for each coordinate of its block.
absl::StatusOr<std::vector<std::string>> JudgeUpdates(const Codec& codec, absl::Span<const absl::string_view> messages,
                                                      const UpdatePolicy& policy);

}  // namespace terse

#endif  // TERSE_COORDINATOR_UPDATE_POLICY_H_
