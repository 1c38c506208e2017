// terse-simulate: large fleets on one machine, with LibTorch's models.
#include "coordinator/torch_learning.h"
#include "core/lock_order.h"
#include "learning/local_trainer.h"
#include "learning/runtime.h"
#include "simulation/simulation_command.h"

int main(int argc, char** argv) {
  terse::SkipLockOrderChecks();
  terse::ConfigureBlas();
  terse::ConfigureThreads(1);
  terse::ConfigureMalloc(/*kept_mib=*/4);
  return terse::RunSimulationProgram(argc, argv, terse::TorchRunLearning(),
                                     [](const std::string& data, const std::string& device, int threads) {
                                       terse::ConfigureThreads(threads);
                                       return terse::MakeTrainerFactory(data, device);
                                     });
}
