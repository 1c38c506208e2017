// Mini-batches as tensors: examples in shuffled order, or windows of a text one after the other. Includes LibTorch;
// used inside learning/ only.
#ifndef TERSE_LEARNING_BATCHES_H_
#define TERSE_LEARNING_BATCHES_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/run_config.h"
#include "learning/batch_stream.h"
#include "learning/datasets/dataset.h"
#include "learning/partition.h"

namespace terse {

struct Batch {
  at::Tensor x;        // float [batch, ...], or int64 [batch, time] for texts
  at::Tensor target;   // int64 [batch] for classes, float [batch, ...] for values, int64 [batch, time] for texts
  bool fresh = false;  // texts: these windows do not follow the ones before
};

// Endless batches of one client. Not thread-safe. Methods may throw c10::Error.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  virtual Batch Next() = 0;
  virtual BatchStream::Position position() const = 0;
  // Continues at `position`; returns false, and changes nothing, when there is no such position.
  virtual bool Seek(BatchStream::Position position) = 0;
  // Returns the number of examples, or of symbols of a text: the client's weight.
  virtual int64_t samples() const = 0;
  // Returns the number of rows of a batch.
  virtual int64_t rows() const = 0;
};

// Bytes as the model takes them: 0..1, or each image with mean 0 and deviation 1 (TensorFlow's
// per_image_standardization: at least 1 / sqrt(n)). Floats stay as they are. `x` is [batch, shape...].
at::Tensor FeaturesOf(const Column& column, absl::Span<const uint32_t> indices, const std::string& normalize,
                      c10::Device device);
at::Tensor TargetsOf(const Column& column, absl::Span<const uint32_t> indices, c10::Device device);

// Batches of the examples `indices` of dataset->train in the order of BatchStream, with spec.normalize and
// spec.augment. INVALID_ARGUMENT when there is no example, a batch size below 1, or images to augment that are none.
absl::StatusOr<std::unique_ptr<BatchSource>> MakeExampleBatches(std::shared_ptr<const Dataset> dataset,
                                                                std::vector<uint32_t> indices, const DataSpec& spec,
                                                                int64_t batch_size, uint64_t seed, int64_t shard_index,
                                                                c10::Device device);

// The symbols of `range` cut into batch_size rows of equal length, which are read
// side by side, `unroll` symbols at a time; the target is the next symbol. A rest that fills no window is left out, and
// an epoch begins at the front. INVALID_ARGUMENT when there is not a single window.
absl::StatusOr<std::unique_ptr<BatchSource>> MakeTextBatches(std::shared_ptr<const Text> text, DataRange range,
                                                             int64_t batch_size, int64_t unroll, c10::Device device);

}  // namespace terse

#endif  // TERSE_LEARNING_BATCHES_H_
