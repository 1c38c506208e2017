// A run's store that tells the log.
#ifndef TERSE_COORDINATOR_RPC_LOGGED_STORE_H_
#define TERSE_COORDINATOR_RPC_LOGGED_STORE_H_

#include <memory>
#include <string>

#include "storage/forwarding_store.h"

namespace terse {

// Writes the log of component "run": rounds at level debug, once they are durable, and the run's events. Thread-safe.
class LoggedStore : public ForwardingStore {
 public:
  LoggedStore(std::string run, std::unique_ptr<RunStore> store);

  absl::Status OpenRound(int64_t round, int64_t base_version, int64_t now_us,
                         const absl::optional<RoundPlan>& plan = absl::nullopt) override;
  absl::Status CloseRound(int64_t round, absl::Span<const ChosenUpdate> chosen, int64_t now_us,
                          absl::Span<const RefusedUpdate> refused = {}) override;
  absl::Status CommitRound(const Commit& commit, bool open_next) override;
  absl::Status SetEvaluation(int64_t round, const Evaluation& evaluation) override;

  // Tells of an event: a warning where work, or a client, is lost.
  void LogEvent(const EventRecord& event);

 protected:
  absl::Status Around(absl::string_view name, absl::FunctionRef<absl::Status()> call) override;

 private:
  void LogOpened(int64_t round, int64_t base_version);
  void LogRound(int64_t round, std::string message);

  const std::string run_;
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_RPC_LOGGED_STORE_H_
