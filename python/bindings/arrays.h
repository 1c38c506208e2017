// Arrays of Python as the memory of a model's tensors, without a copy.
#ifndef TERSE_PYTHON_BINDINGS_ARRAYS_H_
#define TERSE_PYTHON_BINDINGS_ARRAYS_H_

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <vector>

#include "core/layout.h"
#include "python/bindings/coder.h"

namespace terse {

// Keep the memory of arrays alive. Made and destroyed by a thread that holds the GIL.
//
// The constructors take one array for every tensor of the layout, in its order: float32 in C order on the CPU, with the
// tensor's shape. They raise CodecError, which names the tensor and `role`, such as "update".
class ReadArrays {
 public:
  ReadArrays(const nanobind::sequence& arrays, const Layout& layout, const char* role);
  const TensorPointers& tensors() const { return tensors_; }

 private:
  std::vector<nanobind::ndarray<nanobind::ro>> arrays_;
  TensorPointers tensors_;
};

// The same for arrays that are written.
class WrittenArrays {
 public:
  WrittenArrays(const nanobind::sequence& arrays, const Layout& layout, const char* role);
  const MutableTensorPointers& tensors() const { return tensors_; }

 private:
  std::vector<nanobind::ndarray<>> arrays_;
  MutableTensorPointers tensors_;
};

}  // namespace terse

#endif  // TERSE_PYTHON_BINDINGS_ARRAYS_H_
