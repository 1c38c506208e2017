// terse-client: the client daemon with the LibTorch trainer.
#include <memory>

#include "client/daemon.h"
#include "core/status.h"
#include "learning/datasets/dataset_table.h"
#include "learning/local_trainer.h"
#include "learning/runtime.h"

int main(int argc, char** argv) {
  terse::DaemonOptions options;
  if (const int code = terse::ParseDaemonOptions(argc, argv, &options); code >= 0) return code;
  terse::ConfigureThreads(options.threads);
  terse::ConfigureMalloc();
  return terse::RunDaemon(options, [&options](const terse::RunConfig& config, const terse::Shard& shard)
                                       -> absl::StatusOr<std::unique_ptr<terse::LocalTrainer>> {
    TERSE_ASSIGN_OR_RETURN(const terse::Dataset dataset, terse::LoadDataset(config.data, options.data_directory));
    return terse::MakeLocalTrainer(config, shard, dataset, options.device);
  });
}
