// The newest downstream messages in memory, so that clients that lag a little share them.
#ifndef TERSE_COORDINATOR_RECENT_LOG_H_
#define TERSE_COORDINATOR_RECENT_LOG_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "core/id128.h"

namespace terse {

// Messages of consecutive versions up to the head. They have at most so many bytes together, but the newest is always
// there. Not thread-safe; the messages themselves are shared by all sessions that are sent them.
class RecentLog {
 public:
  static constexpr int64_t kMostBytes = int64_t{16} << 20;

  struct Entry {
    int64_t version = 0;  // the message leads from version - 1 to version
    Id128 model_hash;     // after it was applied
    std::shared_ptr<const std::string> message;
    int64_t end = 0;  // bytes of all messages ever added up to this one
  };

  explicit RecentLog(int64_t most_bytes = kMostBytes) : most_bytes_(most_bytes) {}

  // Adds the message of the version after the newest.
  void Add(int64_t version, Id128 model_hash, std::shared_ptr<const std::string> message) {
    end_ += static_cast<int64_t>(message->size());
    entries_.push_back({version, model_hash, std::move(message), end_});
    while (entries_.size() > 1 && end_ - Begin() > most_bytes_) entries_.pop_front();
  }

  // None of the messages is here any more.
  void Clear() { entries_.clear(); }

  // Whether every message after version `after` is here.
  bool ReachesBackTo(int64_t after) const { return !entries_.empty() && entries_.front().version <= after + 1; }
  // Bytes of those; needs ReachesBackTo.
  int64_t BytesAfter(int64_t after) const {
    return after >= entries_.back().version ? 0 : end_ - (At(after + 1).end - SizeOf(At(after + 1)));
  }
  // Needs ReachesBackTo(version - 1), and a version that was added.
  const Entry& At(int64_t version) const { return entries_[static_cast<size_t>(version - entries_.front().version)]; }

 private:
  static int64_t SizeOf(const Entry& entry) { return static_cast<int64_t>(entry.message->size()); }
  int64_t Begin() const { return entries_.front().end - SizeOf(entries_.front()); }

  const int64_t most_bytes_;
  std::deque<Entry> entries_;
  int64_t end_ = 0;
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_RECENT_LOG_H_
