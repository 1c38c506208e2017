// The coordinator's durable state: a database for metadata and the log of downstream messages, files of checkpoints,
// and files of those messages that are large. On SQLite (WAL, synchronous=FULL) these files lie beside the database; on
// PostgreSQL (storage/run_stores.h) their content is in it. Schema: storage/SCHEMA.md.
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
#include "storage/run_records.h"

namespace terse {

// Thread-safe. Writes go through one connection under a mutex, reads through others, of which each has one call at a
// time: no read waits for a commit or for another read. A row that is read is verified by its checksum, where opening
// may have left it out. Every call that changes something is one transaction, unless it says otherwise, and durable
// when it returns; those of a batch are one transaction together. Any call may return:
//   RESOURCE_EXHAUSTED  the disk is full                     } IsDiskTrouble: nothing changed, and the same call may be
//   UNAVAILABLE         another input/output error, or the   } made again, on this store or on one opened afresh.
//                       server cannot be reached             }
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
  // into ABORTED (its updates died with the process; event "round_aborted") unless the run is a relay's, and removes
  // checkpoint and segment files that the database does not know. FAILED_PRECONDITION when another coordinator holds
  // the directory or a newer program wrote it; DATA_LOSS with the file's name and what to do when the database, or a
  // segment file, is damaged.
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
  // Creates the run with its version 0, or a relay's with RunRecord::first_version, and writes the checkpoint of that.
  // ALREADY_EXISTS when there is one.
  virtual absl::Status CreateRun(const RunRecord& run, absl::Span<const float> initial_weights) = 0;
  virtual absl::Status SetRunState(RunState state, const std::string& reason) = 0;

  virtual absl::StatusOr<Head> GetHead() = 0;
  // Hash of version 0; zero when an older program made the run and its checkpoint of version 0 was gone already, and in
  // a relay that was made with a later version.
  virtual absl::StatusOr<Id128> StartHash() = 0;
  // Finds or adds the client, and records the time at which it was seen.
  virtual absl::StatusOr<ClientRecord> RegisterClient(const std::string& name, int64_t now_us) = 0;
  // NOT_FOUND for a client that was never registered.
  virtual absl::StatusOr<ClientRecord> GetClient(int64_t client) = 0;
  // Finds the client by its name. NOT_FOUND as above.
  virtual absl::StatusOr<ClientRecord> ClientNamed(const std::string& name) = 0;
  // Counts an update that was validated or sent and will never be applied (late, surplus, or of an aborted round).
  virtual absl::Status RecordNotApplied(int64_t client) = 0;
  // Counts a residual that was lost; the client's history is then that of no updates.
  virtual absl::Status RecordReset(int64_t client) = 0;
  // Counts one more failure in a row, and lowers the reliability. Returns the row afterwards.
  virtual absl::StatusOr<ClientRecord> RecordFailure(int64_t client) = 0;
  // Keeps the client from getting work until then, and adds the event "client_set_aside"; 0 readmits it with no
  // failures in a row, and adds the event "client_readmitted". `reason` is one line for people.
  virtual absl::Status SetAside(int64_t client, int64_t until_us, const std::string& reason) = 0;
  virtual absl::Status SetSamples(int64_t client, int64_t samples) = 0;
  // The first replaces what a relay has said about the tree below it. The second returns what all relays have said, by
  // client.
  virtual absl::Status SetBelow(const BelowRecord& below) = 0;
  virtual absl::StatusOr<std::vector<BelowRecord>> Below() = 0;

  // The newest round, nullopt before the first. After Open it is OPEN, COMMITTED or ABORTED; a relay's may be CLOSED.
  virtual absl::StatusOr<absl::optional<RoundRecord>> LastRound() = 0;
  // nullopt for a round that was never opened.
  virtual absl::StatusOr<absl::optional<RoundState>> GetRoundState(int64_t round) = 0;
  // False also for most updates of a round that is no longer kept (Retention).
  virtual absl::StatusOr<bool> WasChosen(int64_t round, int64_t client) = 0;
  // The version whose weights the round began with; nullopt for a round that was never opened.
  virtual absl::StatusOr<absl::optional<int64_t>> BaseVersionOf(int64_t round) = 0;
  // The fate of an update that `client` may have made for `round`: the newest round that chose it, or the one that
  // refused it. nullopt when no round did, when the round is no longer kept, or when the update is another client's:
  // the verdict is then the same without its fate (storage/ledger_rows.cc). Searches the newest kRoundsOfFate rounds,
  // and none before `round`, because no earlier round can have chosen the update.
  struct Fate {
    int64_t client = 0;
    RoundState state = RoundState::kClosed;  // of that round: never OPEN
    std::string refused = {};                // why; empty for a chosen one
  };
  static constexpr int64_t kRoundsOfFate = 1000;
  virtual absl::StatusOr<absl::optional<Fate>> FateOf(Id128 update_id, int64_t client, int64_t round) = 0;

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
  // For a relay, whose models come from above. The head moves to the version of `message`, which follows it, and the
  // message joins the log. FAILED_PRECONDITION when the head is another one, a round is OPEN or CLOSED, or there is no
  // run.
  virtual absl::Status AppendMessage(const LogMessage& message) = 0;
  // As above, but to a later version that no log leads to. Its checkpoint is written as WriteCheckpoint does, and
  // becomes the only one in the transaction that moves the head; the log begins there. INVALID_ARGUMENT when the hash
  // is not that of the weights.
  virtual absl::Status ReplaceHead(const CheckpointView& model) = 0;
  // OPEN or CLOSED > ABORTED, and the event "round_aborted" with the reason.
  virtual absl::Status AbortRound(int64_t round, const std::string& reason, int64_t now_us) = 0;

  // FAILED_PRECONDITION unless the round is committed. A value that is not a number is stored as none.
  virtual absl::Status SetEvaluation(int64_t round, const Evaluation& evaluation) = 0;
  // Adds to the ledger. FAILED_PRECONDITION for bytes below 0, and for a client that is not registered.
  virtual absl::Status AddLedger(absl::Span<const LedgerEntry> entries) = 0;
  virtual absl::Status AddEvent(const EventRecord& event) = 0;
  // Stores the limits. They apply from the next commit and the next event on, each of which removes a few of the rows
  // that are too many. Writes nothing where the limits are the same as before.
  virtual absl::Status SetRetention(const Retention& retention) = 0;

  // Log messages with version in (after, up_to], in order. OUT_OF_RANGE when the log no longer reaches back to `after`;
  // INVALID_ARGUMENT for versions that never were.
  absl::StatusOr<std::vector<LogMessage>> ReadLog(int64_t after, int64_t up_to) {
    return ReadLogPart(after, up_to, std::numeric_limits<int64_t>::max());
  }
  // Reads the first of these messages: as many as have `max_bytes` together, but at least one.
  virtual absl::StatusOr<std::vector<LogMessage>> ReadLogPart(int64_t after, int64_t up_to, int64_t max_bytes) = 0;
  // Bytes of the log messages in (after, head]; OUT_OF_RANGE as ReadLog.
  virtual absl::StatusOr<int64_t> LogBytes(int64_t after) = 0;

  // Commit::aggregate of the round that led to `version`; kept as long as a checkpoint may need it. NOT_FOUND for none.
  virtual absl::StatusOr<std::string> ReadAggregate(int64_t version) = 0;

  // Returns the history of no updates for a client that has none.
  virtual absl::StatusOr<HistoryRecord> ReadHistory(int64_t client) = 0;
  // Replaces what is stored of the client's `messages` updates by the state after all of them.
  // FAILED_PRECONDITION when it has another number of them, or none.
  virtual absl::Status CompactHistory(int64_t client, int64_t messages, absl::string_view state) = 0;
  // Resets the client's history to that of no updates. Costs nothing where it was that before.
  virtual absl::Status ForgetHistory(int64_t client) = 0;

  // Writes DIR/checkpoints/VERSION.ckpt (write, fsync, rename, fsync directory), before it VERSION.state when there is
  // a state of the server, records both, keeps the newest `keep` and prunes the log, each in transactions of its own: a
  // call that failed half-way is completed by the next one. The log keeps what the oldest kept checkpoint needs, and
  // goes back further as long as all of it up to the head has no more bytes than the newest checkpoint's file: only
  // then can it be the cheaper way for a client that was away. So what lies before the oldest checkpoint never takes
  // more than one checkpoint's bytes. FAILED_PRECONDITION for a version that was not committed with this hash, or from
  // which no log leads on. Safe to call from another thread than the commits.
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
  // database, as one of SQLite, the segment files that it names, the newest whole checkpoint and the file that came
  // with the run (module_file.h), where there is one. Open opens it. A backup that failed leaves no files. Commits go
  // on meanwhile, WriteCheckpoint waits. FAILED_PRECONDITION when the directory holds files.
  virtual absl::Status Backup(const std::string& directory) = 0;

  // Reads for the administrator: rows in id order, ids in [first, last].
  virtual absl::StatusOr<std::vector<RoundRecord>> Rounds(int64_t first, int64_t last) = 0;
  virtual absl::StatusOr<std::vector<ClientRecord>> Clients() = 0;
  // Rounds that are no longer kept (Retention) have no rows.
  virtual absl::StatusOr<std::vector<LedgerEntry>> Ledger(int64_t first_round, int64_t last_round) = 0;
  // What single clients reported with the updates that the rounds chose, ordered by round and client. Rounds that are
  // no longer kept have no rows; their means stay in RoundRecord::metrics.
  virtual absl::StatusOr<std::vector<ClientMetrics>> MetricsOfClients(int64_t first_round, int64_t last_round) = 0;
  // Returns the bytes of all rounds by client and direction, in that order; `round` is 0 in them, and a direction
  // without bytes has none. Costs the number of clients, however long the run is.
  virtual absl::StatusOr<std::vector<LedgerEntry>> ClientTotals() = 0;
  // Costs the number of clients and a look at the results of each round: 4 ms for 10,000 rounds of 100 clients
  // (terse-long-store-bench).
  virtual absl::StatusOr<RunTotals> Totals() = 0;
  // The `newest` last events that pass the filter, in the order of their ids. Looks at no more than the kept events.
  virtual absl::StatusOr<std::vector<EventRecord>> EventsOf(const EventFilter& filter, int64_t newest) = 0;
  absl::StatusOr<std::vector<EventRecord>> Events(int64_t newest) { return EventsOf({}, newest); }
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

}  // namespace terse

#endif  // TERSE_STORAGE_RUN_STORE_H_
