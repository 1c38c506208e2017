// Work that must not stand in a round's way: evaluation and checkpoint files.
#ifndef TERSE_COORDINATOR_BACKGROUND_H_
#define TERSE_COORDINATOR_BACKGROUND_H_

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "coordinator/events.h"
#include "coordinator/held_state.h"
#include "core/trainer.h"
#include "storage/run_store.h"

namespace terse {

// Weights that nobody changes any more, and that live for as long as somebody holds them.
using SharedWeights = std::shared_ptr<const std::vector<float>>;

// A checkpoint that shares the model's weights and the server's state.
struct HeldCheckpoint {
  int64_t version = 0;
  Id128 model_hash;
  SharedWeights weights;
  HeldState server_state = {};

  CheckpointView View() const { return {version, model_hash, *weights, server_state.parts}; }
};

// Slow work that the engine asks for. The answer comes back as an event.
class Background {
 public:
  virtual ~Background() = default;
  // Answered by Evaluated.
  virtual void Evaluate(int64_t round, SharedWeights weights) = 0;
  // Answered by CheckpointWritten.
  virtual void WriteCheckpoint(HeldCheckpoint checkpoint) = 0;
};

// A thread for evaluations and one for checkpoints, each first come, first served. At most kMaxQueued jobs of a kind
// wait (each holds one version of the model); one beyond that waits for its turn in the caller. An evaluation by an
// evaluator that sets its own pace fails instead. Thread-safe.
class BackgroundWorker : public Background {
 public:
  static constexpr int kMaxQueued = 4;

  // `post` hands events to the engine's loop; everything must outlive this object. `keep` checkpoint files are kept.
  // `evaluator` may be null where nothing is evaluated.
  BackgroundWorker(Evaluator* evaluator, RunStore* store, int64_t keep, std::function<void(Event)> post);
  // As Finish.
  ~BackgroundWorker() override;

  // Finishes the queued jobs (an evaluator may give up its own), and drops those that are asked for
  // from then on.
  void Finish();

  void Evaluate(int64_t round, SharedWeights weights) override;
  void WriteCheckpoint(HeldCheckpoint checkpoint) override;

 private:
  class Lane {
   public:
    Lane() : thread_([this] { Work(); }) {}

    void Finish();
    // False when it has no room and does not wait for it.
    bool Add(std::function<void()> job, bool waits_for_room);

   private:
    void Work();
    bool HasRoom() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return closing_ || jobs_.size() < kMaxQueued; }
    bool HasWork() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return closing_ || !jobs_.empty(); }

    absl::Mutex mutex_;
    std::deque<std::function<void()>> jobs_ ABSL_GUARDED_BY(mutex_);
    bool closing_ ABSL_GUARDED_BY(mutex_) = false;
    std::thread thread_;
  };

  Evaluator* const evaluator_;
  RunStore* const store_;
  const int64_t keep_;
  const std::function<void(Event)> post_;
  std::atomic<bool> is_finishing_{false};
  Lane evaluations_;
  Lane checkpoints_;
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_BACKGROUND_H_
