// The tensor of an element, for those who go through a model from its beginning to its end.
#ifndef TERSE_COORDINATOR_AGGREGATION_TENSOR_WALK_H_
#define TERSE_COORDINATOR_AGGREGATION_TENSOR_WALK_H_

#include <cstddef>
#include <cstdint>

#include "core/layout.h"

namespace terse {

// Constant time a step, over all steps. The layout must outlive it.
class TensorWalk {
 public:
  explicit TensorWalk(const Layout* layout) : layout_(layout) {}

  // The index in layout().tensors() of the tensor that holds the element; positions do not decrease from call to call.
  size_t At(int64_t position) {
    while (position >= layout_->tensors()[tensor_].offset + layout_->tensors()[tensor_].size) ++tensor_;
    return tensor_;
  }

 private:
  const Layout* layout_;
  size_t tensor_ = 0;
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_AGGREGATION_TENSOR_WALK_H_
