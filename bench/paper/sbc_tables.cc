#include "bench/paper/sbc_tables.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace terse {
namespace {

constexpr char kMasking[] = "momentum_masking = true\n";

// Gradient Dropping sends 32-bit values at distances of 16 bits (Table I); the momentum nets use momentum factor
// masking with it (section IV-B), as SBC does (supplement VII-A).
std::vector<PaperMethod> SbcMethods() {
  return {
      {"baseline", "Baseline", "", kDenseRun, 1, 5},
      {"gradient_dropping", "Gradient Dropping", kMasking,
       "name = 'top_k'\ndensity = 0.001\npositions = 'fixed16'\ndownstream = 'forward'\n", 1, 50},
      {"fedavg", "Federated Averaging", "", kDenseRun, 0, 5},
      SbcMethod("sbc1", "SBC (1)", 1, "0.001"),
      SbcMethod("sbc2", "SBC (2)", 10, "0.01"),
      SbcMethod("sbc3", "SBC (3)", 100, "0.01"),
  };
}

// Figure 3: temporal sparsity 1/n against gradient sparsity p. Without either it is the baseline.
std::vector<PaperMethod> SparsityGrid() {
  std::vector<PaperMethod> methods;
  for (const int64_t steps : {1, 3, 10, 30, 100}) {
    for (const char* density : {"1", "0.1", "0.01", "0.001"}) {
      PaperMethod method = SbcMethod(absl::StrCat("n", steps, "_p", density),
                                     absl::StrCat("n = ", steps, ", p = ", density), steps, density);
      if (density[1] == '\0') {
        method.codec = "name = 'dense'\ndownstream = 'dense'\n";
        method.checkpoint_every = 5;
      }
      methods.push_back(std::move(method));
    }
  }
  return methods;
}

PaperWorkload WithoutFigures(PaperWorkload workload) {
  workload.figures.clear();
  return workload;
}

}  // namespace

PaperWorkload LeNet5OnMnist() {
  return {"lenet5",
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
          {{0.9946, 1}, {0.994, 634}, {0.994, 500}, {0.994, 2071}, {0.994, 3491}, {0.991, 24935}}};
}

PaperWorkload CharLstmOnShakespeare() {
  return {"charlstm",
          "CharLSTM on Shakespeare",
          PaperMetric::kPerplexity,
          16000,
          4,
          1000,
          false,
          "name = 'char_lstm'\n",
          "name = 'shakespeare'\npartition = 'iid'\n",
          "batch_size = 5\nloss = 'sequence_cross_entropy'\nunroll = 35\n",
          "name = 'sgd'\nmomentum = 0.0\nlearning_rate = 1.0\nclip_norm = 5.0\n",
          "factor = 0.8\nat = [{5000}, {8000}, {10000}, {12000}, {14000}]\n",
          {{3.635, 1}, {3.639, 660}, {3.904, 1000}, {3.671, 2572}, {3.782, 3958}, {4.072, 35201}}};
}

PaperMethod SbcMethod(const std::string& name, const std::string& title, int64_t steps, const std::string& density) {
  const std::string codec =
      absl::StrCat("name = 'sbc'\ndensity = ", density, "\npositions = 'rice'\ndownstream = 'forward'\n");
  return {name, title, kMasking, codec, steps, 50};
}

std::vector<PaperWorkload> SbcWorkloads() {
  return {
      LeNet5OnMnist(),
      CharLstmOnShakespeare(),
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
       "name = 'sgd'\nmomentum = 0.0\nlearning_rate = 1.0\nclip_norm = 5.0\n",
       "factor = 0.8\nfrom = {24000}\nevery = {1200}\n",
       {{89.16, 1}, {89.39, 665}, {88.59, 1000}, {89.32, 2521}, {88.47, 3460}, {89.31, 34905}}},
  };
}

PaperTable SbcTable2() {
  return {"sbc-table2", "Sattler et al. 2018, Sparse Binary Compression, Table II", SbcMethods(), SbcWorkloads()};
}

PaperTable SbcFigure3() {
  return {"sbc-fig3",
          "Sattler et al. 2018, Sparse Binary Compression, Figure 3",
          SparsityGrid(),
          {WithoutFigures(SbcWorkloads()[0]), WithoutFigures(SbcWorkloads()[2])}};
}

}  // namespace terse
