// The facts that decide whether a client can take part in the open round, or in the next one; and clients
// grouped by them.
#ifndef TERSE_COORDINATOR_STANDING_H_
#define TERSE_COORDINATOR_STANDING_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/btree_set.h"

namespace terse {

// A value type.
struct Standing {
  bool active = false;     // connected, neither refused nor set aside
  bool ready = false;      // active, and would take part in a round that opens now
  bool idle = false;       // active, works on nothing and holds the head's weights: it can be given work
  bool spare = false;      // active, works on nothing, holds some version, and no part of the log is on its way to it
  bool invited = false;    // was given work in the open round, or holds a place in it; connected or not
  bool delivered = false;  // its update of the open round is in; connected or not

  static constexpr size_t kCount = 64;

  constexpr size_t index() const {
    return size_t{active} | size_t{ready} << 1 | size_t{idle} << 2 | size_t{spare} << 3 | size_t{invited} << 4 |
           size_t{delivered} << 5;
  }
  static constexpr Standing At(size_t index) {
    const auto bit = [index](int i) { return (index >> i & 1) != 0; };
    return {bit(0), bit(1), bit(2), bit(3), bit(4), bit(5)};
  }
};

// Clients by their standing. A change is O(log clients), a count O(1). Not thread-safe.
class StandingGroups {
 public:
  void Add(int64_t client, Standing standing) { groups_[standing.index()].insert(client); }
  void Remove(int64_t client, Standing standing) { groups_[standing.index()].erase(client); }
  void Clear() {
    for (auto& group : groups_) group.clear();
  }

  // The number of clients whose standing `matches`.
  template <typename Predicate>
  int64_t Count(Predicate matches) const {
    size_t count = 0;
    for (size_t i = 0; i < Standing::kCount; ++i) count += matches(Standing::At(i)) ? groups_[i].size() : 0;
    return static_cast<int64_t>(count);
  }
  // Those clients, in order. O(their number), with a sort.
  template <typename Predicate>
  std::vector<int64_t> Select(Predicate matches) const {
    std::vector<int64_t> clients;
    for (size_t i = 0; i < Standing::kCount; ++i) {
      if (matches(Standing::At(i))) clients.insert(clients.end(), groups_[i].begin(), groups_[i].end());
    }
    std::sort(clients.begin(), clients.end());
    return clients;
  }

 private:
  std::array<absl::btree_set<int64_t>, Standing::kCount> groups_;
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_STANDING_H_
