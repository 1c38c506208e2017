// Background work without a thread: jobs wait until the test runs them.
#ifndef TERSE_TESTS_TESTING_INLINE_BACKGROUND_H_
#define TERSE_TESTS_TESTING_INLINE_BACKGROUND_H_

#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "coordinator/background.h"

namespace terse {

class InlineBackground : public Background {
 public:
  // Pointers must outlive this object.
  InlineBackground(Evaluator* evaluator, RunStore* store, int64_t keep)
      : evaluator_(evaluator), store_(store), keep_(keep) {}

  void Evaluate(int64_t round, SharedWeights weights) override {
    evaluated_rounds.push_back(round);
    jobs_.push_back([this, round, weights = std::move(weights)] {
      return Event(Evaluated{round, evaluator_->Evaluate(*weights)});
    });
  }

  void WriteCheckpoint(HeldCheckpoint checkpoint) override {
    jobs_.push_back([this, checkpoint = std::move(checkpoint)] {
      return Event(CheckpointWritten{checkpoint.version, store_->WriteCheckpoint(checkpoint.View(), keep_)});
    });
  }

  // Does the oldest job; its event is for the engine. nullopt when there is none.
  absl::optional<Event> RunOne() {
    if (jobs_.empty()) return absl::nullopt;
    const std::function<Event()> job = std::move(jobs_.front());
    jobs_.pop_front();
    return job();
  }

  std::vector<int64_t> evaluated_rounds;

 private:
  Evaluator* const evaluator_;
  RunStore* const store_;
  const int64_t keep_;
  std::deque<std::function<Event()>> jobs_;
};

}  // namespace terse

#endif  // TERSE_TESTS_TESTING_INLINE_BACKGROUND_H_
