// How long a client that hears nothing waits until it asks whether the coordinator is still there.
#ifndef TERSE_CLIENT_RPC_SILENCE_H_
#define TERSE_CLIENT_RPC_SILENCE_H_

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>

#include "proto/keepalive.h"

namespace terse {

// The seconds of keepalive (FleetChannelArguments) of a client's next connection. Those that the user named stay. By
// itself a client with several addresses asks often, so that a failover is noticed in seconds. On a slow link it then
// takes a coordinator for silent whose answer is still on its way. But whoever fell silent and is there again was never
// gone: then the seconds double, and they halve when another coordinator serves. Not thread-safe.
class Silence {
 public:
  // `seconds` is `--keepalive`, and 0 when it was not given.
  Silence(double seconds, size_t addresses)
      : first_(seconds > 0 ? seconds : DefaultKeepaliveSeconds(addresses)), adapts_(seconds <= 0 && addresses > 1) {}

  double seconds() const { return seconds_; }
  // After a connection to `address`. `served`: the client was welcomed on it.
  void OnEnd(const std::string& address, bool served, bool fell_silent) {
    // One that was refused or cut off says nothing about the link.
    if (!adapts_ || !(served || fell_silent)) return;
    if (silent_.count(address) > 0) {
      seconds_ = std::min(seconds_ * 2, kMostSeconds);
      silent_.clear();
    } else if (served && !server_.empty() && server_ != address) {
      seconds_ = std::max(seconds_ / 2, first_);
      silent_.clear();
    }
    if (served) server_ = address;
    if (fell_silent) silent_.insert(address);
  }

 private:
  // An answer may take half a minute then, whatever the interval.
  static constexpr double kMostSeconds = 60;

  const double first_;
  const bool adapts_;
  double seconds_ = first_;
  std::string server_;            // the address that served last
  std::set<std::string> silent_;  // those that fell silent since the seconds changed
};

}  // namespace terse

#endif  // TERSE_CLIENT_RPC_SILENCE_H_
