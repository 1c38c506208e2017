// `terse-bench robust`: accuracy of every rule of aggregation under every attack, with 0, 10, 20 and 30% hostile
// clients.
#ifndef TERSE_BENCH_ROBUST_ROBUST_COMMAND_H_
#define TERSE_BENCH_ROBUST_ROBUST_COMMAND_H_

#include <CLI/CLI.hpp>

#include "bench/command.h"

namespace terse {

void AddRobustCommand(CLI::App* app, Command* command);

}  // namespace terse

#endif  // TERSE_BENCH_ROBUST_ROBUST_COMMAND_H_
