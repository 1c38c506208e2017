// RunStore on SQLite. Internal to storage/: others use storage/run_store.h. The definitions are in run_store.cc
// (opening), run_store_write.cc, run_store_read.cc, run_store_log.cc, run_store_batch.cc, run_store_ledger.cc,
// run_store_history.cc, run_store_checkpoint.cc and run_store_backup.cc.
#ifndef TERSE_STORAGE_SQLITE_RUN_STORE_H_
#define TERSE_STORAGE_SQLITE_RUN_STORE_H_

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "core/file_system.h"
#include "storage/reader_pool.h"
#include "storage/run_store.h"
#include "storage/segments.h"
#include "storage/sqlite_db.h"

namespace terse {
namespace run_store_internal {

// A database that no other process opens.
struct OwnedDatabase {
  std::unique_ptr<DirectoryLock> lock;
  std::unique_ptr<SqliteDb> db;
  int64_t epoch = 0;
};

}  // namespace run_store_internal

class SqliteRunStore final : public RunStore {
 public:
  static absl::StatusOr<std::unique_ptr<RunStore>> Open(const std::string& directory, FileSystem& files, Depth depth,
                                                        const MessageLimits& limits);
  ~SqliteRunStore() override;

  absl::Status BeginBatch() override;
  absl::Status CommitBatch() override;
  void DropBatch() override;
  absl::StatusOr<absl::optional<RunRecord>> Run() override;
  absl::Status CreateRun(const RunRecord& run, absl::Span<const float> initial_weights) override;
  absl::Status SetRunState(RunState state, const std::string& reason) override;
  absl::StatusOr<Head> GetHead() override;
  absl::StatusOr<Id128> StartHash() override;
  absl::StatusOr<ClientRecord> RegisterClient(const std::string& name, int64_t now_us) override;
  absl::StatusOr<ClientRecord> GetClient(int64_t client) override;
  absl::StatusOr<ClientRecord> ClientNamed(const std::string& name) override;
  absl::Status RecordReset(int64_t client) override;
  absl::Status RecordNotApplied(int64_t client) override;
  absl::StatusOr<ClientRecord> RecordFailure(int64_t client) override;
  absl::Status SetAside(int64_t client, int64_t until_us, const std::string& reason) override;
  absl::Status SetSamples(int64_t client, int64_t samples) override;
  absl::StatusOr<absl::optional<RoundRecord>> LastRound() override;
  absl::StatusOr<absl::optional<RoundState>> GetRoundState(int64_t round) override;
  absl::StatusOr<bool> WasChosen(int64_t round, int64_t client) override;
  absl::StatusOr<absl::optional<int64_t>> BaseVersionOf(int64_t round) override;
  absl::StatusOr<absl::optional<Fate>> FateOf(Id128 update_id, int64_t client, int64_t round) override;
  absl::Status OpenRound(int64_t round, int64_t base_version, int64_t now_us,
                         const absl::optional<RoundPlan>& plan = absl::nullopt) override;
  absl::Status CloseRound(int64_t round, absl::Span<const ChosenUpdate> chosen, int64_t now_us,
                          absl::Span<const RefusedUpdate> refused) override;
  absl::Status CommitRound(const Commit& commit, bool open_next) override;
  absl::Status AbortRound(int64_t round, const std::string& reason, int64_t now_us) override;
  absl::Status SetEvaluation(int64_t round, const Evaluation& evaluation) override;
  absl::Status AddLedger(absl::Span<const LedgerEntry> entries) override;
  absl::Status AddEvent(const EventRecord& event) override;
  absl::Status SetRetention(const Retention& retention) override;
  absl::StatusOr<std::vector<LogMessage>> ReadLogPart(int64_t after, int64_t up_to, int64_t max_bytes) override;
  absl::StatusOr<int64_t> LogBytes(int64_t after) override;
  absl::StatusOr<std::string> ReadAggregate(int64_t version) override;
  absl::StatusOr<HistoryRecord> ReadHistory(int64_t client) override;
  absl::Status CompactHistory(int64_t client, int64_t messages, absl::string_view state) override;
  absl::Status ForgetHistory(int64_t client) override;
  absl::Status WriteCheckpoint(const CheckpointView& checkpoint, int64_t keep) override;
  absl::StatusOr<Checkpoint> ReadNewestCheckpoint() override;
  absl::StatusOr<CheckpointFile> NewestCheckpointFile() override;
  absl::Status Backup(const std::string& directory) override;
  absl::StatusOr<std::vector<RoundRecord>> Rounds(int64_t first, int64_t last) override;
  absl::StatusOr<std::vector<ClientRecord>> Clients() override;
  absl::StatusOr<std::vector<LedgerEntry>> Ledger(int64_t first_round, int64_t last_round) override;
  absl::StatusOr<std::vector<ClientMetrics>> MetricsOfClients(int64_t first_round, int64_t last_round) override;
  absl::StatusOr<std::vector<LedgerEntry>> ClientTotals() override;
  absl::StatusOr<RunTotals> Totals() override;
  absl::StatusOr<std::vector<EventRecord>> EventsOf(const EventFilter& filter, int64_t newest) override;
  absl::StatusOr<std::vector<EventRecord>> EventsAfter(int64_t id, int64_t limit) override;

 private:
  SqliteRunStore(const std::string& directory, FileSystem& files, run_store_internal::OwnedDatabase owned,
                 std::unique_ptr<SqliteDb> reader, std::unique_ptr<Segments> segments);

  // One transaction on the writing connection, refused when another coordinator opened the store after this one; in the
  // thread that has a batch, a part of the batch's transaction.
  absl::Status Write(absl::FunctionRef<absl::Status(SqliteDb&)> body) ABSL_LOCKS_EXCLUDED(write_mutex_);
  // FAILED_PRECONDITION when another coordinator opened the store after this one.
  absl::Status CheckEpoch() ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  // Whether the calling thread has a batch.
  bool InBatch() const { return batch_thread_.load() == std::this_thread::get_id(); }
  bool IsUnbatched() const { return batch_thread_.load() == std::thread::id(); }
  // Begins the batch's transaction, at its first call.
  absl::Status OpenBatch() ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  // Ends it, with COMMIT if `status` and all calls so far are OK. The batch goes on.
  absl::Status CloseBatch(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  // For mutants: makes the batch so far durable by itself.
  absl::Status SplitBatch() ABSL_LOCKS_EXCLUDED(write_mutex_);
  // Makes durable what the transaction's rows will name, before it commits.
  absl::Status SyncSegments() ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  // Passes on the status of work on files beside the database; after a failed sync nothing is written any more.
  absl::Status Watch(const absl::Status& status) ABSL_LOCKS_EXCLUDED(write_mutex_);
  // One snapshot on a reading connection that nobody else uses meanwhile; in the thread that has a batch, on the
  // writing one.
  absl::Status Read(absl::FunctionRef<absl::Status(SqliteDb&)> body);

  // Sizes of a checkpoint's files; 0 for no file.
  struct CheckpointBytes {
    int64_t weights = 0;
    int64_t server_state = 0;
  };
  // Writes the files (not the tables' rows), the one that clients download last.
  absl::StatusOr<CheckpointBytes> WriteCheckpointFiles(const std::string& directory, const CheckpointView& checkpoint);
  static absl::Status RecordCheckpoint(SqliteDb& db, const CheckpointView& checkpoint, const CheckpointBytes& bytes);
  absl::StatusOr<Checkpoint> NewestWholeCheckpoint() ABSL_EXCLUSIVE_LOCKS_REQUIRED(checkpoint_mutex_);
  // The run at one moment: a checkpoint, and a snapshot of the database that has the log after it.
  struct Pinned {
    Checkpoint checkpoint;
    Segments::Hold segments;
    std::unique_ptr<SqliteDb> database;
  };
  absl::StatusOr<Pinned> Pin() ABSL_LOCKS_EXCLUDED(checkpoint_mutex_);
  // Backup, into a directory that is there; leaves what it made when it fails. Holds no lock while it copies.
  absl::Status CopyInto(const std::string& directory) ABSL_LOCKS_EXCLUDED(checkpoint_mutex_);
  absl::Status RetireCheckpoints(int64_t keep) ABSL_EXCLUSIVE_LOCKS_REQUIRED(checkpoint_mutex_);
  absl::StatusOr<int64_t> OldestCheapVersion(int64_t bytes);
  // `table` is keyed by version.
  absl::Status Prune(absl::string_view table, int64_t up_to) ABSL_EXCLUSIVE_LOCKS_REQUIRED(checkpoint_mutex_);
  // Removes the segments that no row names any more.
  absl::Status RemoveSegments() ABSL_LOCKS_EXCLUDED(write_mutex_);
  absl::StatusOr<std::vector<CheckpointFile>> CheckpointFiles(bool also_damaged);
  absl::Status MarkCheckpoint(int64_t version, bool damaged, const std::string& why);

  const std::string directory_;
  FileSystem& files_;
  const std::unique_ptr<DirectoryLock> lock_;
  const int64_t epoch_;

  // Held for the whole of a checkpoint, across several short transactions.
  absl::Mutex checkpoint_mutex_ ABSL_ACQUIRED_BEFORE(write_mutex_);
  absl::Mutex write_mutex_;
  const std::unique_ptr<SqliteDb> writer_ ABSL_PT_GUARDED_BY(write_mutex_);
  // The thread that has a batch; no thread: there is none. Set under write_mutex_.
  std::atomic<std::thread::id> batch_thread_{std::thread::id()};
  bool batch_open_ ABSL_GUARDED_BY(write_mutex_) = false;    // its transaction has begun
  absl::Status batch_status_ ABSL_GUARDED_BY(write_mutex_);  // the first error of a call within it
  // Written under write_mutex_; holds, and what is const, need none.
  const std::unique_ptr<Segments> segments_;
  ReaderPool readers_;
};

// Pieces that more than one of the .cc files needs.
namespace run_store_internal {

// Everything that RunStore::Open does with the database.
absl::StatusOr<OwnedDatabase> OpenDatabase(const std::string& directory, FileSystem& files, RunStore::Depth depth);
absl::Status InsertEvent(SqliteDb& db, const EventRecord& event);
// RunStore::RecordReset.
absl::Status ResetClient(SqliteDb& db, int64_t client);
// Aborts an OPEN or CLOSED round, with its event.
absl::Status MarkAborted(SqliteDb& db, int64_t round, const std::string& reason, int64_t now_us);
// Aborts every round of that state.
absl::Status AbortRounds(SqliteDb& db, RoundState state, const std::string& reason);
// The column's value; nullopt for NULL.
absl::optional<double> OptionalReal(const Statement& row, int column);
// The head as `db` sees it.
absl::StatusOr<Head> SelectHead(SqliteDb& db);
// Round's state, nullopt when there is no such round.
absl::StatusOr<absl::optional<RoundState>> SelectRoundState(SqliteDb& db, int64_t round);
// The first row of "SELECT * FROM clients WHERE ...", prepared and bound; NOT_FOUND with `otherwise` when there is
// none.
absl::StatusOr<ClientRecord> SelectClient(Statement& statement, absl::string_view otherwise);
// Adds an update of the round, which chose it, to its client's history.
absl::Status InsertHistory(SqliteDb& db, int64_t round, const HistoryMessage& message);
// Unix time in microseconds, for what the store notes on its own account (opening, damaged files).
int64_t NowUs();
std::string DatabasePath(const std::string& directory);
// Names of a checkpoint's files, without the directory.
std::string CheckpointName(int64_t version);
std::string ServerStateName(int64_t version);
// Their paths below the run's directory.
std::string CheckpointPath(const std::string& directory, int64_t version);
std::string ServerStatePath(const std::string& directory, int64_t version);
// The checkpoints that are recorded, newest first, with their paths below `directory`.
absl::StatusOr<std::vector<RunStore::CheckpointFile>> SelectCheckpoints(SqliteDb& db, const std::string& directory,
                                                                        bool also_damaged);
// Reads a checkpoint's files, which have at most as many bytes as are recorded. DATA_LOSS, with the file, when they are
// not what was recorded; otherwise as FileSystem::Read.
absl::StatusOr<Checkpoint> LoadCheckpoint(FileSystem& files, const std::string& directory,
                                          const RunStore::CheckpointFile& file);
// DATA_LOSS of a run of which no checkpoint can be read.
absl::Status NoWholeCheckpoint(const std::string& directory, absl::string_view reason);

}  // namespace run_store_internal

}  // namespace terse

#endif  // TERSE_STORAGE_SQLITE_RUN_STORE_H_
