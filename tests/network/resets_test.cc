// Connections that are reset at every place of a conversation. The places are the boundaries of the HTTP/2 frames of a
// clean session, both ways, one byte around them, and the middle of every frame.
#include <algorithm>
#include <deque>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/optional.h"
#include "gtest/gtest.h"
#include "tests/network/network_fleet.h"

namespace terse {
namespace {

constexpr absl::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";  // RFC 9113, section 3.4
constexpr size_t kFrameHeader = 9;                                          // RFC 9113, section 4.1

// A place to cut: direction, and bytes before it.
using Cut = std::pair<bool, int64_t>;

// Returns the offsets at which the frames of a recorded direction begin and end.
std::vector<int64_t> FrameBoundaries(const std::string& bytes, bool up) {
  std::vector<int64_t> boundaries;
  size_t at = up ? kPreface.size() : 0;
  while (at + kFrameHeader <= bytes.size()) {
    boundaries.push_back(at);
    const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<uint8_t>(bytes[at + i])); };
    at += kFrameHeader + (byte(0) << 16 | byte(1) << 8 | byte(2));
  }
  boundaries.push_back(at);
  return boundaries;
}

// The places of one direction: around every boundary, and inside every frame.
void AddPlaces(const std::string& bytes, bool up, bool around, std::set<Cut>* places) {
  const std::vector<int64_t> boundaries = FrameBoundaries(bytes, up);
  for (size_t i = 0; i < boundaries.size(); ++i) {
    places->insert({up, boundaries[i]});
    if (i > 0) places->insert({up, (boundaries[i - 1] + boundaries[i]) / 2});
    if (!around) continue;
    places->insert({up, boundaries[i] + 1});
    if (boundaries[i] > 0) places->insert({up, boundaries[i] - 1});
  }
}

// A clean run of two clients over so many rounds, and the places of its first connection.
std::vector<Cut> PlacesOfCleanSession(const FleetShape& shape, int64_t rounds, bool around) {
  NetworkFleet fleet(shape, nullptr, {}, /*record=*/true);
  fleet.StartClients();
  EXPECT_TRUE(fleet.Commits(rounds)) << fleet.Logs();
  std::set<Cut> places;
  for (bool up : {true, false}) AddPlaces(fleet.proxy().Delivered(0, up), up, around, &places);
  // Bytes that nobody ever sends cannot be waited for.
  places.erase({true, 0});
  places.erase({false, 0});
  std::vector<Cut> shuffled(places.begin(), places.end());
  std::shuffle(shuffled.begin(), shuffled.end(), std::mt19937(7));
  return shuffled;
}

// Gives every new connection a place to be cut at. A place whose connection ended before it came so far is given again.
class CutList {
 public:
  explicit CutList(const std::vector<Cut>& cuts) : left_(cuts.begin(), cuts.end()) {}

  LinkScript Next() {
    absl::MutexLock lock(&mutex_);
    LinkScript script;
    given_.push_back(absl::nullopt);
    if (left_.empty()) return script;
    given_.back() = left_.front();
    left_.pop_front();
    (given_.back()->first ? script.up : script.down).reset_after = given_.back()->second;
    return script;
  }
  // Whether every place was met.
  bool Done(const std::vector<LinkCount>& links) {
    absl::MutexLock lock(&mutex_);
    bool done = left_.empty();
    for (size_t i = 0; i < links.size(); ++i) {
      if (!given_[i].has_value() || links[i].was_reset) continue;
      done = false;
      if (links[i].open) continue;
      left_.push_back(*given_[i]);
      given_[i].reset();
    }
    return done;
  }

 private:
  absl::Mutex mutex_;
  std::deque<Cut> left_ ABSL_GUARDED_BY(mutex_);
  std::vector<absl::optional<Cut>> given_ ABSL_GUARDED_BY(mutex_);  // by connection
};

// Cuts a connection at each place, then lets them live. Every place is met, because the run has no end.
void ResetAtEach(const FleetShape& shape, const std::vector<Cut>& places) {
  CutList list(places);
  NetworkFleet fleet(shape, [&list](int) { return list.Next(); });
  fleet.StartClients();
  EXPECT_TRUE(WaitUntil([&] { return list.Done(fleet.proxy().Counts()); }, 2 * kPatience)) << fleet.Logs();
  EXPECT_TRUE(fleet.Commits(3)) << fleet.Logs();
  fleet.FinishAndCheck(absl::StrCat(places.size(), " places"));
}

TEST(Resets, AtEveryFrameOfASession) {
  FleetShape shape;
  shape.clients = 4;
  // Rounds go on without those who just lost their connection, and what these send later folds forward.
  shape.quorum = 2;
  shape.deadline_seconds = 0.05;
  const std::vector<Cut> places = PlacesOfCleanSession(shape, /*rounds=*/4, /*around=*/true);
  EXPECT_GE(places.size(), 200);
  ResetAtEach(shape, places);
}

// Updates of two chunks, downstream messages of several: the frames of a round are many, and whole messages are cut.
TEST(Resets, AtEveryFrameOfChunkedMessages) {
  FleetShape shape;
  shape.clients = 3;
  shape.quorum = 1;
  shape.deadline_seconds = 0.05;
  shape.codec = {"dense"};
  shape.wide = true;
  const std::vector<Cut> places = PlacesOfCleanSession(shape, /*rounds=*/1, /*around=*/false);
  EXPECT_GE(places.size(), 60);
  ResetAtEach(shape, places);
}

}  // namespace
}  // namespace terse
