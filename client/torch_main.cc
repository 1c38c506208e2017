// terse-client-torch: the client daemon with the LibTorch trainer. terse-client becomes this program when it has no
// trainer of the user's own.
#include "client/rpc/daemon.h"
#include "core/lock_order.h"
#include "learning/local_trainer.h"
#include "learning/runtime.h"

int main(int argc, char** argv) {
  terse::DaemonOptions options;
  if (const int code = terse::ParseDaemonOptions(argc, argv, &options); code >= 0) return code;
  terse::SkipLockOrderChecks();
  terse::ConfigureBlas();
  terse::ConfigureThreads(options.threads);
  terse::ConfigureMalloc();
  return terse::RunDaemon(options, terse::MakeTrainerFactory(options.data_directory, options.device));
}
