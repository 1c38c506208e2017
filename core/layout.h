// The layout of a model: its trainable tensors, and behind them its buffers where a run averages them, flattened one
// after the other into one vector of float32.
#ifndef TERSE_CORE_LAYOUT_H_
#define TERSE_CORE_LAYOUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/id128.h"

namespace terse {

// Parameters are trained. Buffers, such as the running mean and variance of BatchNorm, are what training leaves behind
// without a gradient.
enum class TensorKind { kParameter, kBuffer };

struct TensorSpec {
  std::string name;            // "conv1.weight"
  std::vector<int64_t> shape;  // {20, 1, 5, 5}
  int64_t offset = 0;          // of its first element in the flat vector
  int64_t size = 0;            // number of elements
  TensorKind kind = TensorKind::kParameter;
};

// Immutable after Create; copies are cheap enough for set-up code. Both ends build the same layout from the same model,
// so sizes never travel with an update.
class Layout {
 public:
  // Positions in a tensor have 31 bits on the wire and 32 in memory; those in a model have 64.
  static constexpr int64_t kMostTensorElements = (int64_t{1} << 31) - 1;
  // So that sizes in bits, for thousands of updates, fit int64.
  static constexpr int64_t kMostElements = int64_t{1} << 40;

  struct Entry {
    std::string name;
    std::vector<int64_t> shape;
    TensorKind kind = TensorKind::kParameter;
  };

  Layout() = default;
  // INVALID_ARGUMENT for a list without parameters, a parameter behind a buffer, a dimension below 1, a repeated name,
  // more than kMostTensorElements in one tensor, or more than kMostElements in all.
  static absl::StatusOr<Layout> Create(absl::Span<const Entry> entries);

  // Number of elements of the whole model.
  int64_t size() const { return size_; }
  // Number of elements of all parameters: buffers are the flat elements from here on.
  int64_t parameters() const { return parameters_; }
  absl::Span<const TensorSpec> tensors() const { return tensors_; }
  // The ranges of the weights that regularisation concerns: the parameters with two dimensions or more, neither biases
  // nor normalisation. Increasing; neighbours are one range.
  struct Range {
    int64_t begin = 0;
    int64_t size = 0;
  };
  std::vector<Range> WeightRanges() const;
  // The parameters alone.
  Layout WithoutBuffers() const;
  // Returns the hash of the names, the shapes and which tensors are buffers; two ends with different layouts refuse
  // each other at check-in.
  Id128 Hash() const;

 private:
  std::vector<TensorSpec> tensors_;
  int64_t size_ = 0;
  int64_t parameters_ = 0;
};

}  // namespace terse

#endif  // TERSE_CORE_LAYOUT_H_
