// A whole fleet in one process: the real Engine on a real RunStore, and real ClientSessions on real ClientStates, each
// process on a MemoryDisk of its own, joined by MemoryLinks. A scheduler (the test) moves every message and the clock,
// so a schedule of faults repeats exactly.
#ifndef TERSE_TESTS_TESTING_FLEET_SIMULATION_H_
#define TERSE_TESTS_TESTING_FLEET_SIMULATION_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "client/session.h"
#include "compression/codec.h"
#include "coordinator/engine.h"
#include "core/fault.h"
#include "core/random.h"
#include "storage/update_spool.h"
#include "tests/testing/conservation.h"
#include "tests/testing/failing_store.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/fiber.h"
#include "tests/testing/grid_trainer.h"
#include "tests/testing/inline_background.h"
#include "tests/testing/memory_disk.h"
#include "tests/testing/memory_link.h"

namespace terse {

// A run of `clients` grid clients whose arithmetic is exact: SBC with bfloat16 means, forwarded downstream.
RunConfig GridRunConfig(int64_t clients, int64_t rounds);

// The processes of a fleet are its clients, from 0, and this one.
inline constexpr int64_t kCoordinator = -1;

// Watches the processes of a fleet, and hurts them. Called from within the process that it names.
class FleetFaults {
 public:
  virtual ~FleetFaults() = default;
  // An error makes the enclosing function return it; after FleetSimulation::Die whatever it does next has no effect.
  virtual absl::Status OnFailpoint(int64_t process, absl::string_view name) { return absl::OkStatus(); }
  // As DiskFault.
  virtual int OnDisk(int64_t process, DiskOp op, const std::string& path) { return 0; }
  // How many of the coordinator's last messages still reach a client when the coordinator dies.
  virtual int64_t LastWords(int64_t client) { return 0; }
  // Hears of an event, for a trace: `what` names it, and `detail` tells two of a kind apart.
  virtual void OnEvent(absl::string_view what, int64_t process, uint64_t detail) {}
};

// Used from one thread. Clients run as fibers, one at a time, while a call of this class waits for them.
class FleetSimulation {
 public:
  // `faults` may be nullptr; failpoints reach it only in builds with TERSE_FAULTS.
  FleetSimulation(RunConfig config, int64_t clients, FleetFaults* faults = nullptr, uint64_t seed = 0);
  ~FleetSimulation();
  FleetSimulation(const FleetSimulation&) = delete;
  FleetSimulation& operator=(const FleetSimulation&) = delete;

  // Opens the store (and creates the run the first time) and resumes the engine. After an error the coordinator is
  // down.
  absl::Status StartCoordinator();
  // The process is gone: every connection breaks, nothing is said or written any more.
  void KillCoordinator();
  // It ends in order, as after SIGTERM.
  absl::Status StopCoordinator();
  bool coordinator_up() const { return engine_ != nullptr; }
  Engine* engine() { return engine_.get(); }
  // Valid while the coordinator is up.
  FailingStore* store() { return store_.get(); }
  InlineBackground* background() { return background_.get(); }
  GridEvaluator* evaluator() { return &evaluator_; }
  FakeClock* clock() { return &clock_; }
  const Codec& codec() const { return *codec_; }
  // That came packed, and were read.
  int64_t updates_packed() const { return updates_packed_; }
  // Null in a run whose updates are not packed.
  UpdateHistories* histories() const { return histories_.get(); }
  // Room in memory for so many clients' histories instead of the product's. Before the coordinator starts.
  void set_history_room(int64_t clients);
  int64_t history_room() const { return history_room_; }  // 0: the product's
  // Instead of the product's. Before the coordinator starts.
  void set_catch_up_bytes(int64_t bytes) { catch_up_bytes_ = bytes; }
  // Most of the log to one client. Before the coordinator starts.
  void set_most_log_bytes(int64_t bytes) { most_log_bytes_ = bytes; }
  // The run is a relay's, which begins with GridInitialWeights as `first_version`; `config` is RelayConfig's. Before
  // the coordinator starts.
  void set_relay(RelaySetup setup, int64_t first_version) {
    relay_ = std::move(setup);
    first_version_ = first_version;
  }
  UpdateSpool& spool() { return spool_; }
  DownstreamCodecs downstream_codecs() const { return {*codec_, downstream_codec_.get()}; }
  const RunConfig& config() const { return config_; }
  // On disk(kCoordinator).
  std::string store_directory() const { return "/coordinator"; }
  // Handles an event and the background work that follows. An error ends the coordinator: trouble with the disk in
  // order, as the server does, and any other at once.
  absl::Status Handle(Event event);
  // For a relay, as Engine::ReplaceModel.
  absl::Status ReplaceModel(int64_t version, std::vector<float> weights);
  // Clients that start from now on make version 0 by themselves.
  void set_clients_start(bool value) { clients_start_ = value; }
  // While held, evaluations and checkpoints wait; the next event afterwards does them.
  void hold_background(bool hold) { background_held_ = hold; }
  // Moves the clock past the phase's deadline.
  absl::Status PassDeadline();
  // Moves the clock to when the engine next wants to hear of it; false when it wants nothing. INTERNAL when the engine
  // wants to hear at once of a time that had passed when it heard of it: such a timer fires for ever.
  absl::StatusOr<bool> PassNextDeadline();

  // Opens the state directory of client `i`, whose name is "client-i".
  absl::Status StartClient(int64_t i);
  void KillClient(int64_t i);
  // It ends in order.
  absl::Status StopClient(int64_t i);
  bool client_up(int64_t i) const { return clients_[i]->session != nullptr; }
  ClientState* state(int64_t i) { return clients_[i]->state.get(); }
  ClientSession* session(int64_t i) { return clients_[i]->session.get(); }
  std::string client_directory(int64_t i) const { return "/client"; }
  std::string client_name(int64_t i) const;
  int64_t size() const { return static_cast<int64_t>(clients_.size()); }
  // The client works on: false makes it stop between two local steps.
  void set_keep_going(int64_t i, bool value) { clients_[i]->keep_going = value; }
  // Size of every checkpoint file.
  int64_t checkpoint_bytes() const;
  // Copies the client's disk aside; puts the copy back (the client must be down for both).
  void Snapshot(int64_t i);
  bool Rollback(int64_t i);
  // From where on client i's books must balance: {0, 0}, or its last RESET.
  const Baseline& baseline(int64_t i) const { return clients_[i]->baseline; }
  bool rolled_back(int64_t i) const { return clients_[i]->rolled_back; }

  // A client's or kCoordinator's.
  MemoryDisk& disk(int64_t process) { return process == kCoordinator ? disk_ : clients_[process]->disk; }
  // From within FleetFaults: the process is gone at this point. Its disk refuses it and its connections are mute; the
  // rest follows when control is back.
  void Die(int64_t process);

  // The coordinator accepts the connection with its first message, so one that broke before may be the later one to it.
  void Connect(int64_t i);
  // Connects every client that is not.
  void ConnectAll();
  bool connected(int64_t i) const { return clients_[i]->link != nullptr; }
  MemoryLink* link(int64_t i) { return clients_[i]->link.get(); }
  std::shared_ptr<MemoryLink> shared_link(int64_t i) { return clients_[i]->link; }
  // How the client's last session ended; OK while none has.
  const absl::Status& last_result(int64_t i) const { return clients_[i]->result; }
  // Breaks the connection; the coordinator hears of it after the first `up_survivors` messages that were under way.
  void Cut(int64_t i, int64_t up_survivors, int64_t down_survivors = 0);

  // One message of one connection. False when there was nothing to move.
  absl::StatusOr<bool> DeliverUp(int64_t i);
  absl::StatusOr<bool> DeliverDown(int64_t i);
  // One message, or the end, of a broken connection: the oldest, or one drawn from `random`.
  absl::StatusOr<bool> DeliverFromBroken(Random* random = nullptr);

  // Delivers in a fixed order (or one drawn from `random`) until nothing moves; at most `steps` deliveries.
  absl::Status Settle(Random* random = nullptr, int64_t steps = 100'000);
  absl::StatusOr<bool> DeliverAny(Random* random);

  // Starts everything and connects everyone.
  absl::Status StartAll();
  // Messages that were delivered to client i, oldest first.
  const std::vector<FromServer>& heard(int64_t i) const { return clients_[i]->heard; }

  // Lets `call` use a process's store or state without faults.
  template <typename Call>
  auto Quietly(Call call) -> decltype(call()) {
    const Acting nobody(this, kNobody);
    return call();
  }

 private:
  static constexpr int64_t kNobody = -2;

  struct Client {
    explicit Client(uint64_t seed) : disk(seed) {}
    MemoryDisk disk;
    std::unique_ptr<ClientState> state;
    std::unique_ptr<ClientSession> session;
    std::shared_ptr<MemoryLink> link;
    SessionId session_id = 0;  // 0 until the coordinator accepted the connection
    uint64_t starts = 0;
    Fiber fiber;
    absl::Status result;
    bool keep_going = true;
    bool rolled_back = false;
    Baseline baseline;
    absl::optional<Baseline> snapshot_baseline;
    std::shared_ptr<const MemoryDirectory> snapshot;
    std::map<Id128, int64_t> applied_at;  // the version that each of its updates made
    std::vector<FromServer> heard;
  };
  struct Broken {
    std::shared_ptr<MemoryLink> link;
    SessionId session_id;
  };
  // Says which process's code runs, for as long as the object lives.
  class Acting {
   public:
    Acting(FleetSimulation* fleet, int64_t process) : fleet_(fleet), before_(fleet->acting_) {
      fleet_->acting_ = process;
    }
    ~Acting() { fleet_->acting_ = before_; }

   private:
    FleetSimulation* const fleet_;
    const int64_t before_;
  };
#ifdef TERSE_FAULTS
  class Hook;
  std::unique_ptr<FailpointHook> hook_;
#endif

  absl::Status OpenCoordinator();
  absl::Status HandleAll(Event event);
  // Ends the coordinator with what is in memory; `killed` as by SIGKILL.
  void EndCoordinator(bool killed);
  absl::Status Accept(const std::shared_ptr<MemoryLink>& link, SessionId* session);
  absl::Status Deliver(SessionId id, MemoryLink* link, FromClient message);
  absl::StatusOr<std::string> Download(Id128 lineage, int64_t version);
  // Lets client i run until it waits or its session ends.
  void Continue(int64_t i);
  // Takes an ended session apart, and a dead process.
  void Reap(int64_t i);
  // Remembers which version each client's last update is in.
  void NoteApplied();
  // Remembers a RESET.
  void NoteBaseline(int64_t i);
  void Tell(absl::string_view what, int64_t process, uint64_t detail = 0) {
    if (faults_ != nullptr) faults_->OnEvent(what, process, detail);
  }

  const RunConfig config_;
  FleetFaults* const faults_;
  int64_t acting_ = kNobody;
  FakeClock clock_;
  MemoryDisk disk_;
  GridEvaluator evaluator_;
  std::unique_ptr<const Codec> codec_;
  std::unique_ptr<const Codec> downstream_codec_;
  std::unique_ptr<UpdateHistories> histories_;
  // Real files, because they are mapped. Most updates go there.
  UpdateSpool spool_{std::filesystem::temp_directory_path().string(), {/*memory_bytes=*/100, /*file_bytes=*/4096}};
  int64_t history_room_ = 0;
  int64_t catch_up_bytes_ = kCatchUpBytes;
  int64_t most_log_bytes_ = kAnyLogBytes;
  absl::optional<RelaySetup> relay_;
  int64_t first_version_ = 0;
  std::unique_ptr<FailingStore> store_;
  std::unique_ptr<InlineBackground> background_;
  std::unique_ptr<Engine> engine_;
  bool background_held_ = false;
  bool clients_start_ = false;
  int64_t noted_version_ = -1;
  SessionId next_session_ = 1;
  std::vector<std::unique_ptr<Client>> clients_;
  std::vector<Broken> broken_;
  int64_t updates_packed_ = 0;
};

}  // namespace terse

#endif  // TERSE_TESTS_TESTING_FLEET_SIMULATION_H_
