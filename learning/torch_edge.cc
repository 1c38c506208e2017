#include "learning/torch_edge.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>

namespace terse {

absl::Status TorchFailure(absl::string_view doing, const std::exception& error) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  return absl::InternalError(absl::StrCat(
      doing, ": LibTorch: ", torch_error != nullptr ? torch_error->what_without_backtrace() : error.what()));
}

absl::StatusOr<c10::Device> ChooseDevice(absl::string_view name) {
  const bool has_cuda = at::globalContext().hasCUDA();
  if (name == "cpu" || (name == "auto" && !has_cuda)) return c10::Device(c10::kCPU);
  if (name == "auto") return c10::Device(c10::kCUDA, 0);
  if (name != "cuda") {
    return absl::InvalidArgumentError(absl::StrCat("device '", name, "' is not known; use auto, cpu or cuda"));
  }
  if (!has_cuda) {
    return absl::FailedPreconditionError(
        "device 'cuda': this LibTorch sees no CUDA device; use a CUDA build of LibTorch and a working driver, or "
        "choose cpu or auto");
  }
  return c10::Device(c10::kCUDA, 0);
}

void AdoptThreadCount() { at::init_num_threads(); }

}  // namespace terse
