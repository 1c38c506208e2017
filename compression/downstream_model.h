// Downstream messages of runs with epochs (core/epochs.h): each carries a model, not a step from the model before it,
// so a client that has the epoch's snapshot x~ needs the newest one alone. Yu, Wu, Huang, "Double Quantization for
// Communication-Efficient Distributed Optimization" (NeurIPS 2019), Algorithm 1, step 7. Both ends call ApplyModel on
// the same bytes, so they hold the same weights bit for bit. Format: compression/FORMAT.md.
#ifndef TERSE_COMPRESSION_DOWNSTREAM_MODEL_H_
#define TERSE_COMPRESSION_DOWNSTREAM_MODEL_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compression/downstream.h"

namespace terse {

// The model itself, in float32: a snapshot, and every model of a run that does not quantize them.
std::string BuildModelDownstream(absl::Span<const float> model);

// The model as a message of the downstream codec.
std::string BuildCodedModelDownstream(absl::string_view message);

// The model less the snapshot as a message of the downstream codec: De Sa et al. 2018, "High-Accuracy Low-Precision
// Training" (HALP), section 3, bit centering.
std::string BuildCenteredModelDownstream(absl::string_view message);

// The snapshot once more: the flag of section 4.1.
std::string BuildSnapshotDownstream();

// `weights` become the model. `snapshot` is of the model's epoch; it may be empty for a message that needs none.
// INVALID_ARGUMENT for malformed bytes, with `weights` unchanged. `scratch` is resized to the layout.
absl::Status ApplyModel(const DownstreamCodecs& codecs, absl::string_view message, absl::Span<const float> snapshot,
                        std::vector<float>* scratch, absl::Span<float> weights);

}  // namespace terse

#endif  // TERSE_COMPRESSION_DOWNSTREAM_MODEL_H_
