// Places of which nobody may take too many: connections, streams.
#ifndef TERSE_NET_PEER_PLACES_H_
#define TERSE_NET_PEER_PLACES_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace terse {

// Thread-safe. Outlives the places that it gives.
class PeerPlaces {
 public:
  // Is taken while it lives.
  class Place {
   public:
    Place(PeerPlaces* places, absl::string_view peer) : places_(places), peer_(peer) {}
    ~Place() { places_->GiveBack(peer_); }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

   private:
    PeerPlaces* const places_;
    const std::string peer_;
  };

  // So many at a time, and so many of them for one peer.
  PeerPlaces(int64_t most, int64_t most_of_one) : most_(most), most_of_one_(most_of_one) {}

  // A place for `peer`, whatever its caller tells peers apart by; nullptr when there is none.
  std::unique_ptr<Place> Take(absl::string_view peer) ABSL_LOCKS_EXCLUDED(mutex_);

  int64_t most() const { return most_; }
  int64_t most_of_one() const { return most_of_one_; }

 private:
  void GiveBack(const std::string& peer) ABSL_LOCKS_EXCLUDED(mutex_);

  const int64_t most_, most_of_one_;
  absl::Mutex mutex_;
  int64_t taken_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<std::string, int64_t> by_peer_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace terse

#endif  // TERSE_NET_PEER_PLACES_H_
