// A coordinator for a model of your own: the public header of the CMake component `coordinator`.
//
//   find_package(Terse REQUIRED COMPONENTS coordinator)
//   target_link_libraries(mine PRIVATE terse::coordinator)
//
// The coordinator needs the model's layout, its initial weights and a score, but never trains it: implement
// terse::RunLearning, and in main:
//
//   terse::CoordinatorOptions options;
//   if (const int code = terse::ParseCoordinatorOptions(argc, argv, &options); code >= 0) return code;
//   return terse::RunCoordinator(options, MakeLearning);  // a terse::RunLearningFactory
//
// Its clients are of the component `client` (client/plugin.h); deploy/examples/cpp has both.
#ifndef TERSE_COORDINATOR_PLUGIN_H_
#define TERSE_COORDINATOR_PLUGIN_H_

#include "coordinator/rpc/run_learning.h"
#include "coordinator/rpc/server.h"

#endif  // TERSE_COORDINATOR_PLUGIN_H_
