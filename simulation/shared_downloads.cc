#include "simulation/shared_downloads.h"

#include <iterator>
#include <utility>

#include "core/status.h"

namespace terse {

void SharedDownloads::Share(Downstream* downstream) {
  absl::MutexLock lock(&mutex_);
  std::weak_ptr<const std::string>& kept = messages_[downstream->model_hash];
  // The bytes decide: a message that differs is its client's alone, who will find out.
  const std::shared_ptr<const std::string> known = kept.lock();
  if (known != nullptr && *known == *downstream->message) {
    downstream->message = known;
    return;
  }
  kept = downstream->message;
  for (auto message = messages_.begin(); message != messages_.end();) {
    message = message->second.expired() ? messages_.erase(message) : std::next(message);
  }
}

absl::StatusOr<std::string> SharedDownloads::Checkpoint(int64_t version, const Fetch& fetch) {
  absl::MutexLock lock(&fetching_);
  if (version_ != version) {
    TERSE_ASSIGN_OR_RETURN(checkpoint_, fetch());
    version_ = version;
  }
  return checkpoint_;
}

}  // namespace terse
