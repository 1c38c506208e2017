// terse-client with the grid trainer: everything real but the deltas, whose sums have exact answers.
#include "client/rpc/daemon.h"
#include "tests/e2e/grid_process.h"
#include "tests/testing/grid_trainer.h"

int main(int argc, char** argv) {
  terse::BelongToParent();
  terse::DaemonOptions options;
  if (const int code = terse::ParseDaemonOptions(argc, argv, &options); code >= 0) return code;
  return terse::RunDaemon(options,
                          terse::GridTrainerFactory(terse::EnvironmentGridLayout(), terse::EnvironmentGridStarts(),
                                                    terse::EnvironmentGridClient()));
}
