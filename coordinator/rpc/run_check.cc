#include "coordinator/rpc/run_check.h"

#include <memory>
#include <string>
#include <utility>

#include "compression/traffic_forecast.h"
#include "coordinator/rpc/run_registry.h"
#include "core/file_system.h"
#include "core/status.h"
#include "proto/run_config_loader.h"
#include "storage/module_file.h"
#include "storage/temporary_directory.h"

namespace terse {
namespace {

// The file of a run comes with `tersectl run create`, by which the coordinator checks both.
absl::Status CheckHasNoFile(const std::string& run_file) {
  TERSE_ASSIGN_OR_RETURN(const v1::RunConfig config, LoadRunConfig(run_file));
  if (!HasModelFile(config.model().name())) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      run_file, ": a run of model.name = '", config.model().name(),
      "' is checked together with its file, by `tersectl run create --paused --run-file ", run_file, " --model FILE`"));
}

}  // namespace

absl::Status CheckRuns(const CoordinatorOptions& options, const RunLearningFactory& make_learning,
                       const std::function<bool()>& cancelled, std::ostream& out) {
  SystemClock clock;
  for (const std::string& file : options.run_files) {
    TERSE_RETURN_IF_ERROR(CheckHasNoFile(file));
    TERSE_ASSIGN_OR_RETURN(const std::string path, NewTemporaryName("terse-check"));
    const TemporaryDirectory state(path);
    TERSE_RETURN_IF_ERROR(PosixFiles().MakeDirectory(state.path()));
    RunRegistry::Options registry;
    registry.state_directory = state.path();
    registry.stores = RunsInDirectories(state.path());
    registry.data_directory = options.data_directory;
    registry.make_learning = make_learning;
    registry.clock = &clock;
    registry.on_change = [] {};
    registry.on_sync_failure = [](const absl::Status&) {};  // what was written is not read again
    TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<RunRegistry> runs, RunRegistry::Open(std::move(registry), {file}));
    if (cancelled()) return absl::CancelledError("the check was stopped");
    const RunHost& run = *runs->runs().front();
    out << "run " << run.name() << " can be served: " << run.codec().layout().parameters() << " parameters, codec "
        << run.config().codec.name << ", aggregation " << run.config().aggregation.rule << "\n";
    TERSE_ASSIGN_OR_RETURN(const TrafficForecast traffic, ForecastTraffic(run.config(), run.codec().layout()));
    out << TrafficText(traffic, /*per_million=*/false);
  }
  return absl::OkStatus();
}

}  // namespace terse
