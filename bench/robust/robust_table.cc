#include "bench/robust/robust_table.h"

#include <map>

#include "absl/strings/str_cat.h"

namespace terse {
namespace {

std::string Rule(const std::string& rule) { return absl::StrCat("rule = '", rule, "'\n"); }

std::string Rule(const std::string& rule, const std::string& absent) {
  return absl::StrCat(Rule(rule), "absent = '", absent, "'\n");
}

std::string Codec(const std::string& name) {
  return absl::StrCat("name = '", name, "'\ndensity = 0.01\ndownstream = 'dense'\n");
}

}  // namespace

// The check of norms that is on by default is off in all rows but two, so that the rules show what they do alone.
const std::vector<Defence>& Defences() {
  static const std::string alone = "norm_ratio = 0.0\n";
  static const auto& defences = *new std::vector<Defence>{
      {"mean", Rule("mean"), alone},
      {"mean, default", Rule("mean")},
      {"imputed_mean", Rule("imputed_mean"), alone},
      {"imputed_mean, default", Rule("imputed_mean")},
      {"median", Rule("median", "share"), alone},
      {"median-skip", Rule("median", "skip"), alone},
      {"median-zero", Rule("median", "zero"), alone},
      {"trimmed_mean", Rule("trimmed_mean", "share"), alone},
      {"trimmed_mean-zero", Rule("trimmed_mean", "zero"), alone},
      {"krum", Rule("krum"), alone},
      {"multi_krum", Rule("multi_krum"), alone},
      {"bulyan", Rule("bulyan", "share"), alone},
      {"majority_vote", Rule("majority_vote", "share"), alone},
      {"majority_vote-skip", Rule("majority_vote", "skip"), alone},
      {"mean, z_score 3.5", Rule("mean"), alone + "z_score = 3.5\n"},
      {"mean, cosine 0", Rule("mean"), alone + "cosine = 0.0\n"},
  };
  return defences;
}

absl::StatusOr<std::vector<int64_t>> HostileCounts(int64_t clients, const std::vector<int64_t>& percent) {
  std::vector<int64_t> counts;
  std::map<int64_t, int64_t> percent_of;
  for (const int64_t share : percent) {
    counts.push_back(clients * share / 100);
    const std::string place = absl::StrCat("--percent ", share, " of ", clients, " clients is ");
    if (counts.back() == 0) return absl::InvalidArgumentError(absl::StrCat(place, "nobody; take more clients"));
    if (const auto [known, is_new] = percent_of.emplace(counts.back(), share); !is_new) {
      return absl::InvalidArgumentError(absl::StrCat(place, counts.back(), ", as is --percent ", known->second,
                                                     "; take more clients, or fewer percentages"));
    }
  }
  return counts;
}

RobustCell MakeRobustCell(const Defence& defence, const Attack& attack, int64_t hostile, int64_t assumed,
                          const RobustSettings& settings) {
  RobustCell cell = {&defence, &attack, hostile, "", ""};
  cell.key = absl::StrCat(defence.name, "-", attack.name, "-", hostile);
  for (char& c : cell.key) c = c == ' ' || c == ',' ? '_' : c;
  cell.run = absl::StrCat(
      "name = 'robust'\nseed = ", settings.seed, "\n\n[model]\nname = '", settings.model,
      "'\n\n[data]\nname = 'mnist'\n",
      "\n[train]\nlocal_steps = 10\nbatch_size = 32\n\n[train.optimizer]\nname = 'adam'\nlearning_rate = 0.003\n",
      "\n[codec]\n", Codec(settings.codec), "\n[aggregation]\n", defence.aggregation, "byzantine = ", assumed,
      "\ntrim = ", static_cast<double>(assumed) / static_cast<double>(settings.clients), "\n\n[policy]\n",
      defence.policy, "\n[rounds]\ncount = ", settings.rounds, "\nclients = ", settings.clients, "\n");
  return cell;
}

}  // namespace terse
