// A TCP proxy for tests, between clients and the coordinator, that misbehaves on order: delays, thin links, resets at
// an exact byte, connections that hear nothing more, peers that do not read, entries that a NAT forgot.
#ifndef TERSE_TESTS_NETWORK_TCP_PROXY_H_
#define TERSE_TESTS_NETWORK_TCP_PROXY_H_

#include <netinet/in.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace terse {

inline constexpr int64_t kNeverBytes = std::numeric_limits<int64_t>::max();

// The script says what happens to the bytes of one direction of a connection. Counts are of bytes since the connection
// was made.
struct FlowScript {
  absl::Duration latency = absl::ZeroDuration();  // each byte arrives so much later; the first also connects so late
  int64_t bytes_per_second = kNeverBytes;         // 0: nothing is forwarded, and nothing is lost
  int64_t chunk_bytes = 64 * 1024;                // most bytes that are read and written at once
  int64_t reset_after = kNeverBytes;              // both ends get RST as soon as exactly so many bytes were delivered
  int64_t lose_after = kNeverBytes;               // what follows vanishes, the connection's end with it
  bool read = true;                               // false: the sender's window fills up and stays full
};

struct LinkScript {
  FlowScript up;    // from the client to the coordinator
  FlowScript down;  // to the client
  // A NAT forgets a connection on which no byte moved for so long; whoever speaks next gets RST, the other hears
  // nothing.
  absl::Duration forget_after = absl::InfiniteDuration();
};

// The counts of what a connection carried, for assertions and reports.
struct LinkCount {
  int64_t up = 0;  // bytes delivered to the coordinator
  int64_t down = 0;
  bool was_reset = false;  // by the script
  bool forgotten = false;
  bool open = false;
};

// Listens on 127.0.0.1 and forwards in a thread of its own until it goes. Thread-safe.
class TcpProxy {
 public:
  // Gives the script of connection number 0, 1, 2... as it comes in. Called in the proxy's thread.
  using Plan = std::function<LinkScript(int index)>;

  // Forwards to `target` ("127.0.0.1:PORT"). `record` keeps what is delivered for Delivered().
  TcpProxy(const std::string& target, Plan plan, bool record = false);
  // Resets what is open.
  ~TcpProxy();

  // Returns the address to which clients connect: "127.0.0.1:PORT".
  std::string address() const;

  // Sets the plan for the connections to come.
  void SetPlan(Plan plan) ABSL_LOCKS_EXCLUDED(mutex_);
  // Changes the scripts of the connections that are open. `change` runs under the proxy's lock.
  void ForEachOpen(const std::function<void(int index, LinkScript* script)>& change) ABSL_LOCKS_EXCLUDED(mutex_);
  // RST to both ends of all of them.
  void ResetAll() ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether new connections are taken; those that come meanwhile wait in the kernel's queue.
  void SetAccepting(bool accepting) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether somebody waits there.
  bool SomebodyKnocks() const;

  // One entry per connection, in the order in which they came.
  std::vector<LinkCount> Counts() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the sums of Counts().
  LinkCount Total() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the bytes that connection `index` delivered, in full when the proxy records.
  std::string Delivered(int index, bool up) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Flow;
  struct Link;
  struct Watched;

  void Loop();
  void Accept() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // One turn of a connection: what is due is forwarded. The next moment at which something is due.
  absl::Time Turn(Link* link, absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Adds what the connection waits for.
  void Watch(Link* link, std::vector<Watched>* watched) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Connect(Link* link) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Wake();

  const sockaddr_in target_;
  const bool record_;
  int listener_ = -1;
  int wake_ = -1;
  int port_ = 0;

  mutable absl::Mutex mutex_;
  Plan plan_ ABSL_GUARDED_BY(mutex_);
  bool accepting_ ABSL_GUARDED_BY(mutex_) = true;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::unique_ptr<Link>> links_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace terse

#endif  // TERSE_TESTS_NETWORK_TCP_PROXY_H_
