// A trained model in files that other programs open. This header does not include LibTorch.
#ifndef TERSE_LEARNING_EXPORT_H_
#define TERSE_LEARNING_EXPORT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/layout.h"

namespace terse {

// The bytes of a TorchScript file for torch.jit.load, in Python or C++: forward takes float [N, 1, 28, 28] (for
// lenet5_caffe; bytes divided by 255) and gives logits [N, 10]. It is the forward pass that training used.
// NOT_FOUND for an unknown model; INVALID_ARGUMENT for weights of the wrong length; INTERNAL when LibTorch fails.
absl::StatusOr<std::string> ExportTorchScript(absl::string_view model, absl::Span<const float> weights);

// The bytes of a safetensors file: uint64 length of the header, little-endian; a JSON header padded with spaces to a
// multiple of 8, {"name": {"dtype": "F32", "shape": [...], "data_offsets": [begin, end]}, ...}, offsets from the end of
// the header; then the float32 values, little-endian, in the layout's order. INVALID_ARGUMENT for weights of the wrong
// length or a tensor name that JSON would have to escape.
absl::StatusOr<std::string> ExportSafetensors(const Layout& layout, absl::Span<const float> weights);

}  // namespace terse

#endif  // TERSE_LEARNING_EXPORT_H_
