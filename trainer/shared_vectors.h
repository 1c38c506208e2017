// The vectors of a model in memory that a client and its trainer share, so that they need not go through a socket.
#ifndef TERSE_TRAINER_SHARED_VECTORS_H_
#define TERSE_TRAINER_SHARED_VECTORS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "trainer/owned_file.h"

namespace terse {

// The type of the vectors' elements: Hello::dtype, "float32" or "bfloat16".
enum class VectorType { kFloat32, kBfloat16 };

// An empty memory file for Create, which other programs do not inherit. RESOURCE_EXHAUSTED when the system gives none.
absl::StatusOr<OwnedFile> MakeMemoryFile();

// A mapping of a memory file. The other process may change what is in it at any time: the client copies before it
// looks. Not thread-safe.
class SharedVectors {
 public:
  // Bytes of the three vectors of a model.
  static int64_t Bytes(int64_t elements, VectorType type = VectorType::kFloat32) {
    return 3 * elements * static_cast<int64_t>(type == VectorType::kFloat32 ? sizeof(float) : sizeof(uint16_t));
  }

  SharedVectors() = default;
  ~SharedVectors();
  SharedVectors(const SharedVectors&) = delete;
  SharedVectors& operator=(const SharedVectors&) = delete;

  // Gives the empty memory file `fd` its size, for good: nobody can take pages away under the other's feet. Then maps
  // it. RESOURCE_EXHAUSTED without memory; INTERNAL when the file is not as it was made. Once, in the client.
  absl::Status Create(int fd, int64_t elements, VectorType type = VectorType::kFloat32);
  // Maps what Create made; the same statuses. Once, in the trainer.
  absl::Status Map(int fd, int64_t elements, VectorType type = VectorType::kFloat32);

  VectorType type() const { return type_; }
  // The vectors of a mapping of float32.
  absl::Span<float> weights() const { return Vector<float>(0); }
  absl::Span<float> result() const { return Vector<float>(1); }
  absl::Span<float> snapshot() const { return Vector<float>(2); }
  // The vectors of a mapping of bfloat16: the upper halves of floats.
  absl::Span<uint16_t> weights16() const { return Vector<uint16_t>(0); }
  absl::Span<uint16_t> result16() const { return Vector<uint16_t>(1); }

 private:
  template <typename T>
  absl::Span<T> Vector(size_t i) const {
    return {static_cast<T*>(memory_) + i * elements_, elements_};
  }

  void* memory_ = nullptr;
  size_t elements_ = 0;
  VectorType type_ = VectorType::kFloat32;
};

}  // namespace terse

#endif  // TERSE_TRAINER_SHARED_VECTORS_H_
