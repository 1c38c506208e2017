// A RunStore in front of another one.
#ifndef TERSE_STORAGE_FORWARDING_STORE_H_
#define TERSE_STORAGE_FORWARDING_STORE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "storage/run_store.h"

namespace terse {

// Hands every call on to the store that it owns, through Around. Thread-safe where Around is.
class ForwardingStore : public RunStore {
 public:
  explicit ForwardingStore(std::unique_ptr<RunStore> store) : store_(std::move(store)) {}

  absl::Status BeginBatch() override {
    const absl::Status status = Guard("BeginBatch", [&] { return store_->BeginBatch(); });
    if (status.ok()) batch_thread_ = std::this_thread::get_id();
    return status;
  }
  absl::Status CommitBatch() override {
    const absl::Status status = Guard("CommitBatch", [&] { return store_->CommitBatch(); });
    const auto untold = EndBatch();
    if (status.ok()) {
      for (const auto& tell : untold) tell();
    }
    return status;
  }
  void DropBatch() override {
    EndBatch();
    store_->DropBatch();
  }
  absl::StatusOr<absl::optional<RunRecord>> Run() override {
    return Guard("Run", [&] { return store_->Run(); });
  }
  absl::Status CreateRun(const RunRecord& run, absl::Span<const float> weights) override {
    return Guard("CreateRun", [&] { return store_->CreateRun(run, weights); });
  }
  absl::Status SetRunState(RunState state, const std::string& reason) override {
    return Guard("SetRunState", [&] { return store_->SetRunState(state, reason); });
  }
  absl::StatusOr<Head> GetHead() override {
    return Guard("GetHead", [&] { return store_->GetHead(); });
  }
  absl::StatusOr<ClientRecord> RegisterClient(const std::string& name, int64_t now_us) override {
    return Guard("RegisterClient", [&] { return store_->RegisterClient(name, now_us); });
  }
  absl::StatusOr<ClientRecord> GetClient(int64_t client) override {
    return Guard("GetClient", [&] { return store_->GetClient(client); });
  }
  absl::StatusOr<ClientRecord> ClientNamed(const std::string& name) override {
    return Guard("ClientNamed", [&] { return store_->ClientNamed(name); });
  }
  absl::Status RecordNotApplied(int64_t client) override {
    return Guard("RecordNotApplied", [&] { return store_->RecordNotApplied(client); });
  }
  absl::Status RecordReset(int64_t client) override {
    return Guard("RecordReset", [&] { return store_->RecordReset(client); });
  }
  absl::StatusOr<ClientRecord> RecordFailure(int64_t client) override {
    return Guard("RecordFailure", [&] { return store_->RecordFailure(client); });
  }
  absl::Status SetAside(int64_t client, int64_t until_us, const std::string& reason) override {
    return Guard("SetAside", [&] { return store_->SetAside(client, until_us, reason); });
  }
  absl::Status SetSamples(int64_t client, int64_t samples) override {
    return Guard("SetSamples", [&] { return store_->SetSamples(client, samples); });
  }
  absl::Status SetBelow(const BelowRecord& below) override {
    return Guard("SetBelow", [&] { return store_->SetBelow(below); });
  }
  absl::StatusOr<std::vector<BelowRecord>> Below() override {
    return Guard("Below", [&] { return store_->Below(); });
  }
  absl::StatusOr<absl::optional<RoundRecord>> LastRound() override {
    return Guard("LastRound", [&] { return store_->LastRound(); });
  }
  absl::StatusOr<absl::optional<RoundState>> GetRoundState(int64_t round) override {
    return Guard("GetRoundState", [&] { return store_->GetRoundState(round); });
  }
  absl::StatusOr<bool> WasChosen(int64_t round, int64_t client) override {
    return Guard("WasChosen", [&] { return store_->WasChosen(round, client); });
  }
  absl::StatusOr<absl::optional<int64_t>> BaseVersionOf(int64_t round) override {
    return Guard("BaseVersionOf", [&] { return store_->BaseVersionOf(round); });
  }
  absl::StatusOr<absl::optional<Fate>> FateOf(Id128 update_id, int64_t client, int64_t round) override {
    return Guard("FateOf", [&] { return store_->FateOf(update_id, client, round); });
  }
  absl::Status OpenRound(int64_t round, int64_t base_version, int64_t now_us,
                         const absl::optional<RoundPlan>& plan = absl::nullopt) override {
    return Guard("OpenRound", [&] { return store_->OpenRound(round, base_version, now_us, plan); });
  }
  absl::Status CloseRound(int64_t round, absl::Span<const ChosenUpdate> chosen, int64_t now_us,
                          absl::Span<const RefusedUpdate> refused = {}) override {
    return Guard("CloseRound", [&] { return store_->CloseRound(round, chosen, now_us, refused); });
  }
  absl::Status CommitRound(const Commit& commit, bool open_next) override {
    return Guard("CommitRound", [&] { return store_->CommitRound(commit, open_next); });
  }
  absl::Status AppendMessage(const LogMessage& message) override {
    return Guard("AppendMessage", [&] { return store_->AppendMessage(message); });
  }
  absl::Status ReplaceHead(const CheckpointView& model) override {
    return Guard("ReplaceHead", [&] { return store_->ReplaceHead(model); });
  }
  absl::Status AbortRound(int64_t round, const std::string& reason, int64_t now_us) override {
    return Guard("AbortRound", [&] { return store_->AbortRound(round, reason, now_us); });
  }
  absl::Status SetEvaluation(int64_t round, const Evaluation& evaluation) override {
    return Guard("SetEvaluation", [&] { return store_->SetEvaluation(round, evaluation); });
  }
  absl::Status AddLedger(absl::Span<const LedgerEntry> entries) override {
    return Guard("AddLedger", [&] { return store_->AddLedger(entries); });
  }
  absl::Status AddEvent(const EventRecord& event) override {
    return Guard("AddEvent", [&] { return store_->AddEvent(event); });
  }
  absl::Status SetRetention(const Retention& retention) override {
    return Guard("SetRetention", [&] { return store_->SetRetention(retention); });
  }
  absl::StatusOr<std::vector<LogMessage>> ReadLogPart(int64_t after, int64_t up_to, int64_t max_bytes) override {
    return Guard("ReadLog", [&] { return store_->ReadLogPart(after, up_to, max_bytes); });
  }
  absl::StatusOr<int64_t> LogBytes(int64_t after) override {
    return Guard("LogBytes", [&] { return store_->LogBytes(after); });
  }
  absl::StatusOr<Id128> StartHash() override {
    return Guard("StartHash", [&] { return store_->StartHash(); });
  }
  absl::StatusOr<std::string> ReadAggregate(int64_t version) override {
    return Guard("ReadAggregate", [&] { return store_->ReadAggregate(version); });
  }
  absl::StatusOr<HistoryRecord> ReadHistory(int64_t client) override {
    return Guard("ReadHistory", [&] { return store_->ReadHistory(client); });
  }
  absl::Status CompactHistory(int64_t client, int64_t messages, absl::string_view state) override {
    return Guard("CompactHistory", [&] { return store_->CompactHistory(client, messages, state); });
  }
  absl::Status ForgetHistory(int64_t client) override {
    return Guard("ForgetHistory", [&] { return store_->ForgetHistory(client); });
  }
  absl::Status WriteCheckpoint(const CheckpointView& checkpoint, int64_t keep) override {
    return Guard("WriteCheckpoint", [&] { return store_->WriteCheckpoint(checkpoint, keep); });
  }
  absl::StatusOr<Checkpoint> ReadNewestCheckpoint() override {
    return Guard("ReadNewestCheckpoint", [&] { return store_->ReadNewestCheckpoint(); });
  }
  absl::StatusOr<CheckpointFile> NewestCheckpointFile() override {
    return Guard("NewestCheckpointFile", [&] { return store_->NewestCheckpointFile(); });
  }
  absl::Status Backup(const std::string& directory) override {
    return Guard("Backup", [&] { return store_->Backup(directory); });
  }
  absl::StatusOr<std::vector<RoundRecord>> Rounds(int64_t first, int64_t last) override {
    return Guard("Rounds", [&] { return store_->Rounds(first, last); });
  }
  absl::StatusOr<std::vector<ClientRecord>> Clients() override {
    return Guard("Clients", [&] { return store_->Clients(); });
  }
  absl::StatusOr<std::vector<LedgerEntry>> Ledger(int64_t first_round, int64_t last_round) override {
    return Guard("Ledger", [&] { return store_->Ledger(first_round, last_round); });
  }
  absl::StatusOr<std::vector<ClientMetrics>> MetricsOfClients(int64_t first_round, int64_t last_round) override {
    return Guard("MetricsOfClients", [&] { return store_->MetricsOfClients(first_round, last_round); });
  }
  absl::StatusOr<std::vector<LedgerEntry>> ClientTotals() override {
    return Guard("ClientTotals", [&] { return store_->ClientTotals(); });
  }
  absl::StatusOr<RunTotals> Totals() override {
    return Guard("Totals", [&] { return store_->Totals(); });
  }
  absl::StatusOr<std::vector<EventRecord>> EventsOf(const EventFilter& filter, int64_t newest) override {
    return Guard("Events", [&] { return store_->EventsOf(filter, newest); });
  }
  absl::StatusOr<std::vector<EventRecord>> EventsAfter(int64_t id, int64_t limit) override {
    return Guard("EventsAfter", [&] { return store_->EventsAfter(id, limit); });
  }

 protected:
  // Runs `tell` once what was changed so far is durable: at the end of the calling thread's batch, or at once when it
  // has none. Never when the batch fails.
  void OnceDurable(std::function<void()> tell) {
    if (batch_thread_.load() != std::this_thread::get_id()) return tell();
    untold_.push_back(std::move(tell));
  }

  // Makes the call of this name, in the caller's thread. Its status is what the caller gets, with the call's value when
  // it is OK.
  virtual absl::Status Around(absl::string_view name, absl::FunctionRef<absl::Status()> call) = 0;

 private:
  static const absl::Status& StatusOf(const absl::Status& status) { return status; }
  template <typename T>
  static const absl::Status& StatusOf(const absl::StatusOr<T>& value) {
    return value.status();
  }

  template <typename Call>
  auto Guard(absl::string_view name, Call call) -> decltype(call()) {
    decltype(call()) result = absl::InternalError("the store was not asked");
    const absl::Status status = Around(name, [&] {
      result = call();
      return StatusOf(result);
    });
    if (!status.ok()) return status;
    return result;
  }

  std::vector<std::function<void()>> EndBatch() {
    if (batch_thread_.load() != std::this_thread::get_id()) return {};
    std::vector<std::function<void()>> untold = std::exchange(untold_, {});
    batch_thread_ = std::thread::id();
    return untold;
  }

  const std::unique_ptr<RunStore> store_;
  std::atomic<std::thread::id> batch_thread_{std::thread::id()};  // the thread that has a batch
  std::vector<std::function<void()>> untold_;                     // of that thread
};

}  // namespace terse

#endif  // TERSE_STORAGE_FORWARDING_STORE_H_
