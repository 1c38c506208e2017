#include "bench/paper/paper_table.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace terse {
namespace {

// Gradient Dropping sends 32-bit values at distances of 16 bits (Table I); the momentum nets use momentum factor
// masking with it (section IV-B), as SBC does (supplement VII-A).
std::vector<PaperMethod> SbcMethods() {
  constexpr char kMasking[] = "momentum_masking = true\n";
  constexpr char kDense[] = "name = 'dense'\ndownstream = 'dense'\n";
  return {
      {"baseline", "Baseline", "", kDense, 1, 5},
      {"gradient_dropping", "Gradient Dropping", kMasking,
       "name = 'top_k'\ndensity = 0.001\npositions = 'fixed16'\ndownstream = 'forward'\n", 1, 50},
      {"fedavg", "Federated Averaging", "", kDense, 0, 5},
      {"sbc1", "SBC (1)", kMasking, "name = 'sbc'\ndensity = 0.001\npositions = 'rice'\ndownstream = 'forward'\n", 1,
       50},
      {"sbc2", "SBC (2)", kMasking, "name = 'sbc'\ndensity = 0.01\npositions = 'rice'\ndownstream = 'forward'\n", 10,
       50},
      {"sbc3", "SBC (3)", kMasking, "name = 'sbc'\ndensity = 0.01\npositions = 'rice'\ndownstream = 'forward'\n", 100,
       50},
  };
}

// Figure 3: temporal sparsity 1/n against gradient sparsity p. Without either it is the baseline.
std::vector<PaperMethod> SparsityGrid() {
  std::vector<PaperMethod> methods;
  for (const int64_t steps : {1, 3, 10, 30, 100}) {
    for (const char* density : {"1", "0.1", "0.01", "0.001"}) {
      const bool dense = density[1] == '\0';
      const std::string codec =
          dense ? "name = 'dense'\ndownstream = 'dense'\n"
                : absl::StrCat("name = 'sbc'\ndensity = ", density, "\npositions = 'rice'\ndownstream = 'forward'\n");
      methods.push_back({absl::StrCat("n", steps, "_p", density), absl::StrCat("n = ", steps, ", p = ", density),
                         "momentum_masking = true\n", codec, steps, dense ? 5 : 50});
    }
  }
  return methods;
}

PaperWorkload WithoutFigures(PaperWorkload workload) {
  workload.figures.clear();
  return workload;
}

// Table III of the supplement.
std::vector<PaperWorkload> SbcWorkloads() {
  return {
      {"lenet5",
       "LeNet5-Caffe on MNIST",
       PaperMetric::kAccuracy,
       2000,
       4,
       500,
       false,
       "name = 'lenet5_caffe'\n",
       "name = 'mnist'\npartition = 'iid'\n",
       "batch_size = 128\n",
       "name = 'adam'\nlearning_rate = 0.001\n",
       "",
       {{0.9946, 1}, {0.994, 634}, {0.994, 500}, {0.994, 2071}, {0.994, 3491}, {0.991, 24935}}},
      {"charlstm",
       "CharLSTM on Shakespeare",
       PaperMetric::kPerplexity,
       16000,
       4,
       1000,
       false,
       "name = 'char_lstm'\n",
       "name = 'shakespeare'\npartition = 'iid'\n",
       "batch_size = 5\nloss = 'sequence_cross_entropy'\nunroll = 35\n",
       "name = 'sgd'\nlearning_rate = 1.0\nclip_norm = 5.0\n",
       "factor = 0.8\nat = [{5000}, {8000}, {10000}, {12000}, {14000}]\n",
       {{3.635, 1}, {3.639, 660}, {3.904, 1000}, {3.671, 2572}, {3.782, 3958}, {4.072, 35201}}},
      {"resnet32",
       "ResNet32 on CIFAR-10",
       PaperMetric::kAccuracy,
       60000,
       4,
       1000,
       true,
       "name = 'resnet32'\n",
       "name = 'cifar10'\npartition = 'iid'\nnormalize = 'standardize'\naugment = 'pad_crop_flip'\n",
       "batch_size = 128\n",
       "name = 'sgd'\nlearning_rate = 0.01\nmomentum = 0.9\nweight_decay = 0.0002\n",
       "factor = 0.1\nat = [{30000}, {50000}]\n",
       {{0.926, 1}, {0.927, 604}, {0.919, 1000}, {0.923, 1530}, {0.919, 3430}, {0.922, 32300}}},
      {"wordlstm",
       "WordLSTM on the Penn Treebank",
       PaperMetric::kPerplexity,
       60000,
       4,
       1000,
       false,
       "name = 'word_lstm'\n",
       "name = 'ptb'\npartition = 'iid'\n",
       "batch_size = 5\nloss = 'sequence_cross_entropy'\nunroll = 35\n",
       "name = 'sgd'\nlearning_rate = 1.0\nclip_norm = 5.0\n",
       "factor = 0.8\nfrom = {24000}\nevery = {1200}\n",
       {{89.16, 1}, {89.39, 665}, {88.59, 1000}, {89.32, 2521}, {88.47, 3460}, {89.31, 34905}}},
  };
}

// Replaces every {x} by x * scale, at least 1.
std::string Scaled(absl::string_view text, double scale) {
  std::string out;
  while (true) {
    const size_t open = text.find('{');
    absl::StrAppend(&out, text.substr(0, open));
    if (open == absl::string_view::npos) return out;
    const size_t close = text.find('}', open);
    double value = 0;
    (void)absl::SimpleAtod(text.substr(open + 1, close - open - 1), &value);
    absl::StrAppend(&out, std::max<int64_t>(1, std::llround(value * scale)));
    text.remove_prefix(close + 1);
  }
}

}  // namespace

const std::vector<PaperTable>& PaperTables() {
  static const auto& tables = *new std::vector<PaperTable>{
      {"sbc-table2", "Sattler et al. 2018, Sparse Binary Compression, Table II", SbcMethods(), SbcWorkloads()},
      {"sbc-fig3",
       "Sattler et al. 2018, Sparse Binary Compression, Figure 3",
       SparsityGrid(),
       {WithoutFigures(SbcWorkloads()[0]), WithoutFigures(SbcWorkloads()[2])}},
  };
  return tables;
}

PaperRow MakePaperRow(const PaperTable& table, const PaperWorkload& workload, size_t method, const PaperScale& scale) {
  PaperRow row;
  row.table = &table;
  row.workload = &workload;
  row.method = &table.methods[method];
  if (method < workload.figures.size()) row.figures = workload.figures[method];
  const auto iterations = std::max<int64_t>(1, std::llround(static_cast<double>(workload.iterations) * scale.scale));
  int64_t steps = row.method->local_steps > 0 ? row.method->local_steps : workload.averaging_steps;
  steps = std::min(steps, iterations);
  row.rounds = std::max<int64_t>(1, iterations / steps);
  row.iterations = row.rounds * steps;
  row.key = absl::StrCat(workload.name, "-", row.method->name);
  row.run = absl::StrCat(
      "# ", workload.title, ", ", row.method->title, "; ", table.title, ".\nname = '", row.key,
      "'\nseed = ", scale.seed, "\ndurability = 'relaxed'\n\n[model]\n", workload.model, "\n[data]\n", workload.data,
      "\n[train]\nlocal_steps = ", steps, "\n", workload.train, "\n[train.optimizer]\n", workload.optimizer,
      workload.momentum ? row.method->optimizer_keys : "",
      workload.schedule.empty() ? "" : absl::StrCat("\n[train.schedule]\n", Scaled(workload.schedule, scale.scale)),
      "\n[codec]\n", row.method->codec, "\n[rounds]\ncount = ", row.rounds, "\nclients = ", workload.clients,
      "\nevaluate_every = ", std::max<int64_t>(1, row.rounds / 10),
      "\n\n[checkpoints]\nevery = ", row.method->checkpoint_every, "\n");
  return row;
}

}  // namespace terse
