// The records of a run's store (storage/run_store.h): the rows of its tables and the arguments of its calls. Value
// types.
#ifndef TERSE_STORAGE_RUN_RECORDS_H_
#define TERSE_STORAGE_RUN_RECORDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "core/cohort.h"
#include "core/id128.h"
#include "core/named_metrics.h"
#include "core/round_plan.h"

namespace terse {

// kPaused: the run goes on when an operator says so; no round opens until then.
// kStopping: it was told to stop, and its last evaluation and checkpoint are to come.
enum class RunState { kActive, kPaused, kStopping, kFinished, kStopped };
enum class RoundState { kOpen, kClosed, kCommitted, kAborted };
absl::string_view RunStateName(RunState state);      // "active" ...
absl::string_view RoundStateName(RoundState state);  // "open" ...

// Row of `runs`. One run per store.
struct RunRecord {
  std::string name;
  Id128 lineage;       // random, made with the run; a client's state belongs to one lineage
  std::string config;  // serialized terse.v1.RunConfig
  int64_t parameters = 0;
  RunState state = RunState::kActive;
  std::string reason;      // why it ended or was paused, one line for people
  int64_t created_us = 0;  // Unix time in microseconds, as every *_us that is a point in time
  // Of a relay (docs/SCALE.md): serialized terse.v1.RelayFacts, what it was told of the run above it. Empty: the run is
  // this coordinator's own.
  std::string relay = "";
  int64_t first_version = 0;  // of the weights that the run is created with; it is not stored
};

// The committed model: what the next round starts from.
struct Head {
  int64_t version = 0;  // number of committed rounds; of a relay, of those of the run above
  Id128 model_hash;     // HashWeights of that version
  int64_t epoch = 0;    // number of times the store was opened; guards against a second writer
};

// Row of `clients`.
struct ClientRecord {
  int64_t id = 0;  // 0, 1, 2, ... in order of first check-in; also the shard index of an iid partition
  std::string name;
  Id128 last_applied;  // update id; zero before the first
  int64_t first_seen_us = 0;
  int64_t last_seen_us = 0;
  int64_t updates_applied = 0;
  int64_t updates_not_applied = 0;  // late, surplus or of an aborted round: folded forward by the client
  int64_t resets = 0;               // residuals reported as lost, or given up with an update that was refused
  int64_t samples = 0;              // of its training data, as it last said; 0: it has not
  double reliability = 1;           // share of recent rounds with work in which it delivered: 0.9 old + 0.1 newest
  int64_t failures = 0;             // in a row; a committed update ends the row
  int64_t set_aside_until_us = 0;   // 0: it may take part
  std::string set_aside_reason;
};

// Row of `below`: a client that is a relay, and what it said last of the tree below it.
struct BelowRecord {
  int64_t client = 0;
  BelowFacts facts;
};

// The reliability of a client after a round that applied its update; the store's own rows move so too.
inline double ReliabilityAfterDelivery(double before) { return 0.9 * before + 0.1; }

// Row of `rounds`.
struct RoundRecord {
  int64_t id = 0;  // 1, 2, ...
  RoundState state = RoundState::kOpen;
  int64_t base_version = 0;
  int64_t opened_us = 0;
  int64_t closed_us = 0;     // 0 before that
  int64_t committed_us = 0;  // or aborted; 0 before that
  int64_t updates = 0;       // chosen
  int64_t update_bytes = 0;  // payload of the chosen updates
  int64_t train_us_max = 0;  // training time of the slowest chosen client
  double train_loss = 0;     // mean over the chosen clients
  // Results on the test set, present when this round's model was evaluated and where the model has them; a loss that is
  // no number has no value.
  absl::optional<double> accuracy;
  absl::optional<double> top5;
  absl::optional<double> perplexity;
  absl::optional<double> test_loss;
  std::vector<MetricMean> metrics;  // by kind and name: over the chosen clients, and of the evaluation
  absl::optional<RoundPlan> plan;   // of the run's controller; nullopt when it has none
  // Sums of this round's ledger rows over the clients; they stay when the rows are gone.
  int64_t dense_bytes_up = 0, payload_bytes_up = 0, wire_bytes_up = 0;
  int64_t dense_bytes_down = 0, payload_bytes_down = 0, wire_bytes_down = 0;

  // Regression has a loss and no accuracy; a classifier that diverged has an accuracy and no loss.
  bool evaluated() const { return test_loss.has_value() || accuracy.has_value(); }
};

// Results and costs of a run so far.
struct RunTotals {
  // The figures of the newest evaluated round, and the best of all rounds: the highest accuracy and the lowest loss.
  absl::optional<double> accuracy, test_loss;
  absl::optional<double> best_accuracy, best_test_loss;
  // Sums over all rounds from 1 on and all clients.
  int64_t dense_bytes_up = 0, payload_bytes_up = 0, wire_bytes_up = 0;
  int64_t dense_bytes_down = 0, payload_bytes_down = 0, wire_bytes_down = 0;
  int64_t first_opened_us = 0;    // of the first round; 0 before
  int64_t last_committed_us = 0;  // of the newest committed round; 0 before the first commit
};

// Row of `updates`: an update that a CLOSE chose.
struct ChosenUpdate {
  int64_t client = 0;
  Id128 update_id;
  Id128 prev_applied;
  Id128 content_hash;
  int64_t payload_bytes = 0;
  int64_t train_us = 0;
  double loss = 0;
  int64_t samples = 0;                    // the client's when the update came
  std::vector<NamedMetric> metrics = {};  // that came with it
};

// Row of `update_metrics`: what one client reported with an update that was chosen.
struct ClientMetrics {
  int64_t round = 0;
  int64_t client = 0;
  std::string client_name = {};
  std::vector<NamedMetric> metrics = {};
};

// Row of `refused`: an update that a CLOSE refused.
struct RefusedUpdate {
  int64_t client = 0;
  Id128 update_id;
  std::string reason;  // one line for people
};

// How much of a long run is kept row by row. 0: everything.
struct Retention {
  // Committed rounds whose ledger and chosen updates are kept, and what was aborted between them. Of older ones the
  // sums stay for ever. At least rounds.staleness in a buffered run, whose updates may be older than their round.
  int64_t rounds = 0;
  int64_t events = 0;  // the newest
};

// Which events are meant. All of the fields must fit.
struct EventFilter {
  int64_t before = 0;  // of a smaller id; 0: any
  std::string kind;    // empty: any
  std::string client;  // what the client's name contains, whatever the case of ASCII letters; empty: any, or none
};

enum class Direction { kUp, kDown };

// Row of `ledger`: bytes of one round, client and direction. `dense` is what sending every parameter as float32 after
// every local iteration would have cost, `payload` the codec's messages, `wire` everything on the TCP connection.
struct LedgerEntry {
  int64_t round = 0;
  int64_t client = 0;
  Direction direction = Direction::kUp;
  int64_t dense_bytes = 0;
  int64_t payload_bytes = 0;
  int64_t wire_bytes = 0;
  std::string client_name = {};  // filled in where entries are read
};

// Row of `events`.
struct EventRecord {
  int64_t time_us = 0;
  std::string kind;              // of storage/event_kinds.h
  int64_t round = 0;             // 0 when it belongs to none
  int64_t client = -1;           // -1 when it belongs to none
  std::string detail;            // one line for people
  int64_t id = 0;                // given by the store: greater than those of all earlier events
  std::string client_name = {};  // filled in where events are read; empty when it belongs to no client
};

// The record from which one client's packed updates are unpacked: its updates that were applied since its last reset,
// the first of them merged into a state.
struct HistoryRecord {
  int64_t messages = 0;          // that `state` was made of
  std::string state;             // UpdateHistory::Serialize; empty while `messages` is 0
  std::vector<std::string> log;  // the messages after those, in order

  int64_t count() const { return messages + static_cast<int64_t>(log.size()); }
};

// An update that a commit adds to its client's history.
struct HistoryMessage {
  int64_t client = 0;
  absl::string_view message;  // lives as long as the call
};

// COMMIT of docs/PROTOCOL.md, step 6: one transaction. Every chosen client's last_applied moves from its predecessor,
// the head moves from (base version, epoch), the round becomes COMMITTED and the downstream message joins the log.
struct Commit {
  int64_t round = 0;
  int64_t base_version = 0;  // the head must still be there
  // Of version base_version + 1. Zero in a relay, whose rounds make no model: the head stays, there is no `downstream`
  // and no `aggregate`, and the next round does not open.
  Id128 model_hash;
  std::string downstream;  // message that leads from base_version to base_version + 1
  std::string aggregate;   // what repeats the server's step of the round; empty when nothing has to be repeated
  int64_t committed_us = 0;
  std::vector<LedgerEntry> ledger;
  absl::optional<RoundPlan> next_plan = absl::nullopt;  // of the next round, when it opens in the same transaction
  std::vector<HistoryMessage> history = {};  // of chosen clients, each at most once; empty in a run without histories
};

struct LogMessage {
  int64_t version = 0;  // this message leads from version - 1 to version
  Id128 model_hash;     // after it was applied
  std::string downstream;
};

struct Checkpoint {
  int64_t version = 0;
  Id128 model_hash;
  std::vector<float> weights;
  std::vector<float> server_state = {};  // that the next rounds need beside the weights; may be empty
};

// A checkpoint whose numbers are elsewhere: who writes one need not copy the model.
struct CheckpointView {
  CheckpointView(int64_t version, Id128 model_hash, absl::Span<const float> weights,
                 std::vector<absl::Span<const float>> server_state = {})
      : version(version), model_hash(model_hash), weights(weights), server_state(std::move(server_state)) {}
  CheckpointView(const Checkpoint& checkpoint)  // NOLINT(google-explicit-constructor): as absl::Span of a vector
      : CheckpointView(checkpoint.version, checkpoint.model_hash, checkpoint.weights) {
    if (!checkpoint.server_state.empty()) server_state.emplace_back(checkpoint.server_state);
  }

  int64_t version;
  Id128 model_hash;
  absl::Span<const float> weights;
  std::vector<absl::Span<const float>> server_state;  // one span behind the other, none of them empty; may have none
};

// Where the messages of a commit are stored. Tests set lower limits.
struct MessageLimits {
  // A message of more bytes stands in a segment file; a smaller one in its row, where it costs no sync of its own.
  int64_t inline_bytes = 64 << 10;
  // A message that does not fit into what is left of this begins a new segment. A segment goes when none of its
  // messages is in the log any more, so its size bounds what is kept for the sake of one of them.
  int64_t segment_bytes = 64 << 20;
};

// A checkpoint file's bytes. Parsing: DATA_LOSS when they are not whole or a hash does not match.
absl::StatusOr<Checkpoint> ParseCheckpoint(absl::string_view bytes);
std::string SerializeCheckpoint(const CheckpointView& checkpoint);

}  // namespace terse

#endif  // TERSE_STORAGE_RUN_RECORDS_H_
