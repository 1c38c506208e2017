// Random numbers inside LibTorch's operations, such as dropout's. Includes LibTorch; used inside learning/ only.
#ifndef TERSE_LEARNING_SEEDED_DRAWS_H_
#define TERSE_LEARNING_SEEDED_DRAWS_H_

#include <cstdint>
#include <mutex>

namespace terse {

// LibTorch draws from one generator per process and device. While it lives, this object has them for itself, from this
// seed on; others wait.
class SeededDraws {
 public:
  explicit SeededDraws(uint64_t seed);

 private:
  const std::lock_guard<std::mutex> lock_;
};

}  // namespace terse

#endif  // TERSE_LEARNING_SEEDED_DRAWS_H_
