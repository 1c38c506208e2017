// `terse-bench partition`: how the training data of a run is shared among its clients.
#ifndef TERSE_BENCH_PARTITION_COMMAND_H_
#define TERSE_BENCH_PARTITION_COMMAND_H_

#include "bench/command.h"

namespace terse {

// Adds the subcommand; `chosen` outlives the parsing.
void AddPartitionCommand(CLI::App* app, Command* chosen);

}  // namespace terse

#endif  // TERSE_BENCH_PARTITION_COMMAND_H_
