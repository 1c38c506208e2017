// `terse-bench paper TABLE`: reruns a table or figure of a paper and prints our numbers beside the paper's.
#ifndef TERSE_BENCH_PAPER_PAPER_COMMAND_H_
#define TERSE_BENCH_PAPER_PAPER_COMMAND_H_

#include <CLI/CLI.hpp>

#include "bench/command.h"

namespace terse {

void AddPaperCommand(CLI::App* app, Command* command);

}  // namespace terse

#endif  // TERSE_BENCH_PAPER_PAPER_COMMAND_H_
