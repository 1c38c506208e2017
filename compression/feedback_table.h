// The one table of feedbacks. Adding one is a file pair and a row in feedback_table.cc.
#ifndef TERSE_COMPRESSION_FEEDBACK_TABLE_H_
#define TERSE_COMPRESSION_FEEDBACK_TABLE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compression/feedback.h"
#include "core/run_config.h"

namespace terse {

// Names of all feedbacks, in table order.
std::vector<std::string> FeedbackNames();

// The name of the feedback of `codec`, which is MakeCodec of the same spec: spec.feedback, known or not, or the codec's
// own when that is "own" (none for an unbiased code of random_sparse, with which error feedback would diverge).
absl::StatusOr<std::string> FeedbackOf(const CodecSpec& spec, const Codec& codec);

// The feedback of that name with the rate schedule that the settings ask for. `codec` is MakeCodec of
// the same spec and must outlive it. INVALID_ARGUMENT for an unknown name (listing the known ones) or a setting out of
// range.
absl::StatusOr<std::unique_ptr<Feedback>> MakeFeedback(const CodecSpec& spec, const Codec* codec);

}  // namespace terse

#endif  // TERSE_COMPRESSION_FEEDBACK_TABLE_H_
