// A subcommand of terse-bench adds its options and, when it is called, sets what the program does.
#ifndef TERSE_BENCH_COMMAND_H_
#define TERSE_BENCH_COMMAND_H_

#include <CLI/CLI.hpp>
#include <functional>

#include "absl/status/statusor.h"
#include "core/cli/checks.h"

namespace terse {

// Returns the exit code.
using Command = std::function<absl::StatusOr<int>()>;

}  // namespace terse

#endif  // TERSE_BENCH_COMMAND_H_
