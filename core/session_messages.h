// The messages that a client and the coordinator exchange, as the engines see it: no gRPC, no protobuf, no chunks.
// proto/session_wire turns these into the wire messages of proto/terse/v1/fleet.proto, which documents the fields.
#ifndef TERSE_CORE_SESSION_MESSAGES_H_
#define TERSE_CORE_SESSION_MESSAGES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "core/cohort.h"
#include "core/held_bytes.h"
#include "core/id128.h"
#include "core/layout.h"
#include "core/named_metrics.h"
#include "core/run_config.h"

namespace terse {

// The protocol version that this build speaks. Version 3 brought sparse steps (compression/sparse_step.h), which a
// client must read in every run whose downstream is `auto`; version 4 data.shards, by which a client cuts its data;
// version 5 relays; version 6 forwarded updates whose silence is filled in (compression/downstream.h).
inline constexpr uint32_t kProtocolVersion = 6;

enum class Outcome { kApplied, kNotApplied, kPending, kReset };

struct Verdict {
  Outcome outcome = Outcome::kPending;
  Id128 update_id;
  Id128 last_applied;  // for kReset
  std::string reason;
};

// Client to coordinator.

struct CheckIn {
  uint32_t protocol_version = kProtocolVersion;
  std::string name;
  Id128 lineage;
  Id128 prev_applied;
  Id128 pending_update_id;  // zero: nothing pending
  int64_t pending_round = 0;
  bool residual_lost = false;
  std::string run;          // empty: the only run that the coordinator has
  Id128 process;            // drawn whenever a client opens its state; zero: unknown
  uint32_t connection = 0;  // number of this connection of `process`, from 1
  Id128 family = {};        // of `lineage`, as Welcome::family said; zero: the client has no state
  bool relay = false;       // the client is a relay, whose training is a round of its own clients
};

struct Ready {
  absl::optional<int64_t> version;
  Id128 model_hash;
  Id128 layout_hash;
  int64_t samples = 0;      // of this client's training data
  Id128 history_hash = {};  // UpdateHistory::Hash; zero in a run whose updates are not packed
  std::string device = {};  // LocalTrainer::device; empty: as said before on this connection, or not known
};

struct Update {
  int64_t round = 0;
  Id128 update_id;
  int64_t train_us = 0;
  float loss = 0;
  std::string message;
  // The message is in the form of Codec::Pack. The coordinator's edge unpacks it (coordinator/update_histories.h).
  bool packed = false;
  // NormCode (core/norm_code.h) of the residual as the client's newest verdict left it; nullopt: as said before on this
  // connection, or not known.
  absl::optional<int> norm_code = absl::nullopt;
  std::vector<NamedMetric> metrics = {};             // TrainResult::metrics
  CohortFacts cohort = {};                           // TrainResult::cohort
  absl::optional<BelowFacts> below = absl::nullopt;  // of a relay, as it sends the update
  int64_t packed_bytes = 0;                          // of what `message` was unpacked from; 0: it came as it is
  bool unread = false;  // nobody asked for it, so the coordinator's edge did not decode it: it must not count
  // The measures of the decoded message (Codec::Measure). The coordinator's edge measures it; nothing of this is sent.
  double norm = 0;
  float largest = 0;
  // The message in place of `message`, once the edge has put it away (storage/update_spool.h).
  std::shared_ptr<const HeldBytes> held = nullptr;

  // The message, wherever it is.
  absl::string_view bytes() const { return held == nullptr ? absl::string_view(message) : held->bytes(); }
  // Returns the bytes of the update that crossed the connection.
  int64_t payload_bytes() const { return packed_bytes > 0 ? packed_bytes : static_cast<int64_t>(bytes().size()); }
};

struct Progress {
  int64_t round = 0;
  int64_t steps_done = 0;
};

// The most bytes of Leaving::reason.
inline constexpr size_t kMostReasonBytes = 512;

struct Leaving {
  std::string reason = {};  // the error for which it leaves, in UTF-8; empty: it leaves in order
};

using FromClient = std::variant<CheckIn, Ready, Update, Progress, Leaving>;

// Coordinator to client.

// The shards of the training data that a client and all clients below it have.
struct ShardRange {
  int64_t first = 0;
  int64_t count = 1;
};

struct Welcome {
  Id128 lineage;  // of the books in which this client's updates are settled: a relay keeps its own
  std::shared_ptr<const RunConfig> config;
  int64_t client_index = 0;
  absl::optional<Verdict> verdict;
  int64_t head_version = 0;
  Id128 start_hash = {};  // of version 0; zero: not known
  // The lineage of the coordinator at the root, whose model all have. A client takes its residual along to another
  // lineage of the same family.
  Id128 family = {};
  absl::optional<ShardRange> shards = absl::nullopt;  // nullopt: the shard `client_index` alone
  std::shared_ptr<const Layout> layout = nullptr;     // of the model, for a relay; null for other clients
  std::string wire_config = {};  // `config` as it was read, for a relay, which hands it on; else empty
};

struct Resync {
  int64_t checkpoint_version = 0;
  std::string reason;
};

struct Downstream {
  int64_t version = 0;
  Id128 model_hash;
  std::shared_ptr<const std::string> message;  // shared: one copy serves the whole cohort
};

struct Assignment {
  int64_t round = 0;
  int64_t base_version = 0;
  int64_t local_steps = 0;
  int64_t choice = 0;  // of UpdateChoices (core/codec_choices.h)
  // The run's iteration with which the training begins; nullopt where every round has train.local_steps iterations.
  absl::optional<int64_t> first_iteration = absl::nullopt;
  bool packed = false;  // the update may come packed: the coordinator holds the client's history
};

struct Receipt {
  Id128 update_id;
};

struct Refusal {
  std::string reason;
  bool retry = false;
  // Not zero: the client should check in again with what it keeps for this lineage, which it was part of before.
  Id128 lineage = {};
};

struct Finished {
  std::string reason;
};

// Answers a Ready whose history is not the coordinator's: the client's history is that of no updates from here on.
struct BeginHistory {};

using FromServer =
    std::variant<Welcome, Resync, Downstream, Assignment, Receipt, Verdict, Refusal, Finished, BeginHistory>;

// H(lineage, round, client index, predecessor, message): identifies an update, proves its integrity and that both ends
// agree about the client's last applied update, so neither the predecessor nor a checksum travels with it.
Id128 MakeUpdateId(Id128 lineage, int64_t round, int64_t client_index, Id128 predecessor, absl::string_view message);
// The same from HashBytes of the message.
Id128 MakeUpdateId(Id128 lineage, int64_t round, int64_t client_index, Id128 predecessor, Id128 message_hash);

// A client's name: 1 to 64 letters, digits, '-', '_' or '.', not starting with '.'. INVALID_ARGUMENT with the rule.
absl::Status CheckClientName(absl::string_view name);

// A device's name: 1 to 64 printable characters of ASCII.
bool IsDeviceName(absl::string_view name);

}  // namespace terse

#endif  // TERSE_CORE_SESSION_MESSAGES_H_
