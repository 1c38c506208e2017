// `terse-bench updates`: trains LeNet5-Caffe on MNIST with four clients, as a run does, and records their updates.
#ifndef TERSE_BENCH_UPDATES_COMMAND_H_
#define TERSE_BENCH_UPDATES_COMMAND_H_

#include "bench/command.h"

namespace terse {

// Adds the subcommand; `chosen` outlives the parsing.
void AddUpdatesCommand(CLI::App* app, Command* chosen);

}  // namespace terse

#endif  // TERSE_BENCH_UPDATES_COMMAND_H_
