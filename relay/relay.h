// The relay process (docs/SCALE.md): a client of the coordinator above and a coordinator of its own clients.
#ifndef TERSE_RELAY_RELAY_H_
#define TERSE_RELAY_RELAY_H_

#include <atomic>
#include <string>
#include <thread>
#include <utility>

#include "client/rpc/connection_loop.h"
#include "coordinator/rpc/relay_half.h"
#include "coordinator/rpc/server.h"
#include "relay/cohort_desk.h"
#include "storage/run_stores.h"

namespace terse {

struct RelayOptions {
  CoordinatorOptions below;  // how clients are served; `relay` is not read
  DaemonOptions above;  // the connection to the coordinator, or relay, above; where its state is follows from `below`
  RelayRounds rounds;
};

// Parses argv. Returns an exit code when the process should end at once (--help, a usage error), else -1.
int ParseRelayOptions(int argc, char** argv, RelayOptions* options);

// The client half of a relay's process, in a thread of its own.
class Relay : public RelayHalf {
 public:
  explicit Relay(RelayOptions options) : options_(std::move(options)), desk_(&stop_) {}
  ~Relay() override { End(); }

  const std::string& name() const override { return options_.above.name; }
  // Reads which of the relay's rounds are part of its own updates. Statuses of RunStores::OpenUpstream and
  // ClientState::Open.
  absl::Status ReadState(RunStores& runs) override;
  RelayHosting hosting() override { return {&desk_, options_.rounds}; }
  void Begin(RunRegistry* runs, CoordinatorEnding* ending) override;
  void End() override;

 private:
  absl::Status Serve();
  // Whether the state is there, and still this process's. Another one that has taken it over has the relay's place
  // above.
  bool HasState() const;

  const RelayOptions options_;
  std::atomic<bool> stop_{false};
  CohortDesk desk_;
  UpstreamFiles state_;
  std::thread thread_;
};

// Serves until an operator shuts the process down, SIGINT or SIGTERM, or one of its halves cannot go on. Returns the
// exit code: 0 in order, 1 on a failure, which is on stderr in one line.
int RunRelay(RelayOptions options);

}  // namespace terse

#endif  // TERSE_RELAY_RELAY_H_
