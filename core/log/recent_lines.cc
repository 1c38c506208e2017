#include "core/log/recent_lines.h"

#include <deque>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/log/plain_text.h"

namespace terse {
namespace {

class Lines {
 public:
  void Keep(size_t most) {
    absl::MutexLock lock(&mutex_);
    most_ = most;
    Trim();
  }
  void Add(LogLine line) {
    absl::MutexLock lock(&mutex_);
    line.id = ++added_;
    lines_.push_back(std::move(line));
    Trim();
  }
  bool keeps_any() const {
    absl::MutexLock lock(&mutex_);
    return most_ > 0;
  }
  std::vector<LogLine> Copy() const {
    absl::MutexLock lock(&mutex_);
    return {lines_.begin(), lines_.end()};
  }

 private:
  void Trim() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    while (lines_.size() > most_) lines_.pop_front();
  }

  mutable absl::Mutex mutex_;
  size_t most_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t added_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<LogLine> lines_ ABSL_GUARDED_BY(mutex_);
};

// Threads may log until the process ends.
Lines& OfProcess() {
  static auto* const lines = new Lines();
  return *lines;
}

}  // namespace

void KeepRecentLines(size_t lines) { OfProcess().Keep(lines); }

std::vector<LogLine> RecentLines() { return OfProcess().Copy(); }

void AddRecentLine(LogLevel level, absl::string_view component, const LogFields& fields, absl::string_view message) {
  if (!OfProcess().keeps_any()) return;
  LogLine line;
  line.time_us = absl::ToUnixMicros(absl::Now());
  line.level = level;
  line.component = std::string(component);
  line.run = PlainText(fields.run);
  line.round = fields.round;
  line.client = PlainText(fields.client);
  if (line.client.empty() && fields.client_index >= 0) line.client = absl::StrCat(fields.client_index);
  line.message = PlainText(message.substr(0, kLongestRecentLine));
  OfProcess().Add(std::move(line));
}

}  // namespace terse
