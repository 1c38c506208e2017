#include "bench/paper/double_quantization_tables.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace terse {
namespace {

// One delta for the whole vector, as the paper's.
constexpr char kModelBits[] = "grouping = 'global'\nbits = 8\n";
// mu = 0.1 of Table 1, right; bits are the most that the condition may choose.
constexpr char kModelBitsByLoss[] = "grouping = 'global'\nbits = 16\n";
constexpr int64_t kEpochs = 12;

PaperMethod Method(const std::string& name, const std::string& title, const std::string& gradients,
                   const std::string& models, const std::string& downstream, const std::string& server) {
  PaperMethod method;
  method.name = name;
  method.title = title;
  method.codec = absl::StrCat("name = '", gradients, "'\ngrouping = 'global'\ndensity = 1.0\nfeedback = 'discard'\n",
                              "downstream = '", models, "'\n");
  method.local_steps = 1;
  method.checkpoint_every = 50;
  method.downstream = downstream;
  method.server = server;
  return method;
}

std::vector<PaperMethod> DoubleQuantizationMethods() {
  const std::string dense = "dense", low = "low_precision", sparse = "low_precision_sparse";
  const std::string plain = "optimizer = 'svrg'\n", accelerated = "optimizer = 'acc_svrg'\n";
  return {
      Method("asyfpg", "AsyFPG", dense, dense, "", plain),
      Method("acc_asyfpg", "Acc-AsyFPG", dense, dense, "", accelerated),
      Method("qsvrg", "QSVRG", low, dense, "", plain),
      Method("halp", "HALP", dense, low, kModelBits, plain + "bit_centering = true\n"),
      Method("asylpg", "AsyLPG", low, low, kModelBits, plain),
      Method("sparse_asylpg", "Sparse-AsyLPG", sparse, low, kModelBits, plain),
      Method("acc_asylpg", "Acc-AsyLPG", low, low, kModelBits, accelerated),
      Method("asylpg_mu", "AsyLPG, condition (2)", low, low, kModelBitsByLoss, plain + "precision_loss = 0.1\n"),
      Method("sparse_acc_asylpg", "Sparse Acc-AsyLPG", sparse, low, kModelBits, accelerated),
  };
}

PaperWorkload Workload(const std::string& name, int64_t epoch_length) {
  PaperWorkload workload;
  workload.name = name;
  workload.metric = PaperMetric::kAccuracy;
  workload.iterations = kEpochs * (epoch_length + 1);
  workload.clients = 6;
  workload.averaging_steps = 1;
  workload.momentum = false;
  workload.round_keys = "mode = 'buffered'\nbuffer = 1\nstaleness = 20\n";
  workload.epoch_length = epoch_length;
  return workload;
}

// Section 5.1 with a9a in the place of real-sim and rcv1.
PaperWorkload A9a() {
  PaperWorkload workload = Workload("a9a", 163);  // ceil(n / B)
  workload.title = "Logistic regression on a9a, until the training loss is below 0.33";
  workload.model = "name = 'logistic'\n";
  workload.data = "name = 'a9a'\npartition = 'iid'\n";
  workload.train = "batch_size = 200\n";
  workload.optimizer = "name = 'sgd'\nlearning_rate = 1.0\nmomentum = 0.0\nweight_decay = 1e-4\nl1 = 1e-5\n";
  workload.codec_keys = "bits = 8\n";
  workload.server_rates = std::vector<double>(9, 0.3);
  workload.target_loss = 0.33;
  return workload;
}

// Section 5.2.
PaperWorkload Mnist() {
  PaperWorkload workload = Workload("mnist", 500);
  workload.title = "3-layer perceptron on 10,000 examples of MNIST, until the training loss is below 0.05";
  workload.model = "name = 'perceptron'\n";
  workload.data = "name = 'mnist'\npartition = 'iid'\nexamples = 10000\n";
  workload.train = "batch_size = 20\n";
  workload.optimizer = "name = 'sgd'\nlearning_rate = 1.0\nmomentum = 0.0\nweight_decay = 1e-4\n";
  workload.codec_keys = "bits = 4\n";
  workload.server_rates = std::vector<double>(9, 0.1);
  workload.target_loss = 0.05;
  for (const double bits : {2.42e9, 6.87e8, 4.50e8, 7.36e8, 3.33e8, 2.73e8, 1.26e8, 0.0, 0.0}) {
    workload.figures.push_back({0, 0, bits});
  }
  return workload;
}

}  // namespace

PaperTable DoubleQuantizationTable() {
  return {"double-quantization",
          "Yu et al. 2019, Double Quantization, Figures 3 and 4 and Table 1",
          DoubleQuantizationMethods(),
          {A9a(), Mnist()},
          PaperColumns::kBits};
}

}  // namespace terse
