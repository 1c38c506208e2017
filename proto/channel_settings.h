// Transport settings that both ends share: message limits, keepalive for long local training, no compression by gRPC.
#ifndef TERSE_PROTO_CHANNEL_SETTINGS_H_
#define TERSE_PROTO_CHANNEL_SETTINGS_H_

#include "grpcpp/grpcpp.h"

namespace terse {

// For a client's channel to the coordinator. Keepalive (gRPC guide "Keepalive"): a ping after 5 minutes of silence
// keeps NAT entries alive through long local training; 30 s without an answer end the connection. BDP probes are off:
// they would cost pings up the thin link for bandwidth that sparse updates never use.
grpc::ChannelArguments FleetChannelArguments();

// The matching settings of the coordinator's port; it tolerates a ping a minute and sends its own.
void SetFleetServerOptions(grpc::ServerBuilder* builder);

}  // namespace terse

#endif  // TERSE_PROTO_CHANNEL_SETTINGS_H_
