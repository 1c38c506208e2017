// The hidden command of terse-bench that is one process of a load: some clients of a fleet, with one model.
#ifndef TERSE_BENCH_FLEET_LOAD_PROCESS_H_
#define TERSE_BENCH_FLEET_LOAD_PROCESS_H_

#include <string>

#include "bench/command.h"

namespace terse {

inline constexpr char kLoadProcessCommand[] = "fleet-clients";

// The name of a fleet's client, of its certificate, and of the folder that holds this.
std::string LoadClientName(int64_t number);

// Such a process says on its standard output, a line each:
//   ready        the updates are prepared; it waits for a line on its standard input, and then connects
//   version N    a client has all of the message of a version, and none of the process had it before
//   error TEXT   it ends with exit code 1
//   done JSON    the run is finished for all of its clients: the counts of LoadTally, "models_checked" and
//   "memory_kib",
//                its growth since it was ready
void AddLoadProcessCommand(CLI::App* app, Command* command);

}  // namespace terse

#endif  // TERSE_BENCH_FLEET_LOAD_PROCESS_H_
