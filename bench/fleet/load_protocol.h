// A client's side of the session protocol (docs/PROTOCOL.md), with updates that were prepared. No gRPC in here.
#ifndef TERSE_BENCH_FLEET_LOAD_PROTOCOL_H_
#define TERSE_BENCH_FLEET_LOAD_PROTOCOL_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "bench/fleet/shared_model.h"
#include "bench/fleet/update_pool.h"
#include "core/session_messages.h"
#include "terse/v1/fleet.pb.h"

namespace terse {

// The counts of all clients of a process.
struct LoadTally {
  std::atomic<int64_t> applied{0};  // updates by their verdicts
  std::atomic<int64_t> not_applied{0};
  std::atomic<int64_t> resets{0};
  std::atomic<int64_t> downloads{0};    // of checkpoints
  std::atomic<int64_t> connections{0};  // that clients began
  std::atomic<int64_t> refusals{0};     // that advise to come back
};

// The things that all clients of a process share. All must outlive them.
struct LoadShare {
  Id128 layout_hash;
  SharedModel* model = nullptr;
  const UpdatePool* pool = nullptr;
  LoadTally* tally = nullptr;
  std::function<void(int64_t version)> on_version;  // a client has all of a version's message; thread-safe
};

// Over any number of connections. Its state is under 300 bytes: the model is the process's, and of a downstream message
// all clients but the leader count the bytes alone. Not thread-safe.
class LoadProtocol {
 public:
  // `leads`: this client moves the process's model. `share` must outlive it.
  LoadProtocol(const LoadShare* share, std::string name, bool leads);

  // Begins a connection.
  v1::ClientMessage CheckIn();

  struct Reaction {
    std::vector<v1::ClientMessage> say;
    bool welcomed = false;
    bool download = false;  // the newest checkpoint is to be downloaded, and given to OnCheckpoint
    bool over = false;      // the run is finished
  };
  // UNAVAILABLE when coming back can help; other errors are final.
  absl::StatusOr<Reaction> On(const v1::ServerMessage& message);
  // Returns the answer to a checkpoint that was downloaded. DATA_LOSS when it does not fit the run.
  absl::StatusOr<std::vector<v1::ClientMessage>> OnCheckpoint(absl::string_view bytes);
  // Returns what is to be said when the checkpoint was replaced before it was downloaded.
  std::vector<v1::ClientMessage> AskAgain();

  const std::string& name() const { return name_; }
  Id128 lineage() const { return lineage_; }
  int64_t checkpoint_version() const { return checkpoint_version_; }  // to download

 private:
  struct Pending {
    Id128 update_id;
    int64_t round = 0;
    const std::string* message = nullptr;  // in the pool
  };

  Reaction OnWelcome(const Welcome& welcome);
  absl::Status OnDownstream(const v1::DownstreamChunk& chunk);
  absl::Status OnWholeDelta();
  void OnVerdict(const Verdict& verdict);
  void OnAssignment(const Assignment& assignment, Reaction* reaction);
  void SayReady(std::vector<v1::ClientMessage>* say);
  void SayUpdate(std::vector<v1::ClientMessage>* say);

  const LoadShare* const share_;
  const std::string name_;
  const bool leads_;
  const Id128 process_;
  uint32_t connections_ = 0;
  bool said_device_ = false;     // on this connection
  bool said_norm_code_ = false;  // likewise
  Id128 lineage_;
  int64_t client_index_ = 0;
  Id128 prev_applied_;
  absl::optional<Pending> pending_;
  absl::optional<HeldVersion> held_;
  int64_t checkpoint_version_ = 0;
  // The downstream message that arrives.
  HeldVersion next_;
  int64_t size_ = 0;
  int64_t arrived_ = 0;
  std::string message_;  // the leader's
};

}  // namespace terse

#endif  // TERSE_BENCH_FLEET_LOAD_PROTOCOL_H_
