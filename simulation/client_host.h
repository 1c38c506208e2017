// Many clients of one run in one process: real sessions, which work one at a time and rest meanwhile.
#ifndef TERSE_SIMULATION_CLIENT_HOST_H_
#define TERSE_SIMULATION_CLIENT_HOST_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "client/session.h"
#include "client/shared_models.h"
#include "core/clock.h"
#include "core/session_messages.h"
#include "core/trainer.h"
#include "simulation/shared_downloads.h"
#include "simulation/stream_link.h"
#include "storage/client_state.h"

namespace terse {

// The name of a simulated client: "client-000017". Names sort as their numbers.
std::string SimulatedClientName(int64_t number);

// Clients `first` to `first + count - 1` of a run. Each has a session, a state directory and a connection of its own. A
// client that is not at work holds a few KB: its residual and its trainer's state lie in its directory, and the weights
// of a version are the process's. All work is done in the calling thread. Not thread-safe.
class ClientHost {
 public:
  struct Options {
    // host:port of each who serves a part of the fleet, as large as the others': the coordinator, or the relays.
    std::vector<std::string> coordinators;
    int64_t fleet = 1;  // clients of the run, in all processes
    std::string run;
    std::string directory;  // of the clients' states, one folder each
    int64_t first = 0;
    int64_t count = 1;
    TrainerFactory make_trainer;
    std::vector<std::string> allow_models;        // ClientSession::Options
    const std::atomic<bool>* stopping = nullptr;  // ends every wait with CANCELLED; must outlive the host
  };
  explicit ClientHost(Options options);
  // Ends the connections that are left.
  ~ClientHost();
  ClientHost(const ClientHost&) = delete;
  ClientHost& operator=(const ClientHost&) = delete;

  // Brings the clients in, one after the other, so that their order in the run is that of their numbers; `on_joined` is
  // called after each. Returns the statuses of ClientState::Open and ClientSession::Run, with the client's name.
  absl::Status Join(const std::function<void()>& on_joined);
  // Works until the run is over for every client. Statuses likewise; a connection that is lost is UNAVAILABLE.
  absl::Status Serve();

 private:
  struct Client {
    std::unique_ptr<ClientState> state;
    std::unique_ptr<StreamLink> link;
    std::unique_ptr<ClientSession> session;
    bool over = false;  // the run, for it
  };
  struct Arrival {
    int64_t client = 0;  // its place here
    absl::StatusOr<FromServer> message;
  };

  // Where the client of that number finds its coordinator or relay.
  const std::string& CoordinatorOf(int64_t number) const;
  absl::Status Begin(int64_t place);
  // Waits for the next message of any client, and lets its session work on it.
  absl::Status HandleNext();
  absl::Status Handle(Arrival arrival);
  absl::StatusOr<Arrival> Await() ABSL_LOCKS_EXCLUDED(mutex_);
  bool HasArrival() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return !arrivals_.empty(); }

  const Options options_;
  SystemClock clock_;
  SharedModels models_;
  SharedDownloads downloads_;
  std::vector<Client> clients_;
  int64_t links_ = 0;  // whose streams have not ended
  absl::Mutex mutex_;
  std::deque<Arrival> arrivals_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace terse

#endif  // TERSE_SIMULATION_CLIENT_HOST_H_
