// Ranges of `--keepalive`, for headers that have nothing to do with gRPC.
#ifndef TERSE_PROTO_KEEPALIVE_H_
#define TERSE_PROTO_KEEPALIVE_H_

namespace terse {

// Seconds of silence on a connection before its end sends a ping, unless `--keepalive` says otherwise.
inline constexpr double kDefaultKeepaliveSeconds = 300;
// The least that `--keepalive` may say.
inline constexpr double kLeastKeepaliveSeconds = 1;

}  // namespace terse

#endif  // TERSE_PROTO_KEEPALIVE_H_
