// Where LibTorch's exceptions become statuses, how it computes, and how its devices are chosen. Includes LibTorch.
#ifndef TERSE_LEARNING_TORCH_EDGE_H_
#define TERSE_LEARNING_TORCH_EDGE_H_

#include <exception>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "c10/core/Device.h"
#include "c10/util/Exception.h"
#include "learning/flush_subnormals.h"

namespace terse {

// INTERNAL: "`doing`: LibTorch: message" in one line, without LibTorch's backtrace; what else a traceback of
// TorchScript says are the status's details (core/status_details.h).
absl::Status TorchFailure(absl::string_view doing, const std::exception& error);

// Runs `body`, which returns a Status or StatusOr and may throw what LibTorch throws (c10::Error and other
// std::exceptions); a throw becomes TorchFailure. `doing` is a phrase such as "training". Subnormal numbers are taken
// as 0 in it.
template <typename Body>
auto CatchTorch(absl::string_view doing, Body&& body) -> decltype(body()) {
  const FlushSubnormals flush_subnormals;
  try {
    return body();
  } catch (const std::exception& error) {
    return TorchFailure(doing, error);
  }
}

// "cpu", "cuda", or "auto": CUDA when LibTorch can use it. FAILED_PRECONDITION for "cuda" without a usable CUDA device,
// INVALID_ARGUMENT for another name.
absl::StatusOr<c10::Device> ChooseDevice(absl::string_view name);

// Gives the calling thread the process's number of threads (ConfigureThreads); OpenMP keeps the number per thread.
void AdoptThreadCount();

}  // namespace terse

#endif  // TERSE_LEARNING_TORCH_EDGE_H_
