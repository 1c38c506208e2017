#include "client/shared_models.h"

#include <utility>

namespace terse {

SharedModels::Weights SharedModels::Find(Id128 hash) {
  absl::MutexLock lock(&mutex_);
  const auto found = models_.find(hash);
  return found == models_.end() ? nullptr : found->second.lock();
}

SharedModels::Weights SharedModels::Keep(Id128 hash, std::vector<float> weights) {
  absl::MutexLock lock(&mutex_);
  for (auto model = models_.begin(); model != models_.end();) {
    model = model->second.expired() && model->first != hash ? models_.erase(model) : std::next(model);
  }
  std::weak_ptr<const std::vector<float>>& kept = models_[hash];
  if (Weights known = kept.lock()) return known;
  auto model = std::make_shared<const std::vector<float>>(std::move(weights));
  kept = model;
  return model;
}

}  // namespace terse
