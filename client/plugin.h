// A client daemon of your own model, data and training step: the public header of the CMake component `client`.
//
//   find_package(Terse REQUIRED COMPONENTS client)
//   target_link_libraries(mine PRIVATE terse::client)
//
// Implement terse::LocalTrainer, and in main:
//
//   terse::DaemonOptions options;
//   if (const int code = terse::ParseDaemonOptions(argc, argv, &options); code >= 0) return code;
//   return terse::RunDaemon(options, MakeTrainer);  // a terse::TrainerFactory, or a status
//
// The coordinator is one of the component `coordinator` (coordinator/plugin.h); deploy/examples/cpp has both.
#ifndef TERSE_CLIENT_PLUGIN_H_
#define TERSE_CLIENT_PLUGIN_H_

#include "client/rpc/daemon.h"
#include "core/trainer.h"

#endif  // TERSE_CLIENT_PLUGIN_H_
