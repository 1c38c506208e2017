#include "learning/models/model_table.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/random.h"
#include "core/status.h"
#include "learning/models/alexnet.h"
#include "learning/models/dense_nets.h"
#include "learning/models/lenet5_caffe.h"
#include "learning/models/lstm_language.h"
#include "learning/models/mqgrad_cnn.h"
#include "learning/models/resnet.h"
#include "learning/models/transformer_language.h"

namespace terse {
namespace {

struct ModelRow {
  const char* name;
  ModelDefinition (*make)(const ModelSpec& spec);
};

constexpr ModelRow kModels[] = {
    {"lenet5_caffe", Lenet5Caffe}, {"alexnet", AlexNet},         {"resnet18", Resnet18},
    {"resnet32", Resnet32},        {"resnet50", Resnet50},       {"resnet110", Resnet110},
    {"word_lstm", WordLstm},       {"char_lstm", CharLstm},      {"ptb_lstm_1500", PtbLstm1500},
    {"char_rnn_512", CharRnn512},  {"transformer", Transformer}, {"transformer_small", TransformerSmall},
    {"mqgrad_cnn", MqgradCnn},     {"logistic", Logistic},       {"perceptron", Perceptron},
};

// Keeps the streams of starting weights apart from the other uses of a run's seed.
constexpr uint64_t kWeightsSalt = 0x7765696768747321ULL;

// Close to normal, between -2 and 2: the sum of twelve uniforms needs no function that machines round differently.
double CutNormal(Random* random) {
  while (true) {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += random->Uniform(0, 1);
    if (std::abs(sum) <= 2) return sum;
  }
}

double FanIn(const ModelTensor& tensor, int64_t size) { return static_cast<double>(size) / tensor.shape[0]; }

double FanOut(const ModelTensor& tensor, int64_t size) {
  return static_cast<double>(size) / (tensor.shape.size() > 1 ? tensor.shape[1] : 1);
}

// The bound of a uniform distribution, the deviation of a normal one, or the constant.
double Scale(const ModelTensor& tensor, int64_t size) {
  const double value = tensor.start.value;
  switch (tensor.start.rule) {
    case Start::Rule::kConstant:
    case Start::Rule::kUniform:
    case Start::Rule::kNormal:
      return value;
    case Start::Rule::kUniformFanIn:
    case Start::Rule::kNormalFanIn:
      return std::sqrt(value / FanIn(tensor, size));
    case Start::Rule::kNormalFanOut:
      return std::sqrt(value / FanOut(tensor, size));
    case Start::Rule::kGlorotUniform:
      return std::sqrt(6 / (FanIn(tensor, size) + FanOut(tensor, size)));
  }
  return 0;
}

void FillStart(const ModelTensor& tensor, Random random, absl::Span<float> out) {
  const double scale = Scale(tensor, static_cast<int64_t>(out.size()));
  switch (tensor.start.rule) {
    case Start::Rule::kConstant:
      std::fill(out.begin(), out.end(), static_cast<float>(scale));
      return;
    case Start::Rule::kUniform:
    case Start::Rule::kUniformFanIn:
    case Start::Rule::kGlorotUniform:
      for (float& weight : out) weight = static_cast<float>(random.Uniform(-scale, scale));
      return;
    case Start::Rule::kNormal:
    case Start::Rule::kNormalFanIn:
    case Start::Rule::kNormalFanOut:
      for (float& weight : out) weight = static_cast<float>(scale * CutNormal(&random));
      return;
  }
}

int64_t SizeOf(const ModelTensor& tensor) {
  int64_t size = 1;
  for (const int64_t dimension : tensor.shape) size *= dimension;
  return size;
}

}  // namespace

std::vector<std::string> ModelNames() {
  std::vector<std::string> names;
  for (const ModelRow& row : kModels) names.push_back(row.name);
  return names;
}

absl::StatusOr<ModelDefinition> FindModel(const ModelSpec& spec) {
  for (const ModelRow& row : kModels) {
    if (spec.name == row.name) return row.make(spec);
  }
  return absl::NotFoundError(
      absl::StrCat("model '", spec.name, "' is not known; model.name may be: ", absl::StrJoin(ModelNames(), ", ")));
}

absl::StatusOr<Layout> LayoutOf(const ModelDefinition& model, bool with_buffers) {
  std::vector<Layout::Entry> entries;
  for (const ModelTensor& tensor : model.tensors) {
    if (tensor.kind == TensorKind::kBuffer && !with_buffers) break;  // buffers are last
    entries.push_back({tensor.name, tensor.shape, tensor.kind});
  }
  return Layout::Create(entries);
}

absl::StatusOr<Layout> ModelLayout(const ModelSpec& spec, bool with_buffers) {
  TERSE_ASSIGN_OR_RETURN(const ModelDefinition model, FindModel(spec));
  return LayoutOf(model, with_buffers);
}

std::vector<float> StartWeights(const ModelDefinition& model, uint64_t seed, bool with_buffers) {
  std::vector<float> weights;
  uint64_t stream = 0;
  for (const ModelTensor& tensor : model.tensors) {
    if (tensor.kind == TensorKind::kBuffer && !with_buffers) break;
    const size_t begin = weights.size();
    weights.resize(begin + SizeOf(tensor));
    FillStart(tensor, Random(seed ^ kWeightsSalt, stream++), absl::MakeSpan(weights).subspan(begin));
  }
  return weights;
}

absl::StatusOr<std::vector<float>> InitialWeights(const ModelSpec& spec, uint64_t seed, bool with_buffers) {
  TERSE_ASSIGN_OR_RETURN(const ModelDefinition model, FindModel(spec));
  return StartWeights(model, seed, with_buffers);
}

}  // namespace terse
