#include "bench/paper/early_tables.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/paper/sbc_tables.h"
#include "bench/paper/sparseloco_tables.h"

namespace terse {
namespace {

// The delay of all rows, so that they differ in what a round sends and in what is made of it.
constexpr int64_t kSteps = 10;

PaperMethod Sbc(const std::string& name, const std::string& title, const std::string& density,
                const std::string& rule) {
  PaperMethod method = {name,   title, "", absl::StrCat("name = 'sbc'\ndensity = ", density, "\ndownstream = 'auto'\n"),
                        kSteps, 50};
  method.aggregation = absl::StrCat("rule = '", rule, "'\n");
  return method;
}

std::vector<PaperMethod> EarlyMethods() {
  return {
      {"dense", "Dense", "", kDenseRun, kSteps, 50},
      Sbc("mean", "SBC, p = 0.01, mean", "0.01", "mean"),
      Sbc("imputed", "SBC, p = 0.01, imputed mean", "0.01", "imputed_mean"),
      Sbc("imputed2", "SBC, p = 0.02, imputed mean", "0.02", "imputed_mean"),
      Sbc("mean4", "SBC, p = 0.04, mean", "0.04", "mean"),
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

}  // namespace terse
