// Keeps once, for the many clients of one process, what each of them downloads.
#ifndef TERSE_SIMULATION_SHARED_DOWNLOADS_H_
#define TERSE_SIMULATION_SHARED_DOWNLOADS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "core/session_messages.h"

namespace terse {

// Every client of a run is sent the same downstream messages and the same checkpoints. Thread-safe.
class SharedDownloads {
 public:
  // Puts the message that another client was sent for this version in place of this one's, as long as somebody has it.
  void Share(Downstream* downstream) ABSL_LOCKS_EXCLUDED(mutex_);

  // The bytes of the checkpoint of `version`: those that were fetched last, if they are that version's, else what
  // `fetch` returns.
  using Fetch = std::function<absl::StatusOr<std::string>()>;
  absl::StatusOr<std::string> Checkpoint(int64_t version, const Fetch& fetch) ABSL_LOCKS_EXCLUDED(fetching_);

 private:
  absl::Mutex mutex_;
  std::map<Id128, std::weak_ptr<const std::string>> messages_ ABSL_GUARDED_BY(mutex_);  // by the model's hash
  absl::Mutex fetching_;
  int64_t version_ ABSL_GUARDED_BY(fetching_) = -1;
  std::string checkpoint_ ABSL_GUARDED_BY(fetching_);
};

}  // namespace terse

#endif  // TERSE_SIMULATION_SHARED_DOWNLOADS_H_
