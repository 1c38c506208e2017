// The clients whose connection ended a short while ago: most of them come back by themselves, and a round may wait for
// them.
#ifndef TERSE_COORDINATOR_ABSENCES_H_
#define TERSE_COORDINATOR_ABSENCES_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "absl/container/btree_set.h"
#include "coordinator/standing.h"

namespace terse {

// A client whose connection breaks tries again after 0.5 s, and after twice as long each time: in ten seconds four
// times. After the start of the coordinator's process, all of them are on their way for as long.
inline constexpr int64_t kReturnMicros = 10'000'000;

// Absent clients by their part in the open round (Standing::invited, Standing::delivered). Times are of the monotonic
// clock. Every change is O(log absent). Not thread-safe.
class Absences {
 public:
  void Add(int64_t client, Standing standing, int64_t left_us) { Of(standing).insert({left_us, client}); }
  void Remove(int64_t client, Standing standing, int64_t left_us) { Of(standing).erase({left_us, client}); }
  void Clear() {
    for (Group& group : groups_) group.clear();
  }
  // Hands each client that left longer ago than kReturnMicros to `forget`, which must Remove it.
  template <typename Forget>
  void ForgetOld(int64_t now_us, Forget forget) {
    for (Group& group : groups_) {
      while (!group.empty() && group.begin()->first + kReturnMicros <= now_us) forget(group.begin()->second);
    }
  }

  // Returns when the last client that `wanted` matches is not expected back any more; 0 for none.
  template <typename Wanted>
  int64_t LastReturnMicros(Wanted wanted) const {
    int64_t last = 0;
    for (size_t i = 0; i < groups_.size(); ++i) {
      Standing standing;
      standing.invited = (i & 1) != 0;
      standing.delivered = (i & 2) != 0;
      if (!groups_[i].empty() && wanted(standing)) last = std::max(last, groups_[i].rbegin()->first + kReturnMicros);
    }
    return last;
  }

 private:
  using Group = absl::btree_set<std::pair<int64_t, int64_t>>;  // when it left, and who

  Group& Of(Standing standing) { return groups_[size_t{standing.invited} | size_t{standing.delivered} << 1]; }

  std::array<Group, 4> groups_;
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_ABSENCES_H_
