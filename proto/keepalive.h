// Ranges of `--keepalive`, for headers that have nothing to do with gRPC.
#ifndef TERSE_PROTO_KEEPALIVE_H_
#define TERSE_PROTO_KEEPALIVE_H_

#include <cstddef>

namespace terse {

// Seconds of silence on a connection before its end sends a ping, unless `--keepalive` says otherwise.
inline constexpr double kDefaultKeepaliveSeconds = 300;
// The same of a client that has several addresses: another coordinator may serve the runs, and only silence tells that
// the first one does not any more. Every coordinator permits pings that are so frequent.
inline constexpr double kSeveralKeepaliveSeconds = 5;
// The least that `--keepalive` may say.
inline constexpr double kLeastKeepaliveSeconds = 1;

// What a client's `--keepalive` is by itself.
inline double DefaultKeepaliveSeconds(size_t addresses) {
  return addresses > 1 ? kSeveralKeepaliveSeconds : kDefaultKeepaliveSeconds;
}

}  // namespace terse

#endif  // TERSE_PROTO_KEEPALIVE_H_
