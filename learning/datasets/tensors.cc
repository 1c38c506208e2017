#include "learning/datasets/tensors.h"

#include <ATen/ATen.h>
#include <ATen/core/ivalue.h>
#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/serialization/import_read.h>

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/status.h"
#include "learning/datasets/example_parts.h"
#include "learning/torch_edge.h"

namespace terse {
namespace {

absl::Status Malformed(const std::string& path, absl::string_view reason) {
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": ", reason, "; write it with torch.save({\"x\": features, \"y\": targets}, path)"));
}

// The column's element for tensors of `type`, and the type that they must be brought to before; none for others.
absl::optional<std::pair<Element, at::ScalarType>> ElementOf(at::ScalarType type) {
  switch (type) {
    case at::kByte:
      return {{Element::kByte, at::kByte}};
    case at::kFloat:
    case at::kDouble:
    case at::kHalf:
      return {{Element::kFloat, at::kFloat}};
    case at::kBool:
    case at::kChar:
    case at::kShort:
    case at::kInt:
      return {{Element::kInt32, at::kInt}};
    case at::kLong:
      return {{Element::kInt64, at::kLong}};
    default:
      return absl::nullopt;
  }
}

absl::StatusOr<Column> ColumnOf(const at::Tensor& tensor, const std::string& path, absl::string_view name) {
  const auto element = ElementOf(tensor.scalar_type());
  if (!element.has_value() || tensor.dim() == 0 || tensor.is_sparse()) {
    return Malformed(path, absl::StrCat("tensor ", name, " of type ", c10::toString(tensor.scalar_type()), " and ",
                                        tensor.dim(), " dimensions is not read"));
  }
  const auto owner = std::make_shared<const at::Tensor>(tensor.to(element->second).contiguous());
  const std::vector<int64_t> shape(owner->sizes().begin() + 1, owner->sizes().end());
  return Column::Shared(element->first, shape, owner->size(0), owner->data_ptr(), owner);
}

absl::StatusOr<Column> FindTensor(const c10::impl::GenericDict& dict, const std::string& path,
                                  const std::vector<std::string>& names) {
  std::vector<std::string> there;
  for (const auto& entry : dict) {
    if (!entry.key().isString() || !entry.value().isTensor()) continue;
    there.push_back(entry.key().toStringRef());
    for (const std::string& name : names) {
      if (there.back() == name) return ColumnOf(entry.value().toTensor(), path, name);
    }
  }
  return absl::NotFoundError(absl::StrCat(path, ": there is no tensor ", absl::StrJoin(names, " or "), "; it has ",
                                          there.empty() ? "none" : absl::StrJoin(there, ", ")));
}

absl::StatusOr<Examples> ReadTensorPart(const std::string& path) {
  c10::IValue value;
  const absl::Status read = CatchTorch(absl::StrCat("reading ", path), [&] {
    caffe2::serialize::PyTorchStreamReader reader(path);
    value = torch::jit::readArchiveAndTensors("data", "", "", {}, {}, at::Device(at::kCPU), reader);
    return absl::OkStatus();
  });
  if (!read.ok()) return Malformed(path, read.message());
  if (!value.isGenericDict()) return Malformed(path, "it holds no dictionary");
  return CatchTorch(absl::StrCat("reading ", path), [&]() -> absl::StatusOr<Examples> {
    const c10::impl::GenericDict dict = value.toGenericDict();
    TERSE_ASSIGN_OR_RETURN(Column x, FindTensor(dict, path, {"x", "features"}));
    TERSE_ASSIGN_OR_RETURN(Column y, FindTensor(dict, path, {"y", "targets"}));
    return PairExamples(std::move(x), std::move(y), path);
  });
}

}  // namespace

absl::StatusOr<Dataset> LoadTensors(const DataSpec& spec, const std::string& data_dir) {
  TERSE_ASSIGN_OR_RETURN(const DataParts parts, FindDataParts(spec, data_dir));
  return LoadExampleParts("tensors", parts, ReadTensorPart);
}

}  // namespace terse
