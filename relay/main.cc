// terse-relay: between a coordinator and its clients. It needs no LibTorch.
#include "core/lock_order.h"
#include "relay/relay.h"

int main(int argc, char** argv) {
  terse::RelayOptions options;
  if (const int code = terse::ParseRelayOptions(argc, argv, &options); code >= 0) return code;
  terse::SkipLockOrderChecks();
  return terse::RunRelay(options);
}
