// Virtual clients: several clients of one fleet in one process, each with its own session, state and connection.
#ifndef TERSE_BENCH_PAPER_WORKER_H_
#define TERSE_BENCH_PAPER_WORKER_H_

#include <CLI/CLI.hpp>

#include "bench/command.h"

namespace terse {

// `terse-bench virtual-clients`: serves clients `first` to `first + count - 1` until their run is finished, SIGINT or
// SIGTERM, which leave their states whole. `terse-bench paper` starts it; it is not listed in the help.
void AddWorkerCommand(CLI::App* app, Command* command);

}  // namespace terse

#endif  // TERSE_BENCH_PAPER_WORKER_H_
