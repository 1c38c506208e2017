// The vectors of a model in memory that a client and its trainer share, so that they need not go through a socket.
#ifndef TERSE_TRAINER_SHARED_VECTORS_H_
#define TERSE_TRAINER_SHARED_VECTORS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace terse {

// A mapping of a memory file. The other process may change what is in it at any time: the client copies before it
// looks. Not thread-safe.
class SharedVectors {
 public:
  // Bytes of the three vectors of a model.
  static int64_t Bytes(int64_t elements) { return 3 * elements * static_cast<int64_t>(sizeof(float)); }

  SharedVectors() = default;
  ~SharedVectors();
  SharedVectors(const SharedVectors&) = delete;
  SharedVectors& operator=(const SharedVectors&) = delete;

  // Gives the empty memory file `fd` its size, for good: nobody can take pages away under the other's feet. Then maps
  // it. RESOURCE_EXHAUSTED without memory; INTERNAL when the file is not as it was made. Once, in the client.
  absl::Status Create(int fd, int64_t elements);
  // Maps what Create made; the same statuses. Once, in the trainer.
  absl::Status Map(int fd, int64_t elements);

  bool mapped() const { return floats_ != nullptr; }
  absl::Span<float> weights() const { return {floats_, elements_}; }
  absl::Span<float> result() const { return {floats_ + elements_, elements_}; }
  absl::Span<float> snapshot() const { return {floats_ + 2 * elements_, elements_}; }

 private:
  float* floats_ = nullptr;
  size_t elements_ = 0;
};

}  // namespace terse

#endif  // TERSE_TRAINER_SHARED_VECTORS_H_
