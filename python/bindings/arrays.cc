#include "python/bindings/arrays.h"

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "python/bindings/errors.h"

namespace terse {
namespace {

namespace nb = nanobind;

std::string NameOf(nb::dlpack::dtype dtype) {
  const char* kind = "numbers of another kind";
  switch (static_cast<nb::dlpack::dtype_code>(dtype.code)) {
    case nb::dlpack::dtype_code::Int:
      kind = "int";
      break;
    case nb::dlpack::dtype_code::UInt:
      kind = "uint";
      break;
    case nb::dlpack::dtype_code::Float:
      kind = "float";
      break;
    case nb::dlpack::dtype_code::Bfloat:
      kind = "bfloat";
      break;
    case nb::dlpack::dtype_code::Complex:
      kind = "complex";
      break;
    case nb::dlpack::dtype_code::Bool:
      return "bool";
    default:
      return kind;
  }
  return absl::StrCat(kind, dtype.bits);
}

template <typename Array>
bool IsContiguous(const Array& array) {
  int64_t expected = 1;
  for (size_t i = array.ndim(); i-- > 0;) {
    const auto length = static_cast<int64_t>(array.shape(i));
    if (length != 1 && array.stride(i) != expected) return false;
    expected *= length;
  }
  return true;
}

// Says what is wrong with an array, as the end of a sentence; empty where nothing is.
template <typename Array>
std::string FaultOf(const Array& array, const TensorSpec& tensor) {
  if (array.device_type() != nb::device::cpu::value) {
    return "is not in the CPU's memory; copy it there, such as with .cpu()";
  }
  if (array.dtype() != nb::dtype<float>()) {
    return absl::StrCat("holds ", NameOf(array.dtype()),
                        "; codecs take float32: convert it, with .astype(numpy.float32) or .float()");
  }
  std::vector<int64_t> shape;
  for (size_t i = 0; i < array.ndim(); ++i) shape.push_back(static_cast<int64_t>(array.shape(i)));
  if (shape != tensor.shape) {
    return absl::StrCat("has the shape [", absl::StrJoin(shape, ", "), "], not [", absl::StrJoin(tensor.shape, ", "),
                        "]; both ends need the same model");
  }
  if (!IsContiguous(array)) {
    return "does not lie in one piece; pass numpy.ascontiguousarray(array), or tensor.contiguous()";
  }
  if (reinterpret_cast<uintptr_t>(array.data()) % alignof(float) != 0) {
    return "is not aligned to 4 bytes; pass a copy";
  }
  return "";
}

[[noreturn]] void RaiseFault(const TensorSpec& tensor, const char* role, const std::string& fault) {
  RaiseCodecError(absl::StrCat("tensor '", tensor.name, "' of the ", role, " ", fault));
}

// Array: nb::ndarray<> for memory that is written.
template <typename Array, typename Pointers>
void Import(const nb::sequence& objects, const Layout& layout, const char* role, std::vector<Array>* arrays,
            Pointers* tensors) {
  size_t t = 0;
  for (const nb::handle object : objects) {
    const TensorSpec& tensor = layout.tensors().at(t++);
    Array array;
    if (!nb::try_cast<Array>(object, array, false)) {
      nb::ndarray<nb::ro> readable;
      if (nb::try_cast<nb::ndarray<nb::ro>>(object, readable, false)) {
        RaiseFault(tensor, role, "is read-only; pass an array that can be written, such as a copy");
      }
      RaiseFault(tensor, role,
                 absl::StrCat("is no array that can be read here but a ", nb::inst_name(object).c_str(),
                              "; pass a NumPy array, or another one of float32 that has DLPack"));
    }
    const std::string fault = FaultOf(array, tensor);
    if (!fault.empty()) RaiseFault(tensor, role, fault);
    tensors->push_back(static_cast<typename Pointers::value_type>(array.data()));
    arrays->push_back(std::move(array));
  }
  if (t != layout.tensors().size()) {
    RaiseCodecError(absl::StrCat("the ", role, " has ", t, " tensors, the model ", layout.tensors().size()));
  }
}

}  // namespace

ReadArrays::ReadArrays(const nb::sequence& arrays, const Layout& layout, const char* role) {
  Import(arrays, layout, role, &arrays_, &tensors_);
}

WrittenArrays::WrittenArrays(const nb::sequence& arrays, const Layout& layout, const char* role) {
  Import(arrays, layout, role, &arrays_, &tensors_);
}

}  // namespace terse
