// terse-client with trainers as nobody wants them.
#include "client/rpc/daemon.h"
#include "tests/e2e/grid_process.h"
#include "tests/sandbox/hostile_trainers.h"

int main(int argc, char** argv) {
  terse::BelongToParent();
  terse::DaemonOptions options;
  if (const int code = terse::ParseDaemonOptions(argc, argv, &options); code >= 0) return code;
  return terse::RunDaemon(options, terse::HostileTrainerFactory());
}
