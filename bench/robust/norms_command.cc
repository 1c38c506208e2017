#include "bench/robust/norms_command.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "bench/in_process_fleet.h"
#include "core/cli/progress_line.h"
#include "core/status.h"
#include "learning/runtime.h"
#include "proto/run_config_convert.h"
#include "proto/run_config_loader.h"
#include "tersectl/text_table.h"

namespace terse {
namespace {

using Json = nlohmann::ordered_json;

struct NormsOptions {
  std::vector<std::string> runs;
  std::string data;
  int64_t rounds = 100;
  int64_t seconds = 0;  // for each run file; 0: as long as the rounds take
  bool json = false;
};

// Trains without the check, so that what it would meet shows.
absl::StatusOr<Json> RunFile(const NormsOptions& options, const std::string& path, ProgressLine* progress) {
  TERSE_ASSIGN_OR_RETURN(const v1::RunConfig file, LoadRunConfig(path));
  TERSE_ASSIGN_OR_RETURN(RunConfig run, ToCore(file));
  Json result = {{"run", run.name},
                 {"rounds", 0},
                 {"largest_ratio", Json()},
                 {"in_round", Json()},
                 {"norm_ratio", run.policy.norm_ratio},
                 {"note", ""}};
  run.policy.norm_ratio = 0;
  const auto fleet = InProcessFleet::Create(run, options.data, "cpu");
  if (absl::IsUnimplemented(fleet.status())) {
    result["note"] = std::string(fleet.status().message());
    progress->Skip(static_cast<double>(options.rounds));
    return result;
  }
  TERSE_RETURN_IF_ERROR(fleet.status());
  const int64_t rounds = std::min(options.rounds, run.rounds.count);
  const absl::Time end = options.seconds > 0 ? absl::Now() + absl::Seconds(options.seconds) : absl::InfiniteFuture();
  int64_t done = 0;
  while (done < rounds && absl::Now() < end) {
    TERSE_RETURN_IF_ERROR(Annotate((*fleet)->Round({}), absl::StrCat(path, ", round ", done + 1)));
    progress->Advance(1);
    ++done;
  }
  progress->Skip(static_cast<double>(options.rounds - done));
  result["rounds"] = done;
  result["largest_ratio"] = (*fleet)->largest_ratio();
  result["in_round"] = (*fleet)->largest_ratio_round();
  return result;
}

std::string Text(const std::vector<Json>& results) {
  TextTable table(
      {{"run"}, {"rounds", true}, {"largest ratio", true}, {"in round", true}, {"allowed", true}, {"note"}});
  for (const Json& one : results) {
    const bool known = !one.at("largest_ratio").is_null();
    table.AddRow({one.at("run").get<std::string>(), absl::StrCat(one.at("rounds").get<int64_t>()),
                  known ? absl::StrFormat("%.3f", one.at("largest_ratio").get<double>()) : "",
                  known ? absl::StrCat(one.at("in_round").get<int64_t>()) : "",
                  absl::StrCat(one.at("norm_ratio").get<double>()), one.at("note").get<std::string>()});
  }
  return table.Render(isatty(STDOUT_FILENO) != 0);
}

absl::StatusOr<int> RunNorms(const NormsOptions& options) {
  ConfigureThreads(1);
  ConfigureMalloc();
  std::vector<Json> results;
  {
    ProgressLine progress(static_cast<double>(options.runs.size()) * static_cast<double>(options.rounds));
    for (const std::string& path : options.runs) {
      progress.Begin(path);
      TERSE_ASSIGN_OR_RETURN(Json result, RunFile(options, path, &progress));
      results.push_back(std::move(result));
    }
  }
  std::cout << (options.json ? Json(results).dump(2) + "\n" : Text(results));
  return 0;
}

}  // namespace

void AddNormsCommand(CLI::App* app, Command* command) {
  const auto options = std::make_shared<NormsOptions>();
  CLI::App* norms = app->add_subcommand(
      "norms", "The largest norm of an honest update in medians of its round, beside what policy.norm_ratio allows");
  norms->add_option("run", options->runs, "Run files (TOML)")->required()->check(ExistingFile());
  norms
      ->add_option("--data", options->data,
                   "Directory of the data sets, as the clients have it; without it rendered digits stand in for MNIST")
      ->check(ExistingFolder());
  norms->add_option("--rounds", options->rounds, "At most so many of each run")
      ->check(WholeNumber(1, 1000000))
      ->capture_default_str();
  norms
      ->add_option("--seconds", options->seconds,
                   "Begin no further round of a run file after so many seconds; 0: do all of --rounds")
      ->check(WholeNumber())
      ->capture_default_str();
  norms->add_flag("--json", options->json, "JSON for programs");
  norms->callback([options, command] { *command = [options] { return RunNorms(*options); }; });
}

}  // namespace terse
