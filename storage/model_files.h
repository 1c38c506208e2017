// Weights in files that other programs open, for every model whatever trains it.
#ifndef TERSE_STORAGE_MODEL_FILES_H_
#define TERSE_STORAGE_MODEL_FILES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/layout.h"

namespace terse {

// The bytes of a safetensors file: uint64 length of the header, little-endian; a JSON header padded with spaces to a
// multiple of 8, {"name": {"dtype": "F32", "shape": [...], "data_offsets": [begin, end]}, ...}, offsets from the end of
// the header; then the float32 values, little-endian, in the layout's order. Where there are buffers, "terse.buffers"
// of
// "__metadata__" has their names, one a line. INVALID_ARGUMENT for weights of the wrong
// length or a tensor name that JSON would have to escape.
absl::StatusOr<std::string> ExportSafetensors(const Layout& layout, absl::Span<const float> weights);

// A model as a file describes it: its tensors, and their values in the order of the layout.
struct NamedWeights {
  Layout layout;
  std::vector<float> weights;
};

// Reads a safetensors file as above. The tensors are those of the file in the order of their offsets, without gaps, and
// buffers are behind the parameters. Anybody may have written the bytes: INVALID_ARGUMENT, with the tensor's name, for
// what is no such file, another type than F32, or a model that is no Layout.
absl::StatusOr<NamedWeights> ParseSafetensors(absl::string_view bytes);

// The bytes of a .npz file for numpy.load: a ZIP archive without compression of one NPY file (version 1.0, '<f4', C
// order) a tensor, under the tensor's name. INVALID_ARGUMENT for weights of the wrong length, or more than 2 GiB of
// them, which this form of archive does not hold.
absl::StatusOr<std::string> ExportNpz(const Layout& layout, absl::Span<const float> weights);

// A JSON array of a text run's symbols, one a line: the element n is the symbol that the model knows as the number n.
// Bytes that are not UTF-8 become U+FFFD.
std::string ExportVocabulary(const std::vector<std::string>& symbols);

}  // namespace terse

#endif  // TERSE_STORAGE_MODEL_FILES_H_
