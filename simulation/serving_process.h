// A process of one of Terse's servers, which says in a file where it serves.
#ifndef TERSE_SIMULATION_SERVING_PROCESS_H_
#define TERSE_SIMULATION_SERVING_PROCESS_H_

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "simulation/spawned_process.h"

namespace terse {

// Killed when the object goes, unless it has ended before. Not thread-safe.
class ServingProcess {
 public:
  struct Options {
    std::string name;                           // in messages: "relay 3"
    std::string program;                        // in the folder that this program is in
    std::vector<std::string> arguments;         // without --ready-file
    std::vector<std::string> environment = {};  // "NAME=VALUE", beyond this process's
    std::string files;                          // path of its log and of its ready file, without their suffixes
  };
  // Returns once it serves. `go_on` is asked several times a second, and ends the wait with CANCELLED. UNAVAILABLE with
  // the end of its log when it does not serve within a minute, NOT_FOUND when there is no such program.
  static absl::StatusOr<std::unique_ptr<ServingProcess>> Start(const Options& options,
                                                               const std::function<bool()>& go_on);

  pid_t pid() const { return process_->pid(); }
  const std::string& listen() const { return listen_; }  // host:port
  const std::string& admin() const { return admin_; }
  const std::string& http() const { return http_; }  // empty: it serves no pages

  // UNAVAILABLE with the end of its log when it has ended.
  absl::Status Check() const;
  std::string EndOfLog() const;
  // Asks it to end in order and waits so long. Returns the status that waitpid gives for it; nullopt while it still
  // runs.
  absl::optional<int> End(absl::Duration patience);

 private:
  explicit ServingProcess(Options options) : options_(std::move(options)) {}
  absl::Status AwaitReady(const std::string& path, const std::function<bool()>& go_on);
  absl::Status ReadAddresses(const std::string& path);

  const Options options_;
  std::unique_ptr<SpawnedProcess> process_;
  std::string listen_, admin_, http_;
};

}  // namespace terse

#endif  // TERSE_SIMULATION_SERVING_PROCESS_H_
