// Transport settings that both ends share: message limits, keepalive for long local training, no compression by gRPC.
#ifndef TERSE_PROTO_CHANNEL_SETTINGS_H_
#define TERSE_PROTO_CHANNEL_SETTINGS_H_

#include "grpcpp/grpcpp.h"
#include "proto/keepalive.h"

namespace terse {

// The most time that making a connection may take. With 10 s each way TCP and HTTP/2 need 20.
inline constexpr int kConnectTimeoutSeconds = 30;

// Returns the arguments of a client's channel to the coordinator. Keepalive (gRPC guide "Keepalive"): a ping after
// `keepalive_seconds` of silence keeps NAT entries alive through long local training; without an answer for as long
// again, at most 30 s, the connection ends. BDP probes are off: they would cost pings up the thin link for bandwidth
// that sparse updates never use.
grpc::ChannelArguments FleetChannelArguments(double keepalive_seconds = kDefaultKeepaliveSeconds);

// The matching settings of the coordinator's port, which sends pings of its own. A client that pings more often than
// every half of `keepalive_seconds`, and more often than every half of kSeveralKeepaliveSeconds, is disconnected: a
// fleet that needs shorter intervals says so on both sides.
void SetFleetServerOptions(grpc::ServerBuilder* builder, double keepalive_seconds = kDefaultKeepaliveSeconds);

}  // namespace terse

#endif  // TERSE_PROTO_CHANNEL_SETTINGS_H_
