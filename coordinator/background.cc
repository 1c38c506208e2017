#include "coordinator/background.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace terse {

BackgroundWorker::BackgroundWorker(Evaluator* evaluator, RunStore* store, int64_t keep, std::function<void(Event)> post)
    : evaluator_(evaluator), store_(store), keep_(keep), post_(std::move(post)) {}

BackgroundWorker::~BackgroundWorker() { Finish(); }

void BackgroundWorker::Finish() {
  is_finishing_ = true;
  evaluations_.Finish();
  checkpoints_.Finish();
}

void BackgroundWorker::Evaluate(int64_t round, SharedWeights weights) {
  const bool is_taken = evaluations_.Add(
      [this, round, weights = std::move(weights)] {
        const auto keep_going = [this] { return !is_finishing_; };
        post_(Evaluated{round, evaluator_->EvaluateRound(round, *weights, keep_going)});
      },
      /*waits_for_room=*/!evaluator_->sets_own_pace());
  if (is_taken) return;
  post_(
      Evaluated{round, absl::UnavailableError(absl::StrCat("the evaluator is ", kMaxQueued,
                                                           " rounds behind; evaluate less often, or make it faster"))});
}

void BackgroundWorker::WriteCheckpoint(HeldCheckpoint checkpoint) {
  checkpoints_.Add(
      [this, checkpoint = std::move(checkpoint)] {
        post_(CheckpointWritten{checkpoint.version, store_->WriteCheckpoint(checkpoint.View(), keep_)});
      },
      /*waits_for_room=*/true);
}

void BackgroundWorker::Lane::Finish() {
  {
    absl::MutexLock lock(&mutex_);
    closing_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

bool BackgroundWorker::Lane::Add(std::function<void()> job, bool waits_for_room) {
  absl::MutexLock lock(&mutex_);
  if (!waits_for_room && !HasRoom()) return false;
  mutex_.Await(absl::Condition(this, &Lane::HasRoom));
  if (!closing_) jobs_.push_back(std::move(job));
  return true;
}

void BackgroundWorker::Lane::Work() {
  while (true) {
    std::function<void()> job;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(this, &Lane::HasWork));
      if (jobs_.empty()) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    job();
  }
}

}  // namespace terse
