// `terse-bench distortion`: what every codec loses for the bits it takes, over the range of its setting.
#ifndef TERSE_BENCH_DISTORTION_COMMAND_H_
#define TERSE_BENCH_DISTORTION_COMMAND_H_

#include "bench/command.h"

namespace terse {

// Adds the subcommand; `chosen` outlives the parsing.
void AddDistortionCommand(CLI::App* app, Command* chosen);

}  // namespace terse

#endif  // TERSE_BENCH_DISTORTION_COMMAND_H_
