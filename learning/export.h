// A trained model in files that other programs open. This header does not include LibTorch.
#ifndef TERSE_LEARNING_EXPORT_H_
#define TERSE_LEARNING_EXPORT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/layout.h"
#include "learning/blueprint.h"

namespace terse {

// The bytes of a TorchScript file for torch.jit.load, in Python or C++, in evaluation mode: the forward pass that
// training used (for lenet5_caffe float [N, 1, 28, 28], bytes divided by 255, to logits [N, 10]). Buffers that clients
// keep to themselves have the values that they started with. INVALID_ARGUMENT for weights of the wrong length; INTERNAL
// when LibTorch fails.
absl::StatusOr<std::string> ExportTorchScript(const Blueprint& blueprint, absl::Span<const float> weights);

// The bytes of a safetensors file: uint64 length of the header, little-endian; a JSON header padded with spaces to a
// multiple of 8, {"name": {"dtype": "F32", "shape": [...], "data_offsets": [begin, end]}, ...}, offsets from the end of
// the header; then the float32 values, little-endian, in the layout's order. INVALID_ARGUMENT for weights of the wrong
// length or a tensor name that JSON would have to escape.
absl::StatusOr<std::string> ExportSafetensors(const Layout& layout, absl::Span<const float> weights);

// The bytes of a .npz file for numpy.load: a ZIP archive without compression of one NPY file (version 1.0, '<f4', C
// order) a tensor, under the tensor's name. INVALID_ARGUMENT for weights of the wrong length, or more than 2 GiB of
// them, which this form of archive does not hold.
absl::StatusOr<std::string> ExportNpz(const Layout& layout, absl::Span<const float> weights);

}  // namespace terse

#endif  // TERSE_LEARNING_EXPORT_H_
