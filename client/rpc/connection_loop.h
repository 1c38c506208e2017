// A client's connections, one after the other: reconnection with jittered back-off, and what happens when its disk is
// in trouble.
#ifndef TERSE_CLIENT_RPC_CONNECTION_LOOP_H_
#define TERSE_CLIENT_RPC_CONNECTION_LOOP_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/log/log.h"
#include "core/trainer.h"
#include "security/transport_options.h"

namespace terse {

class CoordinatorLink;
class FileSystem;

// Where a trainer of the user's own comes from; at most one of the first three is set.
struct TrainerOptions {
  std::string command;    // starts it
  std::string socket;     // path at which it connects
  int inherited = -1;     // descriptor of a socket that is connected to it; the daemon ends with it
  double seconds = 3600;  // that a round's training, or one's start, may last

  bool any() const { return !command.empty() || !socket.empty() || inherited >= 0; }
};

struct DaemonOptions {
  // host:port; with several, the others may serve the runs when the first does not (AddressRing).
  std::vector<std::string> coordinators;
  std::string name;
  std::string state_directory;
  FileSystem* files = nullptr;  // that `state_directory` is among, which outlive the client; null: the machine's
  std::string data_directory;   // empty: the embedded data set
  std::string device = "auto";
  int threads = 1;
  double first_backoff_seconds = 0.5;  // from a lost connection to the next attempt; doubles while attempts fail
  LogSettings log;
  std::vector<std::string> allow_models;  // SHA-256 of the TorchScript files that may be trained
  std::string run;                        // to join; empty: the only one that the coordinator has
  bool reset_state = false;               // a damaged state directory is emptied and started afresh
  double keepalive_seconds = 0;           // 0: as many as the number of addresses asks for (Silence)
  TransportOptions transport;
  TrainerOptions trainer;
  bool sandbox = false;              // trainers work in processes of their own (sandbox/)
  int64_t sandbox_memory_mb = 4096;  // and have these limits
  double sandbox_seconds = 600;
  std::string sandbox_trainer;            // of such a process: whether its network namespace is its own; else empty
  std::vector<std::string> command_line;  // of this process, with its name: what starts such a process
  std::string metrics;                    // host:port where this client's metrics are served; empty: nowhere
  std::string invitation;  // file with which a client without a certificate gets one; empty: it has one, or needs none
  // Asked before each connection, which waits until it is true; empty: it is.
  std::function<bool()> may_connect;
  // Makes what stands between the session and each of its connections, which outlives it; may be empty: nothing.
  std::function<std::unique_ptr<CoordinatorLink>(CoordinatorLink* connection)> through;
};

// Serves the coordinator until the run is finished: OK, or CANCELLED soon after `stop` has become true. A disk that is
// full or fails for now is waited for. Any other status is final: those of ClientState::Open, ClientSession::Run and
// HttpServer::Start.
// Leaves a state that is whole. Several clients of one process may be served at once, each in a thread and with names
// and state directories of their own.
absl::Status ServeCoordinator(const DaemonOptions& options, TrainerFactory make_trainer, const std::atomic<bool>* stop);

}  // namespace terse

#endif  // TERSE_CLIENT_RPC_CONNECTION_LOOP_H_
