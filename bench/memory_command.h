// `terse-bench memory`: what a client's process takes at its peak, as a multiple of the model.
#ifndef TERSE_BENCH_MEMORY_COMMAND_H_
#define TERSE_BENCH_MEMORY_COMMAND_H_

#include "bench/command.h"

namespace terse {

// Adds the subcommand; `chosen` outlives the parsing.
void AddMemoryCommand(CLI::App* app, Command* chosen);

}  // namespace terse

#endif  // TERSE_BENCH_MEMORY_COMMAND_H_
