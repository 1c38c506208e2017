// `tersectl watch`: one line for every settled round while the run goes on.
#ifndef TERSE_TERSECTL_WATCH_H_
#define TERSE_TERSECTL_WATCH_H_

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "terse/v1/admin.pb.h"

namespace terse {

// Whether the round was committed or aborted.
bool IsSettled(const v1::Round& round);

// Turns settled rounds into lines with cumulative figures and the time left. Not thread-safe.
class WatchLines {
 public:
  // The run's progress is counted in rounds, or in iterations where `limits.iterations` may end it.
  explicit WatchLines(const v1::Status& status);

  // Counts a round towards the cumulative figures; call it for every settled round from the run's first on.
  void Add(const v1::Round& round);

  // Titles above the lines.
  std::string Header() const;
  // The line of `round`, which was added last: progress, accuracy when evaluated, training loss, bytes on the
  // wire up and down, compression on the wire of the way up and of both, duration of the round and time left at the
  // pace of the last rounds.
  std::string Line(const v1::Round& round) const;

  // Estimate from the last rounds; negative when there is no basis for one.
  double SecondsLeft() const;

  // "3 of 5 rounds", or "3 rounds, 600 of 2000 iterations".
  std::string Progress() const;
  // Returns the share of the run that is done, 0 to 1.
  double ShareDone() const;

 private:
  struct Span {
    int64_t opened_us, committed_us;
    uint64_t done;
  };

  const bool by_iterations_;
  const uint64_t total_;
  const uint64_t local_steps_;  // of a round that no controller planned
  uint64_t done_ = 0;           // rounds or iterations
  uint64_t committed_ = 0;
  std::deque<Span> recent_;  // committed rounds
};

// Returns the lines that have counted these rounds of a run; rounds that are not settled do not count.
WatchLines ProgressOf(const v1::Status& status, const std::vector<v1::Round>& rounds);

// Returns the text that `watch` ends with at the end of the run.
std::string EndedText(const v1::Status& status, const WatchLines& lines);

}  // namespace terse

#endif  // TERSE_TERSECTL_WATCH_H_
