#include "learning/export.h"

#include <algorithm>
#include <cstring>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/status.h"
#include "learning/models/model_table.h"
#include "learning/script_model.h"
#include "learning/torch_edge.h"

namespace terse {
namespace {

absl::Status CheckLength(const Layout& layout, size_t weights) {
  if (static_cast<int64_t>(weights) == layout.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the model has ", layout.size(), " weights, got ", weights, "; export the weights of that model"));
}

bool IsPlainName(absl::string_view name) {
  return std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-' || c == '/';
  });
}

}  // namespace

absl::StatusOr<std::string> ExportTorchScript(absl::string_view model, absl::Span<const float> weights) {
  TERSE_ASSIGN_OR_RETURN(const ModelDefinition definition, FindModel(model));
  TERSE_ASSIGN_OR_RETURN(const Layout layout, Layout::Create(definition.parameters));
  TERSE_RETURN_IF_ERROR(CheckLength(layout, weights.size()));
  return CatchTorch("exporting the model", [&]() -> absl::StatusOr<std::string> {
    ScriptModel script(definition, layout, c10::kCPU);
    script.SetWeights(weights);
    std::ostringstream out;
    script.module().save(out);
    return out.str();
  });
}

absl::StatusOr<std::string> ExportSafetensors(const Layout& layout, absl::Span<const float> weights) {
  static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "values are written as they lie in memory");
  TERSE_RETURN_IF_ERROR(CheckLength(layout, weights.size()));
  std::string header = "{";
  for (const TensorSpec& tensor : layout.tensors()) {
    if (!IsPlainName(tensor.name)) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor '", tensor.name, "' cannot be exported; use letters, digits and . _ - / in names"));
    }
    absl::StrAppend(&header, header.size() > 1 ? "," : "", "\"", tensor.name, "\":{\"dtype\":\"F32\",\"shape\":[",
                    absl::StrJoin(tensor.shape, ","), "],\"data_offsets\":[", tensor.offset * sizeof(float), ",",
                    (tensor.offset + tensor.size) * sizeof(float), "]}");
  }
  header += "}";
  header.append((8 - header.size() % 8) % 8, ' ');
  const uint64_t length = header.size();
  std::string bytes(sizeof length, '\0');
  std::memcpy(&bytes[0], &length, sizeof length);
  absl::StrAppend(&bytes, header,
                  absl::string_view(reinterpret_cast<const char*>(weights.data()), weights.size() * sizeof(float)));
  return bytes;
}

}  // namespace terse
