// `terse-bench train`: a run's training in one process, which has the learning and the coding of a fleet without its
// wire and its disk.
#ifndef TERSE_BENCH_TRAIN_COMMAND_H_
#define TERSE_BENCH_TRAIN_COMMAND_H_

#include "bench/command.h"

namespace terse {

// Adds the subcommand; `chosen` outlives the parsing.
void AddTrainCommand(CLI::App* app, Command* chosen);

}  // namespace terse

#endif  // TERSE_BENCH_TRAIN_COMMAND_H_
