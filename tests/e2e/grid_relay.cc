// terse-relay, which dies with the test that started it.
#include "relay/relay.h"
#include "tests/e2e/grid_process.h"

int main(int argc, char** argv) {
  terse::BelongToParent();
  terse::RelayOptions options;
  if (const int code = terse::ParseRelayOptions(argc, argv, &options); code >= 0) return code;
  return terse::RunRelay(options);
}
