// `terse-bench positions`: what every position coder takes on the positions that SBC sent in a real training.
#ifndef TERSE_BENCH_POSITIONS_COMMAND_H_
#define TERSE_BENCH_POSITIONS_COMMAND_H_

#include "bench/command.h"

namespace terse {

// Adds the subcommand; `chosen` outlives the parsing.
void AddPositionsCommand(CLI::App* app, Command* chosen);

}  // namespace terse

#endif  // TERSE_BENCH_POSITIONS_COMMAND_H_
