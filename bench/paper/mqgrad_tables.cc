#include "bench/paper/mqgrad_tables.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace terse {
namespace {

// Numbers of `bits` bits, sign and all, as the paper counts them, and a float32 for the largest of 512: with one scale
// a tensor, few bits round most of fc4's eight million gradients to 0 and the others to the largest.
std::string Bits(int64_t bits) {
  const std::string settings = absl::StrCat("bits = ", bits, "\nbucket = 512\n");
  return absl::StrCat("name = 'low_precision'\n", settings, "downstream = 'low_precision'\n[downstream]\n", settings);
}

}  // namespace

PaperTable MqgradFigure() {
  std::vector<PaperMethod> methods;
  for (const int64_t bits : {2, 4, 8}) {
    methods.push_back({absl::StrCat("fix", bits), absl::StrCat("Fix (", bits, "-bit)"), "", Bits(bits), 1, 50});
  }
  methods.push_back({"mqgrad", "MQGrad", "", Bits(2), 1, 50, "name = 'mqgrad'\n"});
  PaperWorkload workload;
  workload.name = "cifar";
  workload.title = "The 5-layer network on CIFAR-10, 10 MB/s";
  workload.metric = PaperMetric::kAccuracy;
  workload.iterations = 5000;
  workload.clients = 4;
  workload.averaging_steps = 1;
  workload.momentum = false;
  workload.model = "name = 'mqgrad_cnn'\n";
  workload.data = "name = 'cifar10'\npartition = 'iid'\nnormalize = 'standardize'\n";
  workload.train = "batch_size = 32\n";
  workload.optimizer = "name = 'sgd'\nlearning_rate = 0.2\nmomentum = 0.0\nweight_decay = 0.004\n";
  workload.link_bytes_per_second = 10e6;
  return {"mqgrad", "Cui et al. 2018, MQGrad, Figures 4 and 5", methods, {workload}, PaperColumns::kTime};
}

}  // namespace terse
