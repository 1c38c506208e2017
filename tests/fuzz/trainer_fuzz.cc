#include <cstring>
#include <string>

#include "storage/model_files.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/targets.h"
#include "trainer/messages.h"

namespace terse {
namespace {

template <typename T>
void RunMessage(absl::string_view body) {
  const absl::StatusOr<T> message = FromJson<T>(body);
  if (!message.ok()) {
    Require(absl::IsInvalidArgument(message.status()), "a body that cannot be read is INVALID_ARGUMENT");
    return Require(!message.status().message().empty(), "the status says what is wrong");
  }
  const std::string written = ToJson(*message);
  const absl::StatusOr<T> again = FromJson<T>(written);
  Require(again.ok(), "what was read can be written and read again");
  Require(ToJson(*again) == written, "and says the same");
}

void RunSymbols(absl::string_view body) {
  const absl::StatusOr<std::vector<std::string>> symbols = UnpackSymbols(body, 1000);
  if (symbols.ok()) Require(PackSymbols(*symbols) == body, "symbols that were read are written as they were");
}

}  // namespace

void FuzzTrainerMessage(const char*, const uint8_t* data, size_t size) {
  Input input(data, size);
  const uint8_t kind = input.Byte();
  const absl::string_view body = input.Rest();
  switch (kind % 9) {
    case 0:
      return RunMessage<Hello>(body);
    case 1:
      return RunMessage<WireResult>(body);
    case 2:
      return RunMessage<WireFailure>(body);
    case 3:
      return RunMessage<OpenRequest>(body);
    case 4:
      return RunMessage<LocalPlan>(body);
    case 6:
      return RunMessage<WireEvaluation>(body);
    case 7:
      return RunMessage<EvaluateRequest>(body);
    case 8:
      return RunSymbols(body);
    default:
      return RunMessage<ProgressReport>(body);
  }
}

void FuzzModelFile(const char*, const uint8_t* data, size_t size) {
  // No mutation makes the length of the header right.
  Input input(data, size);
  const bool right = (input.Byte() & 1) != 0;
  const uint64_t length = input.Byte() + (uint64_t{input.Byte()} << 8);
  const absl::string_view rest = input.Rest();
  std::string bytes(rest);
  if (right) bytes.insert(0, std::string(reinterpret_cast<const char*>(&length), sizeof length));
  const absl::StatusOr<NamedWeights> model = ParseSafetensors(bytes);
  if (!model.ok()) {
    return Require(absl::IsInvalidArgument(model.status()), "a file that cannot be read is INVALID_ARGUMENT");
  }
  Require(static_cast<int64_t>(model->weights.size()) == model->layout.size(), "every element has a value");
  const absl::StatusOr<std::string> written = ExportSafetensors(model->layout, model->weights);
  Require(written.ok(), "what was read can be written");
  const absl::StatusOr<NamedWeights> again = ParseSafetensors(*written);
  Require(again.ok() && again->layout.Hash() == model->layout.Hash(), "and read again, as the same model");
  Require(std::memcmp(again->weights.data(), model->weights.data(), model->weights.size() * sizeof(float)) == 0,
          "with the same values");
}

}  // namespace terse
