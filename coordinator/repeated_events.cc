#include "coordinator/repeated_events.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"

namespace terse {
namespace {

constexpr int64_t kCountedTogetherUs = 60'000'000;

}  // namespace

bool RepeatedEvents::Add(const EventRecord& event, int64_t now_us) {
  Counted& counted = counted_[{event.kind, event.client}];
  if (counted.written == 0) counted.begun_us = now_us;
  if (counted.written < kWrittenAtOnce) {
    ++counted.written;
    return true;
  }
  counted.newest = event;
  ++counted.times;
  return false;
}

std::vector<EventRecord> RepeatedEvents::TakeDue(int64_t now_us, bool all) {
  std::vector<EventRecord> due;
  for (auto it = counted_.begin(); it != counted_.end();) {
    const Counted& counted = it->second;
    if (!all && now_us < counted.begun_us + kCountedTogetherUs) {
      ++it;
      continue;
    }
    if (counted.times > 0) {
      due.push_back(counted.newest);
      if (counted.times > 1) absl::StrAppend(&due.back().detail, " (", counted.times, " times within a minute)");
    }
    it = counted_.erase(it);
  }
  return due;
}

int64_t RepeatedEvents::NextMicros() const {
  int64_t next = std::numeric_limits<int64_t>::max();
  for (const auto& [key, counted] : counted_) {
    if (counted.times > 0) next = std::min(next, counted.begun_us + kCountedTogetherUs);
  }
  return next;
}

}  // namespace terse
