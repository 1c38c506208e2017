// What RunStore is on every SQL engine. Internal to storage/: others use storage/run_store.h. The definitions are in
// run_store.cc, run_store_write.cc, run_store_read.cc, run_store_log.cc, run_store_batch.cc, run_store_clients.cc,
// run_store_ledger.cc, run_store_history.cc and run_store_checkpoint.cc. What differs is in sqlite_run_store.h and
// postgres_run_store.h.
#ifndef TERSE_STORAGE_SQL_RUN_STORE_H_
#define TERSE_STORAGE_SQL_RUN_STORE_H_

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "storage/checkpoint_storage.h"
#include "storage/large_messages.h"
#include "storage/reader_pool.h"
#include "storage/run_store.h"
#include "storage/sql_db.h"

namespace terse {

class SqlRunStore : public RunStore, protected StoreTransactions {
 public:
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
  absl::Status SetBelow(const BelowRecord& below) override;
  absl::StatusOr<std::vector<BelowRecord>> Below() override;
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
  absl::Status AppendMessage(const LogMessage& message) override;
  absl::Status ReplaceHead(const CheckpointView& model) override;
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
  absl::StatusOr<std::vector<RoundRecord>> Rounds(int64_t first, int64_t last) override;
  absl::StatusOr<std::vector<ClientRecord>> Clients() override;
  absl::StatusOr<std::vector<LedgerEntry>> Ledger(int64_t first_round, int64_t last_round) override;
  absl::StatusOr<std::vector<ClientMetrics>> MetricsOfClients(int64_t first_round, int64_t last_round) override;
  absl::StatusOr<std::vector<LedgerEntry>> ClientTotals() override;
  absl::StatusOr<RunTotals> Totals() override;
  absl::StatusOr<std::vector<EventRecord>> EventsOf(const EventFilter& filter, int64_t newest) override;
  absl::StatusOr<std::vector<EventRecord>> EventsAfter(int64_t id, int64_t limit) override;

 protected:
  struct Parts {
    std::string place;               // of the run, for people
    std::unique_ptr<SqlDb> writer;   // which took the store over
    int64_t epoch = 0;               // since then
    std::unique_ptr<SqlDb> reader;   // the first one
    ReaderPool::Opener open_reader;  // opens others
    std::unique_ptr<LargeMessages> messages;
    std::unique_ptr<CheckpointStorage> checkpoints;
  };
  explicit SqlRunStore(Parts parts);

  // StoreTransactions; in the thread that has a batch, a part of the batch's transaction.
  absl::Status Write(absl::FunctionRef<absl::Status(SqlDb&)> body) final ABSL_LOCKS_EXCLUDED(write_mutex_);
  // On a reading connection that nobody else uses meanwhile; in the thread that has a batch, on the writing one.
  absl::Status Read(absl::FunctionRef<absl::Status(SqlDb&)> body) final;
  // Passes on the status of work on files beside the database; after a failed sync nothing is written any more.
  absl::Status Watch(const absl::Status& status) ABSL_LOCKS_EXCLUDED(write_mutex_);
  template <typename T>
  absl::StatusOr<T> Watch(absl::StatusOr<T> result) {
    Watch(result.status()).IgnoreError();  // passed on with the result
    return result;
  }
  absl::StatusOr<Checkpoint> NewestWholeCheckpoint() ABSL_EXCLUSIVE_LOCKS_REQUIRED(checkpoint_mutex_);
  LargeMessages& messages() { return *messages_; }

  // Held for the whole of a checkpoint, across several short transactions.
  absl::Mutex checkpoint_mutex_ ABSL_ACQUIRED_BEFORE(write_mutex_);

 private:
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
  absl::Status RetireCheckpoints(int64_t keep) ABSL_EXCLUSIVE_LOCKS_REQUIRED(checkpoint_mutex_);
  absl::StatusOr<int64_t> OldestCheapVersion(int64_t bytes);
  // `table` is keyed by version.
  absl::Status Prune(absl::string_view table, int64_t up_to) ABSL_EXCLUSIVE_LOCKS_REQUIRED(checkpoint_mutex_);
  // Removes the large messages that no row names any more.
  absl::Status RemoveMessages() ABSL_LOCKS_EXCLUDED(write_mutex_);
  // Newest first.
  absl::StatusOr<std::vector<RecordedCheckpoint>> Recorded(bool also_damaged);
  absl::Status MarkCheckpoint(int64_t version, bool damaged, const std::string& why);

  const std::string place_;
  const std::string remedy_;  // of damage
  const int64_t epoch_;

  absl::Mutex write_mutex_;
  const std::unique_ptr<SqlDb> writer_ ABSL_PT_GUARDED_BY(write_mutex_);
  // The thread that has a batch; no thread: there is none. Set under write_mutex_.
  std::atomic<std::thread::id> batch_thread_{std::thread::id()};
  bool batch_open_ ABSL_GUARDED_BY(write_mutex_) = false;    // its transaction has begun
  absl::Status batch_status_ ABSL_GUARDED_BY(write_mutex_);  // the first error of a call within it
  // Changed under write_mutex_; reads and holds need none.
  const std::unique_ptr<LargeMessages> messages_;
  // Changed under checkpoint_mutex_.
  const std::unique_ptr<CheckpointStorage> checkpoints_;
  ReaderPool readers_;
};

// Pieces that more than one of the .cc files needs.
namespace run_store_internal {

// Makes the caller the only one who may write: bumps the epoch, aborts a CLOSED round, and does what else belongs into
// that transaction. Returns the epoch.
absl::StatusOr<int64_t> TakeOver(SqlDb& db, absl::FunctionRef<absl::Status()> afterwards);
// Makes the run in `db`, which has one, one of its own (StartNewLineage). NOT_FOUND with `no_run` where there is none.
absl::Status BeginLineage(SqlDb& db, const absl::Status& no_run);
absl::Status InsertEvent(SqlDb& db, const EventRecord& event);
// RunStore::RecordReset.
absl::Status ResetClient(SqlDb& db, int64_t client);
// Aborts an OPEN or CLOSED round, with its event.
absl::Status MarkAborted(SqlDb& db, int64_t round, const std::string& reason, int64_t now_us);
// Aborts every round of that state.
absl::Status AbortRounds(SqlDb& db, RoundState state, const std::string& reason);
// The column's value; nullopt for NULL.
absl::optional<double> OptionalReal(const Statement& row, int column);
// The head as `db` sees it.
absl::StatusOr<Head> SelectHead(SqlDb& db);
// Round's state, nullopt when there is no such round.
absl::StatusOr<absl::optional<RoundState>> SelectRoundState(SqlDb& db, int64_t round);
// The first row of "SELECT * FROM clients WHERE ...", prepared and bound; NOT_FOUND with `otherwise` when there is
// none.
absl::StatusOr<ClientRecord> SelectClient(Statement& statement, absl::string_view otherwise);
// Adds an update of the round, which chose it, to its client's history.
absl::Status InsertHistory(SqlDb& db, int64_t round, const HistoryMessage& message);
// FAILED_PRECONDITION when a round is OPEN or CLOSED, or there is no run.
absl::Status ExpectMovableHead(SqlDb& db);
// Unix time in microseconds, for what the store notes on its own account (opening, damaged files).
int64_t NowUs();
// Notes a checkpoint that was written.
absl::Status RecordCheckpoint(SqlDb& db, const CheckpointView& checkpoint, const CheckpointBytes& bytes);
// The checkpoints that are recorded, newest first.
absl::StatusOr<std::vector<RecordedCheckpoint>> SelectCheckpoints(SqlDb& db, bool also_damaged);

}  // namespace run_store_internal

}  // namespace terse

#endif  // TERSE_STORAGE_SQL_RUN_STORE_H_
