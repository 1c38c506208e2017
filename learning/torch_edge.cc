#include "learning/torch_edge.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/status_details.h"

namespace terse {

namespace {

// Where a traceback of TorchScript says that it was last: "line 5, in forward". Empty where nothing says so.
std::string PlaceIn(absl::string_view line) {
  if (!absl::ConsumePrefix(&line, "File ")) return "";
  const size_t at = line.find("line ");
  return at == absl::string_view::npos ? "" : std::string(line.substr(at));
}

// One line of what LibTorch says. A traceback, most recent call last, ends with the reason; other texts begin with it.
std::string OneLineOf(absl::string_view text) {
  std::string first, last, place;
  for (const absl::string_view piece : absl::StrSplit(text, '\n', absl::SkipWhitespace())) {
    const absl::string_view line = absl::StripAsciiWhitespace(piece);
    if (first.empty()) first = std::string(line);
    last = std::string(line);
    const std::string here = PlaceIn(line);
    if (!here.empty()) place = here;
  }
  return place.empty() ? first : absl::StrCat(last, " (", place, ")");
}

}  // namespace

absl::Status TorchFailure(absl::string_view doing, const std::exception& error) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  const absl::string_view text = torch_error != nullptr ? torch_error->what_without_backtrace() : error.what();
  const std::string line = OneLineOf(text);
  const absl::Status status = absl::InternalError(absl::StrCat(doing, ": LibTorch: ", line));
  return line == text ? status : WithDetails(status, text);
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
