#include "bench/paper/qsgd_tables.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace terse {
namespace {

std::string Qsgd(int64_t bits, bool corrected) {
  return absl::StrCat("name = 'qsgd'\nbits = ", bits, "\ncode = 'simple'\nfeedback = '",
                      corrected ? "error_feedback" : "none", "'\ndownstream = 'forward'\n");
}

// Batch, rate and length are those of ResNet32 in Sattler et al. 2018, Table III.
PaperWorkload OnCifar(const std::string& model, const std::string& title) {
  PaperWorkload workload;
  workload.name = model;
  workload.title = absl::StrCat(title, " on CIFAR-10");
  workload.metric = PaperMetric::kAccuracy;
  workload.iterations = 60000;
  workload.clients = 4;
  workload.averaging_steps = 1;
  workload.momentum = false;
  workload.model = absl::StrCat("name = '", model, "'\nclasses = 10\n");
  workload.data = "name = 'cifar10'\npartition = 'iid'\nnormalize = 'standardize'\naugment = 'pad_crop_flip'\n";
  workload.train = "batch_size = 128\n";
  workload.optimizer = "name = 'sgd'\nlearning_rate = 0.01\nmomentum = 0.9\nweight_decay = 0.0002\n";
  workload.schedule = "factor = 0.1\nat = [{30000}, {50000}]\n";
  return workload;
}

}  // namespace

PaperTable QsgdTables() {
  std::vector<PaperMethod> methods = {{"baseline", "Baseline", "", "name = 'dense'\ndownstream = 'dense'\n", 1, 5}};
  for (const int64_t bits : {8, 4, 2}) {
    for (const bool corrected : {false, true}) {
      methods.push_back({absl::StrCat("qsgd", bits, corrected ? "_corrected" : ""),
                         absl::StrCat(bits, " bits", corrected ? ", error correction" : ""), "", Qsgd(bits, corrected),
                         1, 5});
    }
  }
  return {"qsgd",
          "Zrouga et al., report on QSGD, Tables I to III",
          methods,
          {OnCifar("alexnet", "AlexNet"), OnCifar("resnet18", "ResNet18"), OnCifar("resnet110", "ResNet110")}};
}

}  // namespace terse
