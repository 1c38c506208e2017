#include "coordinator/server_optimizer/server_optimizer_table.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coordinator/server_optimizer/adaptive.h"
#include "coordinator/server_optimizer/momentum.h"

namespace terse {
namespace {

using Rule = AdaptiveServerOptimizer::Rule;
using Made = std::unique_ptr<const ServerOptimizer>;

struct Row {
  const char* name;
  Made (*make)(const ServerOptimizerSpec& spec);
};

template <Rule rule>
Made MakeAdaptive(const ServerOptimizerSpec& spec) {
  return std::make_unique<AdaptiveServerOptimizer>(rule, spec);
}

constexpr Row kRows[] = {
    {"average", [](const ServerOptimizerSpec& spec) -> Made { return nullptr; }},
    {"sgd", [](const ServerOptimizerSpec& spec) -> Made { return std::make_unique<MomentumServerOptimizer>(spec); }},
    {"adam", MakeAdaptive<Rule::kAdam>},
    {"yogi", MakeAdaptive<Rule::kYogi>},
    {"adagrad", MakeAdaptive<Rule::kAdagrad>},
};

}  // namespace

std::vector<std::string> ServerOptimizerNames() {
  std::vector<std::string> names;
  for (const Row& row : kRows) names.push_back(row.name);
  return names;
}

absl::StatusOr<std::unique_ptr<const ServerOptimizer>> MakeServerOptimizer(const ServerOptimizerSpec& spec) {
  for (const Row& row : kRows) {
    if (spec.name == row.name) return row.make(spec);
  }
  return absl::InvalidArgumentError(absl::StrCat("no server optimizer '", spec.name, "'; known ones are ",
                                                 absl::StrJoin(ServerOptimizerNames(), ", ")));
}

}  // namespace terse
