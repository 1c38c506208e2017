#include "bench/codec_command.h"

#include <algorithm>
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "bench/job.h"
#include "bench/measure.h"
#include "bench/report.h"
#include "compression/simd.h"
#include "core/cli/progress_line.h"
#include "core/status.h"

namespace terse {
namespace {

constexpr int64_t kQuickTensor = 1'000'000;

struct CodecOptions {
  bool json = false;
  bool check = false;
  bool quick = false;
  int threads = 2;
  std::string simd;
  std::string only;
};

std::vector<Job> AllJobs() {
  std::vector<Job> all;
  for (const auto& jobs :
       {PipelineJobs(), TopkJobs(), PositionJobs(), AggregateJobs(), DownstreamJobs(), CodecTableJobs()}) {
    all.insert(all.end(), jobs.begin(), jobs.end());
  }
  return all;
}

// The jobs with a figure whose name contains `only`.
absl::StatusOr<std::vector<Job>> ChooseJobs(const std::string& only) {
  std::vector<Job> chosen;
  std::set<std::string> known;
  for (Job& job : AllJobs()) {
    known.insert(job.figures.begin(), job.figures.end());
    if (absl::c_any_of(job.figures, [&](const std::string& name) { return absl::StrContains(name, only); })) {
      chosen.push_back(std::move(job));
    }
  }
  if (!chosen.empty()) return chosen;
  return absl::InvalidArgumentError(
      absl::StrCat("--only: no figure's name contains '", only, "'; the figures are ", absl::StrJoin(known, ", ")));
}

JobSetting MakeSetting(const CodecOptions& options) {
  JobSetting setting;
  setting.threads = options.threads;
  setting.simd = SimdTarget();
  if (options.quick) {
    setting.large = kQuickTensor;
    setting.effort = 0;
  }
  return setting;
}

Report RunJobs(const std::vector<Job>& jobs, const JobSetting& setting, const std::string& only) {
  Report report{{}, CpuName(), setting.simd, {}};
  double total = 0;
  for (const Job& job : jobs) total += job.seconds;
  ProgressLine progress(total);
  for (const Job& job : jobs) {
    progress.Begin(job.what);
    for (Metric& metric : job.run(setting)) {
      if (!absl::StrContains(metric.name, only)) continue;
      if (setting.large != kLargeTensor) metric.target = {};  // the targets speak of the large tensor
      report.metrics.push_back(std::move(metric));
    }
    progress.Advance(job.seconds);
  }
  return report;
}

absl::StatusOr<int> RunCodecCommand(const CodecOptions& options) {
  TERSE_RETURN_IF_ERROR(Annotate(UseSimdTarget(options.simd), "--simd"));
  TERSE_ASSIGN_OR_RETURN(const std::vector<Job> jobs, ChooseJobs(options.only));
  const Report report = RunJobs(jobs, MakeSetting(options), options.only);
  if (options.json) {
    report.PrintJson(&std::cout);
  } else {
    report.PrintTables(&std::cout);
  }
  return options.check && !report.met() ? 1 : 0;
}

}  // namespace

int JobSetting::Repetitions(int usual) const { return std::max(3, static_cast<int>(usual * effort)); }

void AddCodecCommand(CLI::App* app, Command* chosen) {
  CLI::App* sub = app->add_subcommand("codec", "Speed, memory and size of the compression library");
  const auto options = std::make_shared<CodecOptions>();
  sub->add_flag("--json", options->json, "JSON for programs");
  sub->add_flag("--check", options->check, "Exit with 1 when a target is missed");
  sub->add_flag("--quick", options->quick, "A small tensor, three repetitions, no targets: does everything run?");
  sub->add_option("--threads", options->threads, "Threads, where several are used")
      ->check(WholeNumber(1, 1024))
      ->capture_default_str();
  sub->add_option("--simd", options->simd, "SIMD target; default: the fastest")->check(OneOf(SimdTargets()));
  sub->add_option("--only", options->only, "Only figures whose name contains this");
  sub->callback([=] { *chosen = [options] { return RunCodecCommand(*options); }; });
}

}  // namespace terse
