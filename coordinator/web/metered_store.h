// A run's store that counts for the metrics.
#ifndef TERSE_COORDINATOR_WEB_METERED_STORE_H_
#define TERSE_COORDINATOR_WEB_METERED_STORE_H_

#include <prometheus/registry.h>

#include <atomic>
#include <memory>
#include <string>

#include "storage/forwarding_store.h"

namespace terse {

// Everything that is counted about runs becomes durable through their stores, so that is where it is counted: once it
// is durable, and exactly what is. Counters live in `registry`, which must outlive the store. Thread-safe.
class MeteredStore : public ForwardingStore {
 public:
  MeteredStore(const std::string& run, std::unique_ptr<RunStore> store, prometheus::Registry* registry);
  ~MeteredStore() override;

  absl::Status OpenRound(int64_t round, int64_t base_version, int64_t now_us,
                         const absl::optional<RoundPlan>& plan = absl::nullopt) override;
  absl::Status CloseRound(int64_t round, absl::Span<const ChosenUpdate> chosen, int64_t now_us,
                          absl::Span<const RefusedUpdate> refused = {}) override;
  absl::Status CommitRound(const Commit& commit, bool open_next) override;
  absl::Status AbortRound(int64_t round, const std::string& reason, int64_t now_us) override;
  absl::Status RecordNotApplied(int64_t client) override;
  absl::Status RecordReset(int64_t client) override;
  absl::StatusOr<ClientRecord> RecordFailure(int64_t client) override;
  absl::Status AddLedger(absl::Span<const LedgerEntry> entries) override;
  absl::Status SetEvaluation(int64_t round, const Evaluation& evaluation) override;

 protected:
  absl::Status Around(absl::string_view name, absl::FunctionRef<absl::Status()> call) override;

 private:
  struct Counters;
  void Count(absl::Span<const LedgerEntry> entries);

  const std::unique_ptr<Counters> counters_;
  // The round in hand, which one thread at a time drives. 0: this store has not seen it open.
  std::atomic<int64_t> opened_us_{0}, closed_us_{0}, chosen_{0}, slowest_us_{0};
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_WEB_METERED_STORE_H_
