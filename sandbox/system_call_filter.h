// The system calls that are denied to a sandboxed trainer. Internal to sandbox.
#ifndef TERSE_SANDBOX_SYSTEM_CALL_FILTER_H_
#define TERSE_SANDBOX_SYSTEM_CALL_FILTER_H_

#include "absl/status/status.h"

namespace terse {

// Filters the system calls of this process, for good. Calls fail with EPERM that make sockets, programs or processes
// (threads are allowed), open files for writing, change the file system, look into or signal other processes, or change
// what the machine, or the limits and processors of others, are. A list of what is denied: what LibTorch calls differs
// with its version and libraries. Calls of another architecture end the process. FAILED_PRECONDITION when the kernel
// cannot filter.
absl::Status DenySystemCalls();

}  // namespace terse

#endif  // TERSE_SANDBOX_SYSTEM_CALL_FILTER_H_
