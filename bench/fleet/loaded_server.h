// A server that a load is for, in a process of its own: the coordinator, or a relay.
#ifndef TERSE_BENCH_FLEET_LOADED_SERVER_H_
#define TERSE_BENCH_FLEET_LOADED_SERVER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "bench/fleet/sync_counter.h"
#include "simulation/process_facts.h"
#include "simulation/serving_process.h"

namespace terse {

// A program beside this one, with its own defaults. Not thread-safe.
class LoadedServer {
 public:
  struct Options {
    std::string name;                    // of its files, and in errors
    std::string program;                 // "terse-coordinator" or "terse-relay"
    std::vector<std::string> arguments;  // beside those that every server has
    std::string directory;               // is there; of the state, the log and what else it needs
    std::string tls_folder;              // empty: cleartext
    int64_t clients = 0;                 // that are connected to it at a time
  };
  // Returns once it serves. RESOURCE_EXHAUSTED when it may not open enough files for the clients; statuses of
  // ServingProcess::Start.
  static absl::StatusOr<std::unique_ptr<LoadedServer>> Start(const Options& options);
  ~LoadedServer();

  const std::string& address() const { return process_->listen(); }  // of clients
  const std::string& admin() const { return process_->admin(); }

  // The figures at one moment.
  struct Sample {
    absl::Duration processor;
    int64_t syncs = 0;
    ProcessMemory memory;
  };
  // UNAVAILABLE with the end of its log when it has ended.
  absl::StatusOr<Sample> Take();
  // Median of the time that its engine took for an event since the start; nullopt where it does not say: over TLS,
  // which its metrics have then too, and with releases that have no such metric.
  absl::optional<absl::Duration> EventTime() const;

  // UNAVAILABLE with the end of its log when it has ended.
  absl::Status CheckRuns() const { return process_->Check(); }
  // Asks it to end, and waits. UNKNOWN with the end of its log unless that went in order.
  absl::Status Stop();

 private:
  explicit LoadedServer(const Options& options) : options_(options) {}
  std::string FileOf(absl::string_view suffix) const;
  absl::Status MapSyncCount();

  const Options options_;
  SyncCount* syncs_ = nullptr;  // of this and the other process
  std::unique_ptr<ServingProcess> process_;
};

}  // namespace terse

#endif  // TERSE_BENCH_FLEET_LOADED_SERVER_H_
