#include "coordinator/background.h"

#include <utility>

namespace terse {

BackgroundWorker::BackgroundWorker(Evaluator* evaluator, RunStore* store, int64_t keep, std::function<void(Event)> post)
    : evaluator_(evaluator), store_(store), keep_(keep), post_(std::move(post)), thread_([this] { Work(); }) {}

BackgroundWorker::~BackgroundWorker() { Finish(); }

void BackgroundWorker::Finish() {
  {
    absl::MutexLock lock(&mutex_);
    closing_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void BackgroundWorker::Evaluate(int64_t round, SharedWeights weights) {
  Enqueue([this, round, weights = std::move(weights)] { post_(Evaluated{round, evaluator_->Evaluate(*weights)}); });
}

void BackgroundWorker::WriteCheckpoint(HeldCheckpoint checkpoint) {
  Enqueue([this, checkpoint = std::move(checkpoint)] {
    post_(CheckpointWritten{checkpoint.version, store_->WriteCheckpoint(checkpoint.View(), keep_)});
  });
}

void BackgroundWorker::Enqueue(std::function<void()> job) {
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(this, &BackgroundWorker::HasRoom));
  if (closing_) return;
  jobs_.push_back(std::move(job));
}

void BackgroundWorker::Work() {
  while (true) {
    std::function<void()> job;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(this, &BackgroundWorker::HasWork));
      if (jobs_.empty()) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    job();
  }
}

}  // namespace terse
