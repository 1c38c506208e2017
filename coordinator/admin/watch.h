// `tersectl watch`: one line for every settled round while the run goes on.
#ifndef TERSE_COORDINATOR_ADMIN_WATCH_H_
#define TERSE_COORDINATOR_ADMIN_WATCH_H_

#include <cstdint>
#include <deque>
#include <string>

#include "terse/v1/admin.pb.h"

namespace terse {

// Turns settled rounds into lines with cumulative figures and the time left. Not thread-safe.
class WatchLines {
 public:
  explicit WatchLines(uint64_t rounds_total) : rounds_total_(rounds_total) {}

  // Counts a round towards the cumulative figures; call it for every settled round from the run's first on.
  void Add(const v1::Round& round);

  // Titles above the lines.
  std::string Header() const;
  // The line of `round`, which was added last: rounds committed, accuracy when evaluated, training loss, bytes on the
  // wire up and down, compression on the wire so far, duration of the round and time left at the pace of the last
  // rounds.
  std::string Line(const v1::Round& round) const;

  // Estimate from the last rounds; negative when there is no basis for one.
  double SecondsLeft() const;

  uint64_t committed() const { return committed_; }

 private:
  struct Span {
    int64_t opened_us, committed_us;
  };

  const uint64_t rounds_total_;
  uint64_t committed_ = 0;
  uint64_t dense_bytes_up_ = 0;
  uint64_t wire_bytes_up_ = 0;
  std::deque<Span> recent_;  // committed rounds
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_ADMIN_WATCH_H_
