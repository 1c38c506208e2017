// The place where the two halves of a relay meet: the client half, whose thread speaks with the coordinator above, and
// the engine of the run that the relay serves to its own clients.
#ifndef TERSE_RELAY_COHORT_DESK_H_
#define TERSE_RELAY_COHORT_DESK_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "coordinator/events.h"
#include "coordinator/rpc/run_registry.h"
#include "coordinator/upstream.h"
#include "core/id128.h"
#include "core/session_messages.h"

namespace terse {

// A round of the relay's whose result is sealed in its own update.
struct SealedCohort {
  Id128 lineage;      // of the relay's run; zero: there is none
  int64_t round = 0;  // of that run
};

// The calls of Upstream come from the engine's thread, all others but OnFailure's from the client half's: one at a
// time. A call that waits for the run ends when `stop` becomes true.
class CohortDesk : public Upstream {
 public:
  // `stop` must outlive it.
  explicit CohortDesk(const std::atomic<bool>* stop) : stop_(stop) {}

  // Takes what the relay's own state says, whenever it is read: before the runs are opened, and when the client half
  // opens it.
  void SetSealed(const SealedCohort& sealed) ABSL_LOCKS_EXCLUDED(mutex_);
  // Once, before any other call of the client half. `on_failure` hears of an error after which the process cannot go
  // on. `runs` must outlive the client half.
  void Begin(RunRegistry* runs, std::function<void(const absl::Status&)> on_failure);

  // Upstream.
  absl::StatusOr<int64_t> SealedRound(Id128 lineage) override ABSL_LOCKS_EXCLUDED(mutex_);
  void HandUp(CohortResult result) override ABSL_LOCKS_EXCLUDED(mutex_);
  void Decline(const std::string& reason) override ABSL_LOCKS_EXCLUDED(mutex_);

  // The coordinator above has welcomed the relay. A run of another family that the relay served until now is ended.
  void Join(const Welcome& welcome);
  const Welcome& welcome() const { return welcome_; }
  // The run's TorchScript file, before the first model.
  void TakeModule(std::string module) { module_ = std::move(module); }
  // A whole model came from above: the run is made with it, or goes on from it.
  void TakeModel(int64_t version, std::vector<float> weights);
  // A message from above, which leads to the next model.
  void TakeMessage(const Downstream& message);
  // The coding of the round that is assigned next.
  void TakeChoice(int64_t choice) { choice_ = choice; }
  // Whether the run here is at this version of the model, or was.
  bool Reaches(int64_t version) const;
  // The run is over.
  void Finish(const std::string& reason);

  // Whether enough clients are connected for a round, or nobody knows yet how many that are: a relay without them
  // should not be connected above, where rounds would wait for it.
  bool HasClients() const;
  // Orders a round and waits for its result, which is then to be sealed. Asks `keep_going` meanwhile; CANCELLED when
  // that is false. UNAVAILABLE when the run here must first be brought to the model above, and when too few clients
  // have been here for kMostLacking.
  absl::StatusOr<CohortResult> MakeRound(const RoundOrder& order, const std::function<bool()>& keep_going)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns what the relay's state says with the next update: with the result that MakeRound returned last and that is
  // not settled, or without.
  SealedCohort taken() const ABSL_LOCKS_EXCLUDED(mutex_);
  // That result is sealed, durably.
  void Seal() ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns what the run here says of the tree below; nullopt while it is not served.
  absl::optional<BelowFacts> Below() const;
  // Samples of the training data of all clients that the run knows; at least 1.
  int64_t samples() const;

  static constexpr absl::Duration kMostLacking = absl::Seconds(10);

 private:
  // A result's way: it is awaited, is there, is taken to be sealed.
  enum class Stage { kNone, kAwaited, kThere, kTaken };

  // The run of the relay; null: none yet.
  RunHost* Run() const;
  // Gives the run an event, as soon as it is served.
  void Post(Event event) const;
  // Calls `use` while the run is served, again after UNAVAILABLE.
  absl::Status UseRun(const std::function<absl::Status(const RunHost::Live&)>& use) const;
  bool Sleep() const;  // false when the process is to stop
  // Nobody waits for the result any more.
  void Withdraw(const std::string& reason) ABSL_LOCKS_EXCLUDED(mutex_);
  bool IsAnswered() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return stage_ == Stage::kThere || !declined_.empty(); }
  // A result that was taken and not said to be sealed, though the client half goes on: the state tells what became of
  // it. The round must be settled before the model moves.
  void SettleTaken() ABSL_LOCKS_EXCLUDED(mutex_);

  const std::atomic<bool>* const stop_;
  // The client half's.
  RunRegistry* runs_ = nullptr;
  std::function<void(const absl::Status&)> on_failure_;
  Welcome welcome_;
  std::string module_;
  int64_t choice_ = 0;

  mutable absl::Mutex mutex_;
  Stage stage_ ABSL_GUARDED_BY(mutex_) = Stage::kNone;
  CohortResult result_ ABSL_GUARDED_BY(mutex_);  // of kThere
  SealedCohort taken_ ABSL_GUARDED_BY(mutex_);   // of kTaken: what the result is, once it is sealed
  std::string declined_ ABSL_GUARDED_BY(mutex_);
  SealedCohort sealed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace terse

#endif  // TERSE_RELAY_COHORT_DESK_H_
