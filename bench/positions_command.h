// `terse-bench positions`: what position coders take on the positions that SBC sends in a real training: every coder on
// recorded updates, or the coders of a run over a whole run.
#ifndef TERSE_BENCH_POSITIONS_COMMAND_H_
#define TERSE_BENCH_POSITIONS_COMMAND_H_

#include "bench/command.h"

namespace terse {

// Adds the subcommand; `chosen` outlives the parsing.
void AddPositionsCommand(CLI::App* app, Command* chosen);

}  // namespace terse

#endif  // TERSE_BENCH_POSITIONS_COMMAND_H_
