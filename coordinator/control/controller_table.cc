#include "coordinator/control/controller_table.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coordinator/control/joint.h"
#include "coordinator/control/mqgrad.h"
#include "coordinator/control/schedule.h"

namespace terse {
namespace {

using Made = std::unique_ptr<Controller>;

struct Row {
  const char* name;
  Made (*make)(const RunConfig& config, int64_t parameters);
};

constexpr Row kRows[] = {
    {"fixed", [](const RunConfig& config, int64_t parameters) -> Made { return nullptr; }},
    {"schedule",
     [](const RunConfig& config, int64_t parameters) -> Made { return std::make_unique<ScheduleController>(config); }},
    {"mqgrad",
     [](const RunConfig& config, int64_t parameters) -> Made {
       return std::make_unique<MqgradController>(config.seed, config.train.local_steps);
     }},
    {"joint",
     [](const RunConfig& config, int64_t parameters) -> Made {
       return std::make_unique<JointController>(config, parameters);
     }},
};

}  // namespace

std::vector<std::string> ControllerNames() {
  std::vector<std::string> names;
  for (const Row& row : kRows) names.push_back(row.name);
  return names;
}

absl::StatusOr<std::unique_ptr<Controller>> MakeController(const RunConfig& config, int64_t parameters) {
  for (const Row& row : kRows) {
    if (config.control.name == row.name) return row.make(config, parameters);
  }
  return absl::InvalidArgumentError(absl::StrCat("no controller '", config.control.name, "'; known ones are ",
                                                 absl::StrJoin(ControllerNames(), ", ")));
}

}  // namespace terse
