// `terse-bench norms`: how far honest clients' norms are from their round's median, beside what policy.norm_ratio
// allows.
#ifndef TERSE_BENCH_ROBUST_NORMS_COMMAND_H_
#define TERSE_BENCH_ROBUST_NORMS_COMMAND_H_

#include <CLI/CLI.hpp>

#include "bench/command.h"

namespace terse {

void AddNormsCommand(CLI::App* app, Command* command);

}  // namespace terse

#endif  // TERSE_BENCH_ROBUST_NORMS_COMMAND_H_
