#include "learning/models/model_table.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/random.h"
#include "core/status.h"
#include "learning/models/lenet5_caffe.h"

namespace terse {
namespace {

struct ModelRow {
  const char* name;
  ModelDefinition (*make)();
};

constexpr ModelRow kModels[] = {
    {"lenet5_caffe", Lenet5Caffe},
};

// Keeps the streams of starting weights apart from the other uses of a run's seed.
constexpr uint64_t kWeightsSalt = 0x7765696768747321ULL;

void StartXavierFanIn(const TensorSpec& tensor, Random random, absl::Span<float> out) {
  const double bound = std::sqrt(3.0 / (static_cast<double>(tensor.size) / tensor.shape[0]));
  for (float& weight : out) weight = static_cast<float>(random.Uniform(-bound, bound));
}

}  // namespace

std::vector<std::string> ModelNames() {
  std::vector<std::string> names;
  for (const ModelRow& row : kModels) names.push_back(row.name);
  return names;
}

absl::StatusOr<ModelDefinition> FindModel(absl::string_view name) {
  for (const ModelRow& row : kModels) {
    if (name == row.name) return row.make();
  }
  return absl::NotFoundError(
      absl::StrCat("model '", name, "' is not known; model.name may be: ", absl::StrJoin(ModelNames(), ", ")));
}

absl::StatusOr<Layout> ModelLayout(absl::string_view name) {
  TERSE_ASSIGN_OR_RETURN(const ModelDefinition model, FindModel(name));
  return Layout::Create(model.parameters);
}

absl::StatusOr<std::vector<float>> InitialWeights(absl::string_view name, uint64_t seed) {
  TERSE_ASSIGN_OR_RETURN(const Layout layout, ModelLayout(name));
  std::vector<float> weights(layout.size(), 0.0f);
  uint64_t stream = 0;
  for (const TensorSpec& tensor : layout.tensors()) {
    const absl::Span<float> values = absl::MakeSpan(weights).subspan(tensor.offset, tensor.size);
    if (tensor.shape.size() > 1) StartXavierFanIn(tensor, Random(seed ^ kWeightsSalt, stream), values);
    ++stream;
  }
  return weights;
}

}  // namespace terse
