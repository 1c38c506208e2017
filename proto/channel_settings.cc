#include "proto/channel_settings.h"

#include <algorithm>

#include "proto/session_wire.h"

namespace terse {
namespace {

constexpr double kMostTimeoutSeconds = 30;
// Pings that are late arrive closer to the next one, hence the half.
constexpr double kMostPingIntervalSeconds = kSeveralKeepaliveSeconds / 2;

int Milliseconds(double seconds) { return static_cast<int>(seconds * 1000); }

// Calls `set` with each argument of the keepalive that both ends share.
template <typename Set>
void SetKeepalive(double seconds, Set set) {
  set(GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(seconds));
  set(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Milliseconds(std::min(seconds, kMostTimeoutSeconds)));
  // Without data in between, gRPC would by itself not ping more often than every five minutes.
  set(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  set(GRPC_ARG_HTTP2_MIN_SENT_PING_INTERVAL_WITHOUT_DATA_MS, Milliseconds(seconds));
  set(GRPC_ARG_HTTP2_BDP_PROBE, 0);
}

}  // namespace

grpc::ChannelArguments FleetChannelArguments(double keepalive_seconds) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetMaxSendMessageSize(kMaxMessageBytes);
  arguments.SetCompressionAlgorithm(GRPC_COMPRESS_NONE);
  SetKeepalive(keepalive_seconds, [&](const char* name, int value) { arguments.SetInt(name, value); });
  // The session engine reconnects by itself, and each attempt should be a fresh connection.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  // By itself gRPC gives an attempt 20 s.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, Milliseconds(kConnectTimeoutSeconds));
  return arguments;
}

void SetFleetServerOptions(grpc::ServerBuilder* builder, double keepalive_seconds) {
  builder->SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder->SetMaxSendMessageSize(kMaxMessageBytes);
  builder->SetDefaultCompressionAlgorithm(GRPC_COMPRESS_NONE);
  SetKeepalive(keepalive_seconds, [&](const char* name, int value) { builder->AddChannelArgument(name, value); });
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                              Milliseconds(std::min(keepalive_seconds / 2, kMostPingIntervalSeconds)));
  // Two coordinators on one port would share its clients between them.
  builder->AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
}

}  // namespace terse
