// Listens for TCP connections in gRPC's place, so that there is a bound to them.
#ifndef TERSE_NET_ACCEPTOR_H_
#define TERSE_NET_ACCEPTOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/log/log.h"
#include "core/wire_meter.h"

namespace terse {

// gRPC 1.51 takes connections as long as the process has files to open, and when accept fails for want of one it closes
// the listening socket for good: whoever opens enough connections, without any certificate, would shut the fleet out
// until a restart. So the sockets are ours. A connection beyond a bound is reset at once, and listening goes on
// whatever accept says.
class Acceptor {
 public:
  struct Bounds {
    int64_t connections = 0;  // at a time
    int64_t per_address = 0;  // of these from one peer (net/peer.h)
    // Whether that bounds this machine's own loopback addresses too.
    bool loopback_too = false;
  };
  struct Options {
    std::string address;  // "host:port"; port 0 takes a free one
    Bounds bounds;
    std::string option = {};  // of the command line, that sets the bounds, for the log; empty: none does
    // Learns of every connection that is taken; may be null.
    std::shared_ptr<AcceptedSockets> accepted = nullptr;
    // Gets a line when connections are reset or cannot be taken, at most one of each kind a minute. Called by a thread
    // of this object.
    std::function<void(LogLevel, absl::string_view)> log = [](LogLevel, absl::string_view) {};
  };
  // Takes a connected socket over and closes it in the end.
  using Take = std::function<void(int listening, int connected)>;

  // INVALID_ARGUMENT when the address is none; UNAVAILABLE with the system's reason when nobody can listen on it.
  static absl::StatusOr<std::unique_ptr<Acceptor>> Listen(const Options& options);
  // Stops taking connections; those that were taken are not touched.
  ~Acceptor();

  // Once. From here on, `take` is called in a thread of this object.
  void Start(Take take);

  // With the port that was chosen.
  const std::string& address() const { return address_; }

 private:
  using Peer = std::string;

  Acceptor(Options options, std::vector<int> listening, std::string address);
  void AcceptUntilClosed();
  void AcceptAll(int listening);
  void Admit(int listening, int connected, const Peer& peer);
  bool HasRoom(const Peer& peer) const;
  // Forgets the connections that were closed.
  void Prune();

  const Options options_;
  const std::vector<int> listening_;
  const std::string address_;
  int wake_ = -1;  // an eventfd that ends the thread
  Take take_;
  // The thread's own. Who takes a connection closes it without a word to us: it is open as long as IsOpen says so.
  absl::flat_hash_map<Peer, std::vector<WireSocket>> taken_;
  int64_t count_ = 0;
  int64_t reset_ = 0;  // since that was logged
  int64_t pruned_us_ = 0, logged_us_ = 0, failure_logged_us_ = 0;
  std::thread thread_;
};

// Bounds that leave the process `kFilesForOthers` files, of as many as the system lets it open; the soft limit is
// raised to the hard one. `connections` and `per_address` of 0 mean as many as that, and half of them. Listeners share
// the process's files, so whoever has several divides. INVALID_ARGUMENT when the system does not allow as many.
absl::StatusOr<Acceptor::Bounds> ConnectionBounds(int64_t connections, int64_t per_address);
inline constexpr int64_t kFilesForOthers = 512;

}  // namespace terse

#endif  // TERSE_NET_ACCEPTOR_H_
