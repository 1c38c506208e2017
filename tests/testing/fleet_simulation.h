// A whole fleet in one process: the real Engine on a real RunStore, and real ClientSessions on real ClientStates,
// joined by MemoryLinks. A scheduler (the test) moves every message, so a schedule of faults repeats exactly.
#ifndef TERSE_TESTS_TESTING_FLEET_SIMULATION_H_
#define TERSE_TESTS_TESTING_FLEET_SIMULATION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "client/session.h"
#include "compression/codec.h"
#include "coordinator/engine.h"
#include "core/random.h"
#include "tests/testing/conservation.h"
#include "tests/testing/failing_store.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/grid_trainer.h"
#include "tests/testing/inline_background.h"
#include "tests/testing/memory_link.h"
#include "tests/testing/temp_directory.h"

namespace terse {

// A run of `clients` grid clients whose arithmetic is exact: SBC with bfloat16 means, forwarded downstream.
RunConfig GridRunConfig(int64_t clients, int64_t rounds);

// Used from one thread; clients run in threads of their own, one at a time, while a call of this class waits for them.
class FleetSimulation {
 public:
  FleetSimulation(RunConfig config, int64_t clients);
  ~FleetSimulation();

  // Opens the store (and creates the run the first time) and resumes the engine.
  absl::Status StartCoordinator();
  // The process is gone: every connection breaks, nothing is said or written any more.
  void KillCoordinator();
  bool coordinator_up() const { return engine_ != nullptr; }
  Engine* engine() { return engine_.get(); }
  // Valid while the coordinator is up.
  FailingStore* store() { return store_.get(); }
  InlineBackground* background() { return background_.get(); }
  FakeClock* clock() { return &clock_; }
  const Codec& codec() const { return *codec_; }
  const RunConfig& config() const { return config_; }
  std::string store_directory() const { return directory_.path() + "/coordinator"; }
  // Handles an event and the background work that follows; an error kills the coordinator.
  absl::Status Handle(Event event);
  // While held, evaluations and checkpoints wait; the next event afterwards does them.
  void hold_background(bool hold) { background_held_ = hold; }
  // Moves the clock past the phase's deadline.
  absl::Status PassDeadline();

  // Opens the state directory of client `i`, whose name is "client-i".
  absl::Status StartClient(int64_t i);
  void KillClient(int64_t i);
  bool client_up(int64_t i) const { return clients_[i].session != nullptr; }
  ClientState* state(int64_t i) { return clients_[i].state.get(); }
  ClientSession* session(int64_t i) { return clients_[i].session.get(); }
  std::string client_directory(int64_t i) const;
  std::string client_name(int64_t i) const;
  int64_t size() const { return static_cast<int64_t>(clients_.size()); }
  // The client works on: false makes it stop between two local steps.
  void set_keep_going(int64_t i, bool value) { clients_[i].keep_going = value; }
  // Size of every checkpoint file.
  int64_t checkpoint_bytes() const;
  // Copies the state directory aside; puts the copy back (the client must be down for both).
  void Snapshot(int64_t i);
  bool Rollback(int64_t i);
  // From where on client i's books must balance.
  const Baseline& baseline(int64_t i) const { return clients_[i].baseline; }
  bool rolled_back(int64_t i) const { return clients_[i].rolled_back; }

  absl::Status Connect(int64_t i);
  bool connected(int64_t i) const { return clients_[i].link != nullptr; }
  MemoryLink* link(int64_t i) { return clients_[i].link.get(); }
  std::shared_ptr<MemoryLink> shared_link(int64_t i) { return clients_[i].link; }
  // How the client's last session ended; OK while none has.
  const absl::Status& last_result(int64_t i) const { return clients_[i].result; }
  // Breaks the connection; the coordinator hears of it after the first `up_survivors` messages that were under way.
  void Cut(int64_t i, int64_t up_survivors);

  // One message of one connection. False when there was nothing to move.
  absl::StatusOr<bool> DeliverUp(int64_t i);
  absl::StatusOr<bool> DeliverDown(int64_t i);
  // One message, or the end, of a broken connection.
  absl::StatusOr<bool> DeliverFromBroken();

  // Delivers in a fixed order (or one drawn from `random`) until nothing moves; at most `steps` deliveries.
  absl::Status Settle(Random* random = nullptr, int64_t steps = 100'000);
  absl::StatusOr<bool> DeliverAny(Random* random);

  // Starts everything and connects everyone.
  absl::Status StartAll();
  // Messages that were delivered to client i, oldest first.
  const std::vector<FromServer>& heard(int64_t i) const { return clients_[i].heard; }

 private:
  struct Client {
    std::unique_ptr<ClientState> state;
    std::unique_ptr<ClientSession> session;
    std::shared_ptr<MemoryLink> link;
    SessionId session_id = 0;
    std::thread thread;
    absl::Status result;
    bool keep_going = true;
    bool rolled_back = false;
    Baseline baseline;
    absl::optional<Baseline> snapshot;
    std::vector<FromServer> heard;
  };
  struct Broken {
    std::shared_ptr<MemoryLink> link;
    SessionId session_id;
  };

  absl::Status Deliver(SessionId id, MemoryLink* link, FromClient message);
  absl::StatusOr<std::string> Download(Id128 lineage, int64_t version);
  // Takes an ended session apart.
  void Reap(int64_t i);
  // Remembers a RESET.
  void Observe(int64_t i, const FromServer& message);

  const RunConfig config_;
  TempDirectory directory_;
  FakeClock clock_;
  GridEvaluator evaluator_;
  std::unique_ptr<const Codec> codec_;
  std::unique_ptr<FailingStore> store_;
  std::unique_ptr<InlineBackground> background_;
  std::unique_ptr<Engine> engine_;
  bool background_held_ = false;
  SessionId next_session_ = 1;
  std::vector<Client> clients_;
  std::vector<Broken> broken_;
};

}  // namespace terse

#endif  // TERSE_TESTS_TESTING_FLEET_SIMULATION_H_
