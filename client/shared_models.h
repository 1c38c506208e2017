// Weights that many sessions of one process hold, each version once.
#ifndef TERSE_CLIENT_SHARED_MODELS_H_
#define TERSE_CLIENT_SHARED_MODELS_H_

#include <map>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "core/id128.h"

namespace terse {

// Finds weights by their hash (HashWeights). They live as long as a session holds them. Thread-safe.
class SharedModels {
 public:
  using Weights = std::shared_ptr<const std::vector<float>>;

  // Null when nobody holds weights of this hash.
  Weights Find(Id128 hash) ABSL_LOCKS_EXCLUDED(mutex_);
  // Keeps `weights`, whose hash is `hash`. Returns them, or those that are kept already.
  Weights Keep(Id128 hash, std::vector<float> weights) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::Mutex mutex_;
  std::map<Id128, std::weak_ptr<const std::vector<float>>> models_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace terse

#endif  // TERSE_CLIENT_SHARED_MODELS_H_
