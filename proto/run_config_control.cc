#include "proto/run_config_control.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/codec_choices.h"

namespace terse {
namespace {

// Whether `control.bits` and mqgrad can change its bits.
bool IsQuantizer(const std::string& codec) { return codec == "qsgd" || codec == "low_precision"; }

void CheckStages(const v1::Control& control, ConfigViolations* violations) {
  const int stages = std::max({control.local_steps_size(), control.density_size(), control.bits_size()});
  if (stages < 2 || stages > kMostCodecChoices) {
    violations->push_back({"control.name", absl::StrCat("control.name = 'schedule' has ", stages, " stages; give 2 to ",
                                                        kMostCodecChoices, " values, one a stage, ",
                                                        "in control.local_steps, density or bits")});
    return;
  }
  const std::pair<const char*, int> lists[] = {{"control.local_steps", control.local_steps_size()},
                                               {"control.density", control.density_size()},
                                               {"control.bits", control.bits_size()}};
  for (const auto& [key, size] : lists) {
    if (size == 0 || size == stages) continue;
    violations->push_back({key, absl::StrCat(key, " has ", size, " values for ", stages, " stages; give one a stage")});
  }
  const int starts = control.by() == "plateau" ? 0 : stages - 1;
  const bool increasing =
      std::adjacent_find(control.at().begin(), control.at().end(), std::greater_equal<>()) == control.at().end();
  if (control.at_size() == starts && increasing) return;
  violations->push_back({"control.at", absl::StrCat("control.at must have ", starts, " increasing values for ", stages,
                                                    " stages by '", control.by(), "'")});
}

// Whether a codec reads what a stage changes.
void CheckStageCodec(const v1::RunConfig& config, ConfigViolations* violations) {
  const v1::Control& control = config.control();
  const std::string& codec = config.codec().name();
  const std::vector<std::string> with_density = CodecsWithDensity();
  if (control.density_size() > 0 && !absl::c_linear_search(with_density, codec)) {
    violations->push_back({"control.density", absl::StrCat("control.density changes nothing for codec.name = '", codec,
                                                           "'; it is for ", absl::StrJoin(with_density, ", "))});
  }
  if (control.bits_size() == 0) return;
  if (!IsQuantizer(codec)) {
    violations->push_back({"control.bits", absl::StrCat("control.bits changes nothing for codec.name = '", codec,
                                                        "'; it is for qsgd and low_precision")});
    return;
  }
  const int64_t fewest = codec == "qsgd" ? 1 : 2, most = codec == "qsgd" ? 8 : 16;
  for (int i = 0; i < control.bits_size(); ++i) {
    if (control.bits(i) >= fewest && control.bits(i) <= most) continue;
    if (violations->size() >= kMostViolations) return;
    const std::string key = JoinIndex("control.bits", i);
    violations->push_back({key, absl::StrCat(key, " = ", control.bits(i), "; ", codec, " has ", fewest, " to ", most)});
  }
}

void CheckMqgrad(const v1::RunConfig& config, ConfigViolations* violations) {
  const std::string& codec = config.codec().name();
  if (!IsQuantizer(codec)) {
    violations->push_back(
        {"control.name", absl::StrCat("control.name = 'mqgrad' chooses the bits of a quantizer, which '", codec,
                                      "' is not; use codec.name = 'qsgd' or 'low_precision'")});
    return;
  }
  const std::string& down = config.codec().downstream();
  if (IsQuantizer(down) || down == "forward" || down == "dense" || down == "auto") return;
  violations->push_back({"codec.downstream", absl::StrCat("codec.downstream = '", down,
                                                          "' has no bits for control.name = 'mqgrad' to choose; use ",
                                                          "'qsgd', 'low_precision', 'forward', 'dense' or 'auto'")});
}

// Checks the local steps and the densities that joint chooses from.
void CheckJointMenus(const v1::Control& control, ConfigViolations* violations) {
  const auto& steps = control.local_steps();
  const auto& densities = control.density();
  if (control.at_size() + control.bits_size() > 0) {
    violations->push_back(
        {"control.name", "control.name = 'joint' has no stages and no bits; leave out control.at and bits"});
  }
  const bool decreasing = std::adjacent_find(steps.begin(), steps.end(), std::less<>()) == steps.end();
  if (steps.empty() || steps.size() > kMostJointSteps || !decreasing) {
    violations->push_back(
        {"control.local_steps", absl::StrCat("control.local_steps = [", absl::StrJoin(steps, ", "),
                                             "]; control.name = 'joint' chooses from 1 to ", kMostJointSteps,
                                             " local steps, none above the one before")});
  }
  const bool increasing =
      std::adjacent_find(densities.begin(), densities.end(), std::greater_equal<>()) == densities.end();
  if (densities.size() >= 2 && densities.size() <= kMostCodecChoices && increasing) return;
  violations->push_back({"control.density", absl::StrCat("control.density = [", absl::StrJoin(densities, ", "),
                                                         "]; control.name = 'joint' chooses from 2 to ",
                                                         kMostCodecChoices, " densities, increasing")});
}

// Checks the budget or the price that joint plans with, and that the rounds last for limits.iterations.
void CheckJointEnds(const v1::RunConfig& config, ConfigViolations* violations) {
  const v1::Control& control = config.control();
  if ((control.budget() > 0) == (control.price() > 0)) {
    violations->push_back(
        {"control.budget", absl::StrCat("control.budget = ", control.budget(), " and control.price = ", control.price(),
                                        "; control.name = 'joint' needs one of them")});
  }
  const int64_t iterations = config.limits().iterations();
  if (iterations == 0) {
    violations->push_back(
        {"limits.iterations", "control.name = 'joint' plans for a number of iterations; set limits.iterations"});
    return;
  }
  if (control.local_steps().empty()) return;  // which is a violation of its own
  const int64_t fewest = control.local_steps(control.local_steps_size() - 1);
  const int64_t rounds = (iterations + fewest - 1) / fewest;
  if (config.rounds().count() >= rounds) return;
  violations->push_back(
      {"rounds.count",
       absl::StrCat("rounds.count = ", config.rounds().count(), " ends the run before limits.iterations = ", iterations,
                    " when rounds have the fewest local steps, ", fewest, "; set it to ", rounds)});
}

void CheckJoint(const v1::RunConfig& config, ConfigViolations* violations) {
  CheckJointMenus(config.control(), violations);
  CheckJointEnds(config, violations);
}

}  // namespace

void CheckControl(const v1::RunConfig& config, ConfigViolations* violations) {
  const v1::Control& control = config.control();
  if (control.name() != "fixed" && config.rounds().mode() != "synchronous") {
    violations->push_back({"control.name", absl::StrCat("control.name = '", control.name(),
                                                        "' plans whole rounds; use rounds.mode = 'synchronous'")});
  }
  if (config.limits().iterations() > 0 && config.rounds().mode() != "synchronous") {
    violations->push_back({"limits.iterations",
                           "limits.iterations counts the local steps of whole rounds; use "
                           "rounds.mode = 'synchronous', or limits.seconds"});
  }
  if (control.density_size() > 0 && config.codec().warmup_rounds() > 0) {
    violations->push_back({"control.density", "control.density and codec.warmup_rounds both set the density; use one"});
  }
  if (control.name() != "joint" && (control.budget() > 0 || control.price() > 0)) {
    violations->push_back({"control.budget", absl::StrCat("control.budget and control.price are for control.name = "
                                                          "'joint', not '",
                                                          control.name(), "'; leave them out")});
  }
  if (control.name() == "schedule" || control.name() == "joint") {
    control.name() == "joint" ? CheckJoint(config, violations) : CheckStages(control, violations);
    CheckStageCodec(config, violations);
    return;
  }
  if (control.at_size() + control.local_steps_size() + control.density_size() + control.bits_size() > 0) {
    violations->push_back({"control.name", absl::StrCat("control.name = '", control.name(),
                                                        "' has no stages; use 'schedule', or leave out control.at, ",
                                                        "local_steps, density and bits")});
  }
  if (control.name() == "mqgrad") CheckMqgrad(config, violations);
}

}  // namespace terse
