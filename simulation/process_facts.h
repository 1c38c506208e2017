// Memory and processor time of a process, from the kernel.
#ifndef TERSE_SIMULATION_PROCESS_FACTS_H_
#define TERSE_SIMULATION_PROCESS_FACTS_H_

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace terse {

// In units of 2^10 bytes.
struct ProcessMemory {
  int64_t resident_kib = 0;  // VmRSS
  int64_t peak_kib = 0;      // VmHWM
};

// `process` is a number or "self". UNAVAILABLE when there is no such process.
absl::StatusOr<ProcessMemory> ReadProcessMemory(const std::string& process);

// Counts this process's peak anew, once the allocator has given back what it can. UNAVAILABLE when the kernel does not
// let it.
absl::Status ForgetPeakMemory();

// Processor time of all of its threads, those that have ended too, to the nanosecond: /proc/PID/stat counts in 10 ms.
// UNAVAILABLE likewise.
absl::StatusOr<absl::Duration> ReadProcessorTime(pid_t process);

}  // namespace terse

#endif  // TERSE_SIMULATION_PROCESS_FACTS_H_
