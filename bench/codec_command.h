// `terse-bench codec`: speed, memory and size of the compression library, each figure beside its target.
#ifndef TERSE_BENCH_CODEC_COMMAND_H_
#define TERSE_BENCH_CODEC_COMMAND_H_

#include "bench/command.h"

namespace terse {

// Adds the subcommand; `chosen` outlives the parsing.
void AddCodecCommand(CLI::App* app, Command* chosen);

}  // namespace terse

#endif  // TERSE_BENCH_CODEC_COMMAND_H_
