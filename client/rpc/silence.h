// How long a client that hears nothing waits until it asks whether the coordinator is still there.
#ifndef TERSE_CLIENT_RPC_SILENCE_H_
#define TERSE_CLIENT_RPC_SILENCE_H_

#include <algorithm>
#include <cstddef>
#include <string>

#include "proto/keepalive.h"

namespace terse {

// The seconds of keepalive (FleetChannelArguments) of a client's next connection. Those that the user named stay. By
// itself a client with several addresses asks often, so that a failover is noticed in seconds. On a slow link it then
// takes a coordinator for silent whose answer waits behind an update: when the one that fell silent serves this client
// again, nobody had failed, and the seconds double, until another coordinator serves. Not thread-safe.
class Silence {
 public:
  // `seconds` is `--keepalive`, and 0 when it was not given.
  Silence(double seconds, size_t addresses)
      : first_(seconds > 0 ? seconds : DefaultKeepaliveSeconds(addresses)), adapts_(seconds <= 0 && addresses > 1) {}

  double seconds() const { return seconds_; }
  // After a connection to `address` on which the client was welcomed.
  void OnEnd(const std::string& address, bool fell_silent) {
    if (!adapts_) return;
    if (address != served_) {
      seconds_ = first_;
    } else if (was_silent_) {
      seconds_ = std::min(seconds_ * 2, kMostSeconds);
    }
    served_ = address;
    was_silent_ = fell_silent;
  }

 private:
  // An answer may take half a minute then, whatever the interval.
  static constexpr double kMostSeconds = 60;

  const double first_;
  const bool adapts_;
  double seconds_ = first_;
  std::string served_;  // the address of the last connection
  bool was_silent_ = false;
};

}  // namespace terse

#endif  // TERSE_CLIENT_RPC_SILENCE_H_
