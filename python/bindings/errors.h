// Statuses as exceptions of the package terse. The caller holds the GIL.
#ifndef TERSE_PYTHON_BINDINGS_ERRORS_H_
#define TERSE_PYTHON_BINDINGS_ERRORS_H_

#include <nanobind/nanobind.h>

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace terse {

[[noreturn]] inline void RaiseNamed(const char* exception, const std::string& text) {
  const nanobind::object type = nanobind::module_::import_("terse.errors").attr(exception);
  PyErr_SetString(type.ptr(), text.c_str());
  throw nanobind::python_error();
}

// Raises terse.CodecError.
[[noreturn]] inline void RaiseCodecError(const std::string& text) { RaiseNamed("CodecError", text); }

// Raises terse.CodecError with the status's words unless it is OK.
inline void RaiseIfError(const absl::Status& status) {
  if (!status.ok()) RaiseCodecError(std::string(status.message()));
}

// Raises terse.MalformedMessage with the status's words unless it is OK.
inline void RaiseIfMalformed(const absl::Status& status) {
  if (!status.ok()) RaiseNamed("MalformedMessage", std::string(status.message()));
}

template <typename T>
T ValueOrRaise(absl::StatusOr<T> value) {
  RaiseIfError(value.status());
  return *std::move(value);
}

}  // namespace terse

#endif  // TERSE_PYTHON_BINDINGS_ERRORS_H_
