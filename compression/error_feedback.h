// Residual accumulation, SBC equation (2): R_t = R_{t-1} + delta_t - decode(message_t), with the verdict in between.
// What a message does not carry is kept and joins the next delta, so nothing is lost.
#ifndef TERSE_COMPRESSION_ERROR_FEEDBACK_H_
#define TERSE_COMPRESSION_ERROR_FEEDBACK_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compression/codec.h"

namespace terse {

// One per client and run. Holds one vector of layout().size() floats. Not thread-safe.
//
//   Compress(delta)      dense = residual + delta; returns the message; the update is now pending
//   Settle(applied)      APPLIED: dense -= decode(message);  NOT_APPLIED: dense stays, the work folds forward
//
// A pending update must be settled before the next Compress.
class ErrorFeedback {
 public:
  // `codec` must outlive this object. The residual starts at zero.
  explicit ErrorFeedback(const Codec* codec);

  // FAILED_PRECONDITION while an update is pending; INVALID_ARGUMENT from the codec, in which case the residual is as
  // it was before the call and the delta is not in it.
  absl::StatusOr<std::string> Compress(absl::Span<const float> delta);

  // FAILED_PRECONDITION when nothing is pending.
  absl::Status Settle(bool applied);

  // Zeroes the residual and forgets a pending update. Returns the L2 norm of what is lost, for the report.
  double Reset();

  // Continues from stored state: `dense` less decode(`minus`) is the residual. `minus` may be empty. If `pending` is
  // not empty it is the sealed message whose verdict is outstanding, and `dense` is the accumulated update it was made
  // from (then `minus` is empty). DATA_LOSS when sizes or messages do not fit.
  absl::Status Restore(absl::Span<const float> dense, absl::string_view minus, absl::string_view pending);

  // While an update is pending: residual + delta, the accumulated update that was encoded. Otherwise: the residual.
  absl::Span<const float> dense() const { return dense_; }
  bool pending() const { return !pending_.empty(); }
  const std::string& pending_message() const { return pending_; }
  // L2 norm of dense().
  double Norm() const;

 private:
  const Codec* const codec_;
  std::vector<float> dense_;
  std::string pending_;
};

}  // namespace terse

#endif  // TERSE_COMPRESSION_ERROR_FEEDBACK_H_
