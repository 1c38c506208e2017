// The coordinator's durable state: one SQLite database (WAL, synchronous=FULL) for metadata and the log of downstream
// messages, and beside it files with checkpoints and with the large ones of those messages. Schema: storage/SCHEMA.md.
//
//   DIR/lock   DIR/run.sqlite   DIR/checkpoints/NNNNNNNNNN.ckpt   DIR/checkpoints/NNNNNNNNNN.state
//   DIR/segments/NNNNNNNNNN.seg   DIR/module.pt
#ifndef TERSE_STORAGE_RUN_STORE_H_
#define TERSE_STORAGE_RUN_STORE_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "core/file_system.h"
#include "core/id128.h"
#include "core/round_plan.h"
#include "core/trainer.h"

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
};

// The committed model: what the next round starts from.
struct Head {
  int64_t version = 0;  // number of committed rounds
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
  absl::optional<RoundPlan> plan;  // of the run's controller; nullopt when it has none
  // Sums of this round's ledger rows over the clients; they stay when the rows are gone.
  int64_t dense_bytes_up = 0, payload_bytes_up = 0, wire_bytes_up = 0;
  int64_t dense_bytes_down = 0, payload_bytes_down = 0, wire_bytes_down = 0;

  // Regression has a loss and no accuracy; a classifier that diverged has an accuracy and no loss.
  bool evaluated() const { return test_loss.has_value() || accuracy.has_value(); }
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
  int64_t samples = 0;  // the client's when the update came
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
  Id128 model_hash;          // of version base_version + 1
  std::string downstream;    // message that leads from base_version to base_version + 1
  std::string aggregate;     // what repeats the server's step of the round; empty when nothing has to be repeated
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
                 absl::Span<const float> server_state = {})
      : version(version), model_hash(model_hash), weights(weights), server_state(server_state) {}
  CheckpointView(const Checkpoint& checkpoint)  // NOLINT(google-explicit-constructor): as absl::Span of a vector
      : CheckpointView(checkpoint.version, checkpoint.model_hash, checkpoint.weights, checkpoint.server_state) {}

  int64_t version;
  Id128 model_hash;
  absl::Span<const float> weights;
  absl::Span<const float> server_state;
};

// Where the messages of a commit are stored. Tests set lower limits.
struct MessageLimits {
  // A message of more bytes stands in a segment file; a smaller one in its row, where it costs no sync of its own.
  int64_t inline_bytes = 64 << 10;
  // A message that does not fit into what is left of this begins a new segment. A segment goes when none of its
  // messages is in the log any more, so its size bounds what is kept for the sake of one of them.
  int64_t segment_bytes = 64 << 20;
};

// Thread-safe. Writes go through one connection under a mutex, reads through others, of which each has one call at a
// time: no read waits for a commit or for another read. A row that is read is verified by its checksum, where opening
// may have left it out. Every call that changes something is one transaction, unless it says otherwise, and durable
// when it returns; those of a batch are one transaction together. Any call may return:
//   RESOURCE_EXHAUSTED  the disk is full                     } IsDiskTrouble: nothing changed, and the same call may be
//   UNAVAILABLE         another input/output error           } made again, on this store or on one opened afresh.
//   UNIMPLEMENTED       a client's history is larger than a row of SQLite may be, 10^9 bytes: nothing changed, and
//                       trying again cannot help
//   UNKNOWN             a sync failed (IsSyncFailure): whether the change is on disk is not known. The store shows the
//                       state before it (or after it, when only moving SQLite's log into the database failed), refuses
//                       every further write with UNKNOWN, and the process must end.
//   DATA_LOSS           a file is damaged; the message names it and the command that repairs it
// A disk that reports an error may have written all the same, so a process that dies right after an UNAVAILABLE can
// find the change at its next start. Nobody may therefore hear that a change did not happen until another one
// succeeded, which settles it; Open makes one.
class RunStore {
 public:
  virtual ~RunStore() = default;

  // How much an opening verifies. A database of an older schema is verified whole before it is migrated.
  enum class Depth {
    // Looks at what changed since the store was last closed in order or opened, and at all that does not grow with the
    // run's length (CheckRecent, storage/integrity.h); of segment files at the length alone.
    kRecent,
    // Looks at the whole database, and at no segment file: for a copy of the database alone.
    kDatabase,
    // Looks at the whole database, and at every message in segment files.
    kEverything
  };
  // Opens or creates DIR, takes its lock, verifies the database, migrates it, bumps the epoch, turns a CLOSED round
  // into ABORTED (its updates were only in memory; event "round_aborted"), and removes checkpoint and segment files
  // that the database does not know. FAILED_PRECONDITION when another coordinator holds the directory or a newer
  // program wrote it; DATA_LOSS with the file's name and what to do when the database, or a segment file, is damaged.
  static absl::StatusOr<std::unique_ptr<RunStore>> Open(const std::string& directory, FileSystem& files = PosixFiles(),
                                                        Depth depth = Depth::kRecent,
                                                        const MessageLimits& limits = MessageLimits());

  // Begins a batch of the calling thread: what it changes up to CommitBatch becomes durable there, all or nothing, and
  // what it reads meanwhile includes that, on the connection of its own that writes. Other threads see the state before
  // the batch, and their changes wait for its end: a thread must not wait for them within a batch, nor write a
  // checkpoint or a backup. One batch at a time: a second thread waits, the same one gets FAILED_PRECONDITION. A batch
  // in which nothing was changed costs no sync.
  virtual absl::Status BeginBatch() = 0;
  // Ends the batch. After an error of it, or of a call that changes something within it, nothing of the batch has
  // happened, but for the cases of UNKNOWN; the status is that error.
  virtual absl::Status CommitBatch() = 0;
  // Ends the calling thread's batch, if it has one: nothing of it has happened.
  virtual void DropBatch() = 0;

  // nullopt when the store is new.
  virtual absl::StatusOr<absl::optional<RunRecord>> Run() = 0;
  // Creates the run with its version 0 (writes checkpoint 0). ALREADY_EXISTS when there is one.
  virtual absl::Status CreateRun(const RunRecord& run, absl::Span<const float> initial_weights) = 0;
  virtual absl::Status SetRunState(RunState state, const std::string& reason) = 0;

  virtual absl::StatusOr<Head> GetHead() = 0;
  // Hash of version 0; zero when an older program made the run and its checkpoint of version 0 was gone already.
  virtual absl::StatusOr<Id128> StartHash() = 0;
  // Finds or adds the client, and notes that it was seen.
  virtual absl::StatusOr<ClientRecord> RegisterClient(const std::string& name, int64_t now_us) = 0;
  // NOT_FOUND for a client that was never registered.
  virtual absl::StatusOr<ClientRecord> GetClient(int64_t client) = 0;
  // Finds the client by its name. NOT_FOUND as above.
  virtual absl::StatusOr<ClientRecord> ClientNamed(const std::string& name) = 0;
  // Counts an update that was validated or sent and will never be applied (late, surplus, aborted round).
  virtual absl::Status RecordNotApplied(int64_t client) = 0;
  // Counts a residual that was lost; the client's history is then that of no updates.
  virtual absl::Status RecordReset(int64_t client) = 0;
  // Counts one more failure in a row, and lowers the reliability. Returns the row afterwards.
  virtual absl::StatusOr<ClientRecord> RecordFailure(int64_t client) = 0;
  // Keeps the client from getting work until then, and adds the event "client_set_aside"; 0 readmits it with no
  // failures in a row, and adds the event "client_readmitted". `reason` is one line for people.
  virtual absl::Status SetAside(int64_t client, int64_t until_us, const std::string& reason) = 0;
  virtual absl::Status SetSamples(int64_t client, int64_t samples) = 0;

  // The newest round, nullopt before the first. After Open it is OPEN, COMMITTED or ABORTED.
  virtual absl::StatusOr<absl::optional<RoundRecord>> LastRound() = 0;
  // nullopt for a round that was never opened.
  virtual absl::StatusOr<absl::optional<RoundState>> GetRoundState(int64_t round) = 0;
  // False also for most updates of a round that is no longer kept (Retention).
  virtual absl::StatusOr<bool> WasChosen(int64_t round, int64_t client) = 0;
  // The version whose weights the round began with; nullopt for a round that was never opened.
  virtual absl::StatusOr<absl::optional<int64_t>> BaseVersionOf(int64_t round) = 0;
  // The fate of an update: the newest round that chose it, or the one that refused it; nullopt when none did, or when
  // the round is no longer kept and the verdict about the update is the same without its fate (storage/ledger_rows.cc).
  struct Fate {
    int64_t client = 0;
    RoundState state = RoundState::kClosed;  // of that round: never OPEN
    std::string refused = {};                // why; empty for a chosen one
  };
  virtual absl::StatusOr<absl::optional<Fate>> FateOf(Id128 update_id) = 0;

  // FAILED_PRECONDITION unless the last round is settled and `base_version` is the head's. A plan has at least one
  // local step and a choice of 0 to 255, and is stored in the same transaction.
  virtual absl::Status OpenRound(int64_t round, int64_t base_version, int64_t now_us,
                                 const absl::optional<RoundPlan>& plan = absl::nullopt) = 0;
  // OPEN > CLOSED plus the chosen updates, one transaction. Refuses an update whose prev_applied is not the client's
  // last_applied (FAILED_PRECONDITION). CLOSED never goes back to OPEN. For each of `refused`, in the same transaction:
  // its fate, a reset of its client (RecordReset), and the event "update_rejected". A refusal stands whatever becomes
  // of the round.
  virtual absl::Status CloseRound(int64_t round, absl::Span<const ChosenUpdate> chosen, int64_t now_us,
                                  absl::Span<const RefusedUpdate> refused = {}) = 0;
  // CLOSED > COMMITTED, as described at Commit. FAILED_PRECONDITION (and nothing changes) when anything does not match.
  // When `open_next` is set the next round (commit.round + 1, base_version + 1) opens in the same transaction.
  virtual absl::Status CommitRound(const Commit& commit, bool open_next) = 0;
  // OPEN or CLOSED > ABORTED, and the event "round_aborted" with the reason.
  virtual absl::Status AbortRound(int64_t round, const std::string& reason, int64_t now_us) = 0;

  // FAILED_PRECONDITION unless the round is committed. A value that is not a number is stored as none.
  virtual absl::Status SetEvaluation(int64_t round, const Evaluation& evaluation) = 0;
  // Adds to the ledger rows (creates them when missing).
  virtual absl::Status AddLedger(absl::Span<const LedgerEntry> entries) = 0;
  virtual absl::Status AddEvent(const EventRecord& event) = 0;
  // Is stored, and holds from the next commit and the next event on: each of them removes a few rows too many. Writes
  // nothing where it was the same before.
  virtual absl::Status SetRetention(const Retention& retention) = 0;

  // Log messages with version in (after, up_to], in order. OUT_OF_RANGE when the log no longer reaches back to `after`;
  // INVALID_ARGUMENT for versions that never were.
  absl::StatusOr<std::vector<LogMessage>> ReadLog(int64_t after, int64_t up_to) {
    return ReadLogPart(after, up_to, std::numeric_limits<int64_t>::max());
  }
  // Reads the first of them: as many as have `max_bytes` together, but at least one.
  virtual absl::StatusOr<std::vector<LogMessage>> ReadLogPart(int64_t after, int64_t up_to, int64_t max_bytes) = 0;
  // Bytes of the log messages in (after, head]; OUT_OF_RANGE as ReadLog.
  virtual absl::StatusOr<int64_t> LogBytes(int64_t after) = 0;

  // Commit::aggregate of the round that led to `version`; kept as long as a checkpoint may need it. NOT_FOUND for none.
  virtual absl::StatusOr<std::string> ReadAggregate(int64_t version) = 0;

  // Returns the history of no updates for a client that has none.
  virtual absl::StatusOr<HistoryRecord> ReadHistory(int64_t client) = 0;
  // Puts the state after all of the client's `messages` updates in the place of what is stored of them.
  // FAILED_PRECONDITION when it has another number of them, or none.
  virtual absl::Status CompactHistory(int64_t client, int64_t messages, absl::string_view state) = 0;
  // The client's history is that of no updates from here on. Costs nothing where it was before.
  virtual absl::Status ForgetHistory(int64_t client) = 0;

  // Writes DIR/checkpoints/VERSION.ckpt (write, fsync, rename, fsync directory), before it VERSION.state when there is
  // a state of the server, records both, keeps the newest `keep` and prunes the log, each in transactions of its own: a
  // call that failed half-way is completed by the next one. The log keeps what the oldest kept checkpoint needs, and
  // goes back further as long as all of it up to the head has no more bytes than the newest checkpoint's file: only
  // then can it be the cheaper way for a client that was away. So what lies before the oldest checkpoint never takes
  // more than one checkpoint's bytes. FAILED_PRECONDITION for a version that was not committed with this hash. Safe to
  // call from another thread than the commits.
  virtual absl::Status WriteCheckpoint(const CheckpointView& checkpoint, int64_t keep) = 0;
  // The newest checkpoint whose file is whole. DATA_LOSS when there is none; a damaged file is skipped and becomes
  // the event "checkpoint_damaged".
  virtual absl::StatusOr<Checkpoint> ReadNewestCheckpoint() = 0;
  // Path and version of the newest checkpoint file that is not known to be damaged, for bulk download; NOT_FOUND when
  // there is none. A later WriteCheckpoint may remove the file: open it at once, and ask again when it is gone. Its
  // format is in storage/SCHEMA.md.
  struct CheckpointFile {
    int64_t version = 0;
    Id128 model_hash;
    std::string path;
    int64_t bytes = 0;
    int64_t server_state_bytes = 0;  // of the file beside it; 0: there is none
  };
  virtual absl::StatusOr<CheckpointFile> NewestCheckpointFile() = 0;

  // Copies the run as of now, while it goes on, into `directory` of the same disk, which must be missing or empty: the
  // database, the segment files that it names, the newest whole checkpoint and module.pt (module_file.h), where there
  // is one. A RunStore opens it. A
  // backup that failed leaves no files. Commits go on meanwhile, WriteCheckpoint waits. FAILED_PRECONDITION when the
  // directory holds files.
  virtual absl::Status Backup(const std::string& directory) = 0;

  // Reads for the administrator: rows in id order, ids in [first, last].
  virtual absl::StatusOr<std::vector<RoundRecord>> Rounds(int64_t first, int64_t last) = 0;
  virtual absl::StatusOr<std::vector<ClientRecord>> Clients() = 0;
  // Rounds that are no longer kept (Retention) have no rows.
  virtual absl::StatusOr<std::vector<LedgerEntry>> Ledger(int64_t first_round, int64_t last_round) = 0;
  // Returns the bytes of all rounds by client and direction, in that order; `round` is 0 in them, and a direction
  // without bytes has none. Costs the number of clients, however long the run is.
  virtual absl::StatusOr<std::vector<LedgerEntry>> ClientTotals() = 0;
  virtual absl::StatusOr<std::vector<EventRecord>> Events(int64_t newest) = 0;
  // The first `limit` events with a greater id, in order.
  virtual absl::StatusOr<std::vector<EventRecord>> EventsAfter(int64_t id, int64_t limit) = 0;
};

// Whether the directory holds a run that is neither finished nor stopped, without its lock and without a check of the
// whole database. No process may have the store open. Statuses of SqliteDb::Open.
absl::StatusOr<bool> HoldsUnfinishedRun(const std::string& directory);

// Makes a copied run (RunStore::Backup, or a copy of a stopped coordinator's directory) a run of its own: a new
// lineage, no client with a past. Clients that trained on after the copy was made start with a zero residual, which is
// counted, instead of anything counting twice. The store must not be open. NOT_FOUND when the directory holds no run.
absl::Status StartNewLineage(const std::string& directory, FileSystem& files = PosixFiles());

// A checkpoint file's bytes. Parsing: DATA_LOSS when they are not whole or a hash does not match.
absl::StatusOr<Checkpoint> ParseCheckpoint(absl::string_view bytes);
std::string SerializeCheckpoint(const CheckpointView& checkpoint);

}  // namespace terse

#endif  // TERSE_STORAGE_RUN_STORE_H_
