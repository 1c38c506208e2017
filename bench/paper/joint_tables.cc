#include "bench/paper/joint_tables.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "bench/paper/sbc_tables.h"

namespace terse {
namespace {

// The density is without effect for joint.
std::string Sbc(const std::string& density) {
  return absl::StrCat("name = 'sbc'\ndensity = ", density, "\npositions = 'rice'\ndownstream = 'forward'\n");
}

std::vector<PaperMethod> JointMethods() {
  std::vector<PaperMethod> methods;
  for (const int64_t steps : {1, 10, 30, 100}) {
    for (const char* density : {"0.001", "0.005", "0.02", "0.1"}) {
      methods.push_back({absl::StrCat("n", steps, "_p", density), absl::StrCat("n = ", steps, ", p = ", density), "",
                         Sbc(density), steps, 50});
    }
  }
  PaperMethod joint = {"joint", "joint", "", Sbc("0.01") + "counts = 'equal'\n", 1, 50};
  joint.control =
      "name = 'joint'\ndensity = [0.0005, 0.0007, 0.001, 0.0015, 0.002, 0.003, 0.005, 0.007, 0.01, 0.015, 0.02, "
      "0.03]\n";
  joint.budget_share = 0.69;
  methods.push_back(joint);
  joint.name = "joint_half";
  joint.title = "joint, half of the bytes, imputed mean";
  joint.budget_share = 0.5;
  joint.aggregation = "rule = 'imputed_mean'\n";
  methods.push_back(joint);
  return methods;
}

// Workloads of SBC's Table II. `tolerance` is what may be lost against the best of the grid.
PaperWorkload Within(PaperWorkload workload, double tolerance, const std::string& control_keys) {
  workload.figures.clear();
  workload.tolerance = tolerance;
  workload.control_keys = control_keys;
  return workload;
}

}  // namespace

PaperTable JointTable() {
  return {"joint",
          "Local steps and density while training: joint against the best fixed pair",
          JointMethods(),
          {Within(LeNet5OnMnist(), 0.003, "local_steps = [100, 30, 10]\n"),
           Within(CharLstmOnShakespeare(), 0.02, "local_steps = [10, 1]\n")},
          PaperColumns::kBestFixed};
}

}  // namespace terse
