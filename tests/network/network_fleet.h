// A fleet of real processes whose network misbehaves, and the books at its end: what was sealed is in the model or in
// the residual, bit for bit, whatever happened in between.
#ifndef TERSE_TESTS_NETWORK_NETWORK_FLEET_H_
#define TERSE_TESTS_NETWORK_NETWORK_FLEET_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/layout.h"
#include "core/run_config.h"
#include "tests/e2e/fleet_processes.h"
#include "tests/network/tcp_proxy.h"
#include "tests/testing/wait_until.h"

namespace terse {

struct FleetShape {
  int clients = 3;
  int quorum = 0;  // 0: all clients
  double deadline_seconds = 600;
  double grace_seconds = 0;
  CodecSpec codec = {"sbc", 0.02, "bf16"};  // on a dyadic grid, where float additions are exact
  double keepalive_seconds = 0;             // of both ends; 0: as they come
  double reconnect_after = 0.05;            // seconds to a client's next attempt
  bool wide = false;                        // updates of several chunks: WideGridLayout
};

// One run without an end, of the grid trainer, with a proxy between the clients and the coordinator.
class NetworkFleet {
 public:
  // Starts the coordinator at `place`, and the proxy with `plan` unless the place has a network of its own.
  explicit NetworkFleet(const FleetShape& shape, TcpProxy::Plan plan = nullptr, const Place& place = {},
                        bool record = false);

  TcpProxy& proxy() { return *proxy_; }
  FleetProcesses& processes() { return processes_; }
  // Starts the client, which connects through the proxy unless the place has an address.
  void StartClient(int index, Place place = {});
  void StartClients();
  // Stops the client in good order: it keeps its model.
  void StopClient(int index);

  int64_t Rounds() const;
  // Whether so many more rounds commit.
  bool Commits(int64_t more) const;
  // Clients whose log has the text.
  int ClientsThatSaid(const std::string& text);
  // The last lines of every process, for a failure.
  std::string Logs();

  // Stops everybody in order, checks invariants I1, I2 and I3 on what is stored and that no residual was lost, and
  // prints one line of figures with `note` at its end.
  void FinishAndCheck(const std::string& note = "");

 private:
  const Layout& layout() const;
  // Returns the place, on the shape's grid.
  Place OnGrid(Place place) const;
  void Stop();
  void CheckBooks();

  const FleetShape shape_;
  const absl::Time begin_;
  FleetProcesses processes_;
  std::unique_ptr<TcpProxy> proxy_;
};

}  // namespace terse

#endif  // TERSE_TESTS_NETWORK_NETWORK_FLEET_H_
