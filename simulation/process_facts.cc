#include "simulation/process_facts.h"

#include <malloc.h>

#include <cstdio>
#include <ctime>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace terse {

absl::StatusOr<ProcessMemory> ReadProcessMemory(const std::string& process) {
  std::ifstream status(absl::StrCat("/proc/", process, "/status"));
  ProcessMemory memory;
  for (std::string line; std::getline(status, line);) {
    long long kib = 0;
    if (std::sscanf(line.c_str(), "VmRSS: %lld kB", &kib) == 1) memory.resident_kib = kib;
    if (std::sscanf(line.c_str(), "VmHWM: %lld kB", &kib) == 1) memory.peak_kib = kib;
  }
  if (memory.peak_kib > 0) return memory;
  return absl::UnavailableError(absl::StrCat("process ", process, " has no memory in /proc: it has ended"));
}

absl::Status ForgetPeakMemory() {
  malloc_trim(0);
  std::ofstream file("/proc/self/clear_refs");
  file << "5";
  if (file.flush()) return absl::OkStatus();
  return absl::UnavailableError(
      "the kernel does not let this process count its peak of memory anew (/proc/self/clear_refs)");
}

absl::StatusOr<absl::Duration> ReadProcessorTime(pid_t process) {
  clockid_t clock = 0;
  timespec time = {};
  if (clock_getcpuclockid(process, &clock) == 0 && clock_gettime(clock, &time) == 0) {
    return absl::DurationFromTimespec(time);
  }
  return absl::UnavailableError(absl::StrCat("process ", process, " has no clock: it has ended"));
}

}  // namespace terse
