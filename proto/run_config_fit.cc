#include "proto/run_config_fit.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "core/run_config.h"

namespace terse {
namespace {

enum class Kind { kText, kExamples };

struct ModelTraits {
  const char* name;
  Kind takes;
  const char* shape;   // of an example; "": any, of `inputs` numbers
  int64_t inputs;      // model.inputs = 0
  int64_t classes;     // model.classes = 0
  bool widens = true;  // whether model.classes changes that
};

// As learning/models has them.
constexpr ModelTraits kModelTraits[] = {
    {"lenet5_caffe", Kind::kExamples, "1 x 28 x 28", 784, 10},
    {"alexnet", Kind::kExamples, "3 x 32 x 32", 3072, 10},
    {"resnet18", Kind::kExamples, "3 x 32 x 32", 3072, 100},
    {"resnet32", Kind::kExamples, "3 x 32 x 32", 3072, 10},
    {"resnet50", Kind::kExamples, "3 x 224 x 224", 150528, 1000},
    {"resnet110", Kind::kExamples, "3 x 32 x 32", 3072, 10},
    {"mqgrad_cnn", Kind::kExamples, "3 x 32 x 32", 3072, 10},
    {"word_lstm", Kind::kText, "", 0, 10000},
    {"char_lstm", Kind::kText, "", 0, 98},
    {"ptb_lstm_1500", Kind::kText, "", 0, 10000},
    {"char_rnn_512", Kind::kText, "", 0, 65},
    {"transformer", Kind::kText, "", 0, 256},
    {"transformer_small", Kind::kText, "", 0, 256},
    {"logistic", Kind::kExamples, "", 123, 1, false},
    {"perceptron", Kind::kExamples, "", 784, 10},
};

struct DataTraits {
  const char* name;
  Kind kind;
  const char* shape;  // of an example; "": the files tell
  int64_t inputs;     // numbers in an example; 0: the files tell
  int64_t classes;    // 0: the files tell
};

// As learning/datasets has them.
constexpr DataTraits kDataTraits[] = {
    {"mnist", Kind::kExamples, "1 x 28 x 28", 784, 10},
    {"cifar10", Kind::kExamples, "3 x 32 x 32", 3072, 10},
    {"a9a", Kind::kExamples, "123", 123, 2},
    {"ptb", Kind::kText, "", 0, 0},
    {"shakespeare", Kind::kText, "", 0, 0},
    {"text", Kind::kText, "", 0, 0},
    {"idx", Kind::kExamples, "", 0, 0},
    {"cifar", Kind::kExamples, "3 x 32 x 32", 3072, 0},
    {"libsvm", Kind::kExamples, "", 0, 0},
    {"csv", Kind::kExamples, "", 0, 0},
    {"images", Kind::kExamples, "", 0, 0},
    {"numpy", Kind::kExamples, "", 0, 0},
    {"tensors", Kind::kExamples, "", 0, 0},
};

template <typename Table>
const auto* RowOf(const Table& table, const std::string& name) {
  const auto* const row = absl::c_find_if(table, [&](const auto& each) { return name == each.name; });
  return row == std::end(table) ? nullptr : row;
}

const char* KindText(Kind kind) { return kind == Kind::kText ? "texts" : "examples"; }

void CheckShape(const v1::RunConfig& config, const ModelTraits& model, const DataTraits& data,
                ConfigViolations* violations) {
  const bool flattens = *model.shape == '\0';
  if (!flattens && *data.shape != '\0' && absl::string_view(model.shape) != data.shape) {
    violations->push_back({"model.name", absl::StrCat("model.name = '", model.name, "' takes examples of ", model.shape,
                                                      ", and those of data.name = '", data.name, "' are ", data.shape,
                                                      "; choose a model and a data set that fit")});
  }
  if (!flattens) return;
  const int64_t wanted = config.model().inputs() > 0 ? config.model().inputs() : model.inputs;
  const bool is_libsvm = config.data().name() == "libsvm";  // the only one that reads data.features
  const int64_t given = data.inputs > 0 ? data.inputs : is_libsvm ? config.data().features() : 0;
  if (given == 0 || wanted == given) return;
  violations->push_back({"model.inputs", absl::StrCat("model.name = '", model.name, "' takes examples of ", wanted,
                                                      " numbers, and those of data.name = '", data.name, "' have ",
                                                      given, "; set model.inputs = ", given)});
}

// Two classes may be told apart by one logit. A wider output than the data needs must be asked for, since a model's own
// width is that of its paper and not of the data: resnet18 has 100 outputs, and on CIFAR-10 90 of them would be idle.
bool FitsClasses(int64_t asked, int64_t width, int64_t classes) {
  if (classes == width || (width == 1 && classes == 2)) return true;
  return classes == 0 || (asked > 0 && classes < width);
}

void CheckClasses(const v1::RunConfig& config, const ModelTraits& model, const DataTraits& data,
                  ConfigViolations* violations) {
  const int64_t asked = model.widens ? config.model().classes() : 0;
  const int64_t width = asked > 0 ? asked : model.classes;
  if (FitsClasses(asked, width, data.classes)) return;
  const std::string remedy =
      model.widens ? absl::StrCat("set model.classes = ", data.classes) : "choose a model and a data set that fit";
  violations->push_back(
      {model.widens ? "model.classes" : "model.name",
       absl::StrCat("model.name = '", model.name, "' tells ", std::max<int64_t>(width, 2),
                    " classes apart, and data.name = '", data.name, "' has ", data.classes, "; ", remedy)});
}

void CheckLoss(const std::string& loss, const DataTraits& data, ConfigViolations* violations) {
  const bool of_texts = loss == "lm_cross_entropy" || loss == "sequence_cross_entropy";
  if (loss == "auto" || of_texts == (data.kind == Kind::kText)) return;
  violations->push_back({"train.loss", absl::StrCat("train.loss = '", loss, "' is for ",
                                                    of_texts ? "texts" : "examples", ", and data.name = '", data.name,
                                                    "' is made of ", KindText(data.kind), "; use 'auto'")});
}

void CheckExternal(const v1::RunConfig& config, ConfigViolations* violations) {
  const bool model = config.model().name() == kExternalModel, data = config.data().name() == kExternalModel;
  if (model && !data) {
    violations->push_back({"data.name", absl::StrCat("data.name = '", config.data().name(),
                                                     "' is read by nobody: a model that only the clients' own trainers "
                                                     "know trains on their own data; use 'external'")});
  } else if (data && !model) {
    violations->push_back(
        {"data.name", absl::StrCat("data.name = 'external' has no test set for model.name = '", config.model().name(),
                                   "'; name one that it can be evaluated on")});
  }
  if (model && config.server().epoch_length() > 0) {
    violations->push_back({"server.epoch_length",
                           "server.epoch_length needs gradients, which trainers of model.name = "
                           "'external' do not send; leave it out"});
  }
}

}  // namespace

bool ReadsExamples(const v1::RunConfig& config) {
  const DataTraits* const data = RowOf(kDataTraits, config.data().name());
  return data != nullptr && data->kind == Kind::kExamples;
}

void CheckFit(const v1::RunConfig& config, ConfigViolations* violations) {
  CheckExternal(config, violations);
  const DataTraits* const data = RowOf(kDataTraits, config.data().name());
  if (data == nullptr) return;
  CheckLoss(config.train().loss(), *data, violations);
  const ModelTraits* const model = RowOf(kModelTraits, config.model().name());
  if (model == nullptr) return;
  if (model->takes != data->kind) {
    violations->push_back(
        {"model.name",
         absl::StrCat("model.name = '", model->name, "' takes ", KindText(model->takes), ", and data.name = '",
                      data->name, "' is made of ", KindText(data->kind), "; choose a model and a data set that fit")});
    return;
  }
  if (data->kind == Kind::kText) return;
  CheckShape(config, *model, *data, violations);
  CheckClasses(config, *model, *data, violations);
}

}  // namespace terse
