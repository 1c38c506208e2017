// A run's store in memory: the rules of storage/run_store.h without disk and SQL, for the fuzzers, which need thousands
// of stores a second. tests/storage/memory_run_store_test.cc holds it to what the real store does.
#ifndef TERSE_TESTS_TESTING_MEMORY_RUN_STORE_H_
#define TERSE_TESTS_TESTING_MEMORY_RUN_STORE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "storage/run_store.h"

namespace terse {

// Never fails but for the rules: what a call may return is its status at RunStore without those of disks. Not
// thread-safe.
class MemoryRunStore : public RunStore {
 public:
  // Acts as RunStore::Open on a store that another process left: begins a new epoch, and aborts a CLOSED round unless
  // the run is a relay's.
  void Reopen();
  // How often the events table grew, and the newest of them; older ones are forgotten.
  int64_t event_count() const { return event_count_; }
  // The updates of every committed round, in order.
  const std::vector<ChosenUpdate>& applied() const { return applied_; }

  // It never fails, so what is done needs no taking back.
  absl::Status BeginBatch() override { return absl::OkStatus(); }
  absl::Status CommitBatch() override { return absl::OkStatus(); }
  void DropBatch() override {}
  absl::StatusOr<absl::optional<RunRecord>> Run() override { return run_; }
  absl::Status CreateRun(const RunRecord& run, absl::Span<const float> initial_weights) override;
  absl::Status SetRunState(RunState state, const std::string& reason) override;
  absl::StatusOr<Head> GetHead() override { return head_; }
  absl::StatusOr<Id128> StartHash() override { return start_hash_; }
  absl::StatusOr<ClientRecord> RegisterClient(const std::string& name, int64_t now_us) override;
  absl::StatusOr<ClientRecord> GetClient(int64_t client) override;
  absl::StatusOr<ClientRecord> ClientNamed(const std::string& name) override;
  absl::Status RecordNotApplied(int64_t client) override;
  absl::Status RecordReset(int64_t client) override;
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
                          absl::Span<const RefusedUpdate> refused = {}) override;
  absl::Status CommitRound(const Commit& commit, bool open_next) override;
  absl::Status AppendMessage(const LogMessage& message) override;
  absl::Status ReplaceHead(const CheckpointView& model) override;
  absl::Status AbortRound(int64_t round, const std::string& reason, int64_t now_us) override;
  absl::Status SetEvaluation(int64_t round, const Evaluation& evaluation) override;
  absl::Status AddLedger(absl::Span<const LedgerEntry> entries) override;
  absl::Status AddEvent(const EventRecord& event) override;
  // Keeps every round whatever the setting is: no test of the fuzzers' length reaches one.
  absl::Status SetRetention(const Retention& retention) override { return absl::OkStatus(); }
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
  absl::StatusOr<std::vector<ClientRecord>> Clients() override { return clients_; }
  absl::StatusOr<std::vector<LedgerEntry>> Ledger(int64_t first_round, int64_t last_round) override;
  absl::StatusOr<std::vector<ClientMetrics>> MetricsOfClients(int64_t first_round, int64_t last_round) override;
  absl::StatusOr<std::vector<LedgerEntry>> ClientTotals() override;
  absl::StatusOr<RunTotals> Totals() override;
  absl::StatusOr<std::vector<EventRecord>> EventsOf(const EventFilter& filter, int64_t newest) override;
  absl::StatusOr<std::vector<EventRecord>> EventsAfter(int64_t id, int64_t limit) override;

 private:
  struct Round {
    RoundRecord record;
    std::vector<ChosenUpdate> chosen;
    std::vector<RefusedUpdate> refused;
  };

  // FAILED_PRECONDITION unless the round may open.
  absl::Status CheckOpen(int64_t round, int64_t base_version, const Head& head, const RoundRecord* last) const;
  absl::Status CheckCommit(const Commit& commit, bool open_next) const;
  // FAILED_PRECONDITION when a round is open or closed, or there is no run.
  absl::Status CheckMovableHead() const;
  absl::Status CheckLedger(absl::Span<const LedgerEntry> entries) const;
  // Empty for no client.
  std::string NameOf(int64_t client) const;
  // From which the log to the head has at most so many bytes; it is kept, however old.
  int64_t OldestCheapVersion(int64_t bytes) const;
  const Round* FindRound(int64_t round) const;
  // nullptr for a client that was never registered.
  ClientRecord* FindClient(int64_t client);
  // FAILED_PRECONDITION for one.
  template <typename Change>
  absl::Status ChangeClient(int64_t client, Change change);

  absl::optional<RunRecord> run_;
  Head head_{0, Id128{}, 1};
  Id128 start_hash_;
  std::vector<ClientRecord> clients_;  // by id
  std::vector<Round> rounds_;          // round i + 1 at i
  std::map<int64_t, LogMessage> log_;
  std::map<int64_t, std::string> aggregates_;
  std::map<int64_t, HistoryRecord> histories_;  // by client
  std::map<int64_t, Checkpoint> checkpoints_;
  std::vector<LedgerEntry> ledger_;
  std::map<int64_t, BelowRecord> below_;  // by client
  std::vector<EventRecord> events_;
  int64_t event_count_ = 0;
  std::vector<ChosenUpdate> applied_;
};

}  // namespace terse

#endif  // TERSE_TESTS_TESTING_MEMORY_RUN_STORE_H_
