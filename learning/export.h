// A trained model as a file that LibTorch opens in Python or C++. This header does not include LibTorch.
#ifndef TERSE_LEARNING_EXPORT_H_
#define TERSE_LEARNING_EXPORT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "learning/blueprint.h"

namespace terse {

// The bytes of a TorchScript file for torch.jit.load, in Python or C++, in evaluation mode: the forward pass that
// training used (for lenet5_caffe float [N, 1, 28, 28], bytes divided by 255, to logits [N, 10]). Buffers that clients
// keep to themselves have the values that they started with. INVALID_ARGUMENT for weights of the wrong length; INTERNAL
// when LibTorch fails.
absl::StatusOr<std::string> ExportTorchScript(const Blueprint& blueprint, absl::Span<const float> weights);

}  // namespace terse

#endif  // TERSE_LEARNING_EXPORT_H_
