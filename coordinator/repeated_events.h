// Events that a client can cause as often as it likes: repetitions become one row.
#ifndef TERSE_COORDINATOR_REPEATED_EVENTS_H_
#define TERSE_COORDINATOR_REPEATED_EVENTS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "storage/run_store.h"

namespace terse {

// Merges repeated events. The first kWrittenAtOnce events of one kind and client are written as they come. Those that
// follow within a minute of the first are written as one event, with their number and the detail of the newest. So for
// each kind of misbehaviour a client costs a few rows a minute. A value type.
class RepeatedEvents {
 public:
  static constexpr int64_t kWrittenAtOnce = 3;

  // Returns whether the event is to be written now; otherwise it was counted. `now_us` is of the monotonic clock, as
  // everywhere here: the event's own time is for people.
  bool Add(const EventRecord& event, int64_t now_us);
  // Returns rows for what was counted and is due, or with `all` for everything, which are forgotten here.
  std::vector<EventRecord> TakeDue(int64_t now_us, bool all);
  // Returns when the next of them is due; the largest number for never.
  int64_t NextMicros() const;

 private:
  struct Counted {
    int64_t begun_us = 0;  // when the first came
    int64_t written = 0;   // as they came
    int64_t times = 0;     // of those that are not written yet
    EventRecord newest;    // of those
  };
  using Key = std::pair<std::string, int64_t>;  // kind and client

  std::map<Key, Counted> counted_;               // only of the last minute
  std::set<std::pair<int64_t, Key>> begun_;      // the same, by Counted::begun_us
  std::set<std::pair<int64_t, Key>> unwritten_;  // those with something to write
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_REPEATED_EVENTS_H_
