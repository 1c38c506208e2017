#include "coordinator/repeated_events.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"

namespace terse {
namespace {

constexpr int64_t kCountedTogetherUs = 60'000'000;

}  // namespace

bool RepeatedEvents::Add(const EventRecord& event, int64_t now_us) {
  const Key key = {event.kind, event.client};
  const auto [it, is_new] = counted_.try_emplace(key);
  Counted& counted = it->second;
  if (is_new) {
    counted.begun_us = now_us;
    begun_.insert({now_us, key});
  }
  if (counted.written < kWrittenAtOnce) {
    ++counted.written;
    return true;
  }
  counted.newest = event;
  if (++counted.times == 1) unwritten_.insert({counted.begun_us, key});
  return false;
}

std::vector<EventRecord> RepeatedEvents::TakeDue(int64_t now_us, bool all) {
  std::vector<EventRecord> due;
  while (!begun_.empty() && (all || begun_.begin()->first + kCountedTogetherUs <= now_us)) {
    const auto oldest = *begun_.begin();
    const auto it = counted_.find(oldest.second);
    if (it->second.times > 0) {
      due.push_back(std::move(it->second.newest));
      if (it->second.times > 1) absl::StrAppend(&due.back().detail, " (", it->second.times, " times within a minute)");
    }
    counted_.erase(it);
    begun_.erase(oldest);
    unwritten_.erase(oldest);
  }
  return due;
}

int64_t RepeatedEvents::NextMicros() const {
  if (unwritten_.empty()) return std::numeric_limits<int64_t>::max();
  return unwritten_.begin()->first + kCountedTogetherUs;
}

}  // namespace terse
