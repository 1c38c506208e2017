// terse-coordinator for the grid trainer's layout.
#include "coordinator/rpc/server.h"
#include "tests/e2e/grid_process.h"
#include "tests/testing/grid_learning.h"

int main(int argc, char** argv) {
  terse::BelongToParent();
  terse::CoordinatorOptions options;
  if (const int code = terse::ParseCoordinatorOptions(argc, argv, &options); code >= 0) return code;
  return terse::RunCoordinator(options, terse::GridLearningFactory(terse::EnvironmentGridLayout()));
}
