// terse-coordinator: the coordinator with LibTorch's evaluator.
#include "coordinator/rpc/server.h"
#include "coordinator/torch_learning.h"
#include "core/lock_order.h"
#include "learning/runtime.h"

int main(int argc, char** argv) {
  terse::CoordinatorOptions options;
  if (const int code = terse::ParseCoordinatorOptions(argc, argv, &options); code >= 0) return code;
  terse::SkipLockOrderChecks();
  terse::ConfigureBlas();
  terse::ConfigureThreads(1);
  terse::ConfigureMalloc(/*kept_mib=*/1);
  // A sandbox takes the graphics card away.
  return terse::RunCoordinator(options, terse::TorchRunLearning(options.sandboxed.empty() ? "auto" : "cpu"));
}
