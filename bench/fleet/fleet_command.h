// `terse-bench fleet`: a coordinator under the load of many clients.
#ifndef TERSE_BENCH_FLEET_FLEET_COMMAND_H_
#define TERSE_BENCH_FLEET_FLEET_COMMAND_H_

#include "bench/command.h"

namespace terse {

void AddFleetCommand(CLI::App* app, Command* command);

}  // namespace terse

#endif  // TERSE_BENCH_FLEET_FLEET_COMMAND_H_
