// Copies of a running run's files, for `tersectl backup`.
#ifndef TERSE_COORDINATOR_RPC_BACKUP_STREAM_H_
#define TERSE_COORDINATOR_RPC_BACKUP_STREAM_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "coordinator/rpc/run_host.h"

namespace terse {

// Copies the run into a temporary directory inside its own and calls `write` with every chunk of the stream that
// terse.v1.Admin.Backup describes. `write` returns false when nobody listens any more: CANCELLED. Statuses of
// RunHost::Use, RunStore::Backup and FileSystem. The copy is gone when this returns.
absl::Status StreamBackup(const RunHost& run, const std::function<bool(const v1::BackupChunk&)>& write);

// Removes the copies that a process left which ended during a backup.
void RemoveStaleBackups(const std::string& run_directory);

}  // namespace terse

#endif  // TERSE_COORDINATOR_RPC_BACKUP_STREAM_H_
