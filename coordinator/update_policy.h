// Decides which updates of a round are refused when it closes, by [policy] of proto/terse/v1/run_config.proto and by
// the check that holds in every run. docs/PROTOCOL.md, "Refused updates", says what a refusal means for the client.
#ifndef TERSE_COORDINATOR_UPDATE_POLICY_H_
#define TERSE_COORDINATOR_UPDATE_POLICY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compression/codec.h"
#include "core/run_config.h"

namespace terse {

// An update of the round.
struct MeasuredUpdate {
  absl::string_view message;  // validated
  UpdateSize size;            // Codec::Measure of it
  int64_t folded = 0;  // updates of its client that were not applied since the last that was: their work is in it
};

struct Judgement {
  std::string reason;  // one line for people; empty: the update is taken
  bool grave = false;  // its client is set aside at once
};

// Each folded update raises what norm_ratio admits by once as much, up to so many of them: with no limit, a client that
// is late on purpose could save up for one update that undoes a run.
inline constexpr int64_t kMostFolded = 3;

// Whether norm_ratio applies: not in a run with epochs, whose clients send gradients and differences of gradients,
// which are zero where an epoch begins.
bool ComparesNorms(const RunConfig& config);

// Returns one judgement for each of `updates`, which are in the order of their clients. A pure function of its
// arguments, of the updates' parameters alone but for the first check. In turn, each among those that the ones before
// left:
//
//   (always)    refuses an element, also of a buffer, above kMostAverage (server_optimizer.h); grave. What is left can
//               be averaged by any rule without an overflow.
//   norm_ratio  refuses |u| > norm_ratio * median * (1 + folded, at most 1 + kMostFolded); grave. The median is that of
//               the norms of `updates`, when these are 3 or more, or else of these and `earlier`, which are the newest
//               accepted norms of other clients, when all are 3 or more. With fewer, or a median of 0, it refuses none.
//   norm_bound  refuses |u| > norm_bound.
//   z_score     refuses |u| - median > z_score * max(1.4826 MAD, median / 100), with the norms' median and MAD, the
//               median distance from it (Iglewicz and Hoaglin 1993, section 3.3, one-sided: a small update does no
//               harm). The hundredth is for rounds whose norms hardly differ.
//   cosine      refuses cos(u, sum of the others / their norms) < cosine. Each counts by its direction, so that a long
//               update does not decide what the others look like. An update that is zero is not refused. A reference
//               that a run would keep, such as its last step, would have to survive restarts, and there is none in the
//               first round.
//
// The last two need 3 updates and otherwise refuse none. What compares is of use while fewer than half of what it
// compares is hostile. INVALID_ARGUMENT for a message that does not decode. Only `cosine` decodes the updates: twice,
// O(elements sent), with the memory of UpdateBlocks and 8 bytes for each coordinate of its block.
absl::StatusOr<std::vector<Judgement>> JudgeUpdates(const Codec& codec, absl::Span<const MeasuredUpdate> updates,
                                                    const UpdatePolicy& policy, absl::Span<const double> earlier = {});

}  // namespace terse

#endif  // TERSE_COORDINATOR_UPDATE_POLICY_H_
