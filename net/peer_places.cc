#include "net/peer_places.h"

namespace terse {

std::unique_ptr<PeerPlaces::Place> PeerPlaces::Take(absl::string_view peer) {
  absl::MutexLock lock(&mutex_);
  const auto found = by_peer_.find(peer);
  const int64_t own = found == by_peer_.end() ? 0 : found->second;
  if (taken_ >= most_ || own >= most_of_one_) return nullptr;
  ++taken_;
  ++by_peer_[peer];
  return std::make_unique<Place>(this, peer);
}

void PeerPlaces::GiveBack(const std::string& peer) {
  absl::MutexLock lock(&mutex_);
  --taken_;
  const auto found = by_peer_.find(peer);
  if (--found->second == 0) by_peer_.erase(found);
}

}  // namespace terse
