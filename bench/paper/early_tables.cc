#include "bench/paper/early_tables.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/paper/sbc_tables.h"
#include "bench/paper/sparseloco_tables.h"

namespace terse {
namespace {

// The delays of all rows of a table, so that they differ in what a round sends and in what is made of it.
constexpr int64_t kFewSteps = 10;
constexpr int64_t kManySteps = 100;

constexpr char kWhole[] = "feedback = 'error_feedback'\n";
constexpr char kHalf[] = "feedback = 'error_feedback'\ndecay = 0.5\n";
constexpr char kAdaptive[] = "feedback = 'adaptive_decay'\n";

PaperMethod Dense(int64_t steps) { return {"dense", "Dense", "", kDenseRun, steps, 50}; }

PaperMethod Sbc(const std::string& name, const std::string& title, int64_t steps, const std::string& density,
                const std::string& feedback, const std::string& rule) {
  PaperMethod method = {name,  title,
                        "",    absl::StrCat("name = 'sbc'\ndensity = ", density, "\ndownstream = 'auto'\n", feedback),
                        steps, 50};
  method.aggregation = absl::StrCat("rule = '", rule, "'\n");
  return method;
}

// The first round sends a quarter of all elements, so that less is left to wait in the residual.
PaperMethod FirstRoundOfAQuarter() {
  PaperMethod method =
      Sbc("first", "SBC, p = 0.25, then 0.01, imputed mean", kFewSteps, "0.01", kWhole, "imputed_mean");
  method.control = "name = 'schedule'\nby = 'round'\nat = [1]\ndensity = [0.25, 0.01]\n";
  return method;
}

std::vector<PaperMethod> EarlyMethods() {
  return {
      Dense(kFewSteps),
      Sbc("mean", "SBC, p = 0.01, mean", kFewSteps, "0.01", kWhole, "mean"),
      Sbc("imputed", "SBC, p = 0.01, imputed mean", kFewSteps, "0.01", kWhole, "imputed_mean"),
      Sbc("imputed2", "SBC, p = 0.02, imputed mean", kFewSteps, "0.02", kWhole, "imputed_mean"),
      Sbc("mean4", "SBC, p = 0.04, mean", kFewSteps, "0.04", kWhole, "mean"),
      Sbc("imputed4", "SBC, p = 0.04, imputed mean", kFewSteps, "0.04", kWhole, "imputed_mean"),
      // The density that three times the bytes of "mean" allow on CharLSTM.
      Sbc("imputed38", "SBC, p = 0.038, imputed mean", kFewSteps, "0.038", kWhole, "imputed_mean"),
      Sbc("adaptive", "SBC, p = 0.01, imputed mean, adaptive decay", kFewSteps, "0.01", kAdaptive, "imputed_mean"),
      Sbc("adaptive2", "SBC, p = 0.02, imputed mean, adaptive decay", kFewSteps, "0.02", kAdaptive, "imputed_mean"),
      FirstRoundOfAQuarter(),
  };
}

std::vector<PaperMethod> DelayMethods() {
  return {
      Dense(kManySteps),
      Sbc("whole", "SBC, p = 0.01, mean", kManySteps, "0.01", kWhole, "mean"),
      Sbc("half", "SBC, p = 0.01, decay 0.5, mean", kManySteps, "0.01", kHalf, "mean"),
      Sbc("adaptive", "SBC, p = 0.01, adaptive decay, mean", kManySteps, "0.01", kAdaptive, "mean"),
      Sbc("imputed", "SBC, p = 0.01, adaptive decay, imputed mean", kManySteps, "0.01", kAdaptive, "imputed_mean"),
  };
}

PaperWorkload LeNet5(const std::string& name, const std::string& title, const std::string& partition) {
  PaperWorkload workload = LeNet5OnMnist();
  workload.name = name;
  workload.title = title;
  workload.data = absl::StrCat("name = 'mnist'\n", partition);
  return workload;
}

PaperTable WithoutFigures(PaperTable table) {
  for (PaperWorkload& workload : table.workloads) workload.figures.clear();
  return table;
}

}  // namespace

PaperTable EarlyTable() {
  return WithoutFigures(
      {"early",
       "Short runs: what is reached after few rounds and few bytes",
       EarlyMethods(),
       {LeNet5("lenet5", "LeNet5-Caffe on MNIST", "partition = 'iid'\n"),
        LeNet5("dirichlet", "LeNet5-Caffe on MNIST, Dirichlet of 0.5", "partition = 'dirichlet'\nalpha = 0.5\n"),
        LeNet5("two", "LeNet5-Caffe on MNIST, two classes a client", "partition = 'label_shards'\nlabels_each = 2\n"),
        CharLstmOnShakespeare(), SmallTransformerOnShakespeare()},
       PaperColumns::kLossAndBytes});
}

PaperTable DelayTable() {
  return WithoutFigures({"delay",
                         "Many local steps: what becomes of the residual",
                         DelayMethods(),
                         {LeNet5OnMnist(), CharLstmOnShakespeare()},
                         PaperColumns::kLossAndBytes});
}

}  // namespace terse
