#include "bench/paper/bidirectional_tables.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "bench/paper/sbc_tables.h"

namespace terse {
namespace {

// SBC at p = 0.01 upwards, with the delay n, and something else downwards.
PaperMethod Sbc(const std::string& name, const std::string& title, int64_t steps, const std::string& downstream) {
  return {name,
          title,
          "",
          absl::StrCat("name = 'sbc'\ndensity = 0.01\nmean_precision = 'bf16'\ngrouping = 'merge_small'\n", downstream),
          steps,
          50};
}

std::string Coded(const std::string& codec, const std::string& density) {
  return absl::StrCat("downstream = '", codec, "'\n\n[downstream]\ndensity = ", density,
                      "\nmean_precision = 'bf16'\ngrouping = 'merge_small'\n");
}

PaperMethod Imputed(PaperMethod method) {
  method.aggregation = "rule = 'imputed_mean'\n";
  return method;
}

std::vector<PaperMethod> BidirectionalMethods() {
  return {
      {"baseline", "Baseline, dense, n = 1", "", kDenseRun, 1, 50},
      {"fedavg", "Federated averaging, dense, n = 100", "", kDenseRun, 100, 50},
      Sbc("up10", "SBC up, dense down, n = 10", 10, "downstream = 'dense'\n"),
      Sbc("forward10", "SBC up, updates forwarded, n = 10", 10, "downstream = 'forward'\n"),
      Sbc("both10", "SBC up, STC down, n = 10", 10, Coded("stc", "0.02")),
      Sbc("up100", "SBC up, dense down, n = 100", 100, "downstream = 'dense'\n"),
      Sbc("forward100", "SBC up, updates forwarded, n = 100", 100, "downstream = 'forward'\n"),
      Imputed(Sbc("imputed100", "SBC up, updates forwarded, imputed mean, n = 100", 100, "downstream = 'forward'\n")),
      Sbc("both100", "SBC up, STC down, n = 100", 100, Coded("stc", "0.02")),
      Imputed(Sbc("both_imputed100", "SBC up, STC down, imputed mean, n = 100", 100, Coded("stc", "0.02"))),
  };
}

// Returns the workload of SBC's Table II without its figures, which are those of other methods.
PaperWorkload LeNet5(const std::string& name, int64_t clients) {
  PaperWorkload workload = LeNet5OnMnist();
  workload.name = name;
  workload.clients = clients;
  workload.figures.clear();
  return workload;
}

}  // namespace

PaperTable BidirectionalTable() {
  return {"bidirectional",
          "Both directions: bytes per client, up and down",
          BidirectionalMethods(),
          {LeNet5("lenet5", 4), LeNet5("lenet5-32", 32)},
          PaperColumns::kBothDirections};
}

}  // namespace terse
