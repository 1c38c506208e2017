// Random sparsification with a shared seed: the random mask of Konecny, McMahan, Yu, Richtarik, Suresh, Bacon,
// "Federated Learning: Strategies for Improving Communication Efficiency" (2016), section 2. For each tensor k = max(1,
// density * n rounded to nearest, halves up) elements are sent, chosen uniformly without looking at their values.
// Positions do not travel: the message carries the seed that both ends draw them from.
//
// Settings: density; code "simple" sends the values as they are, for use with error feedback (biased); code "unbiased"
// scales them by n / k, for use without (then unbiased: every element is chosen with probability k / n, up to 2^-64 in
// the seed's distribution; the scaled value is value * n / k in double, rounded to float32, the largest one instead of
// infinity). Not lossless unless k = n; stochastic. All values, zeros and denormals too, are sent alike; a tensor with
// one element is sent whole. NaN and infinity are refused with tensor and index wherever they stand.
//
// The choice, integers only (FORMAT.md): Floyd's algorithm (Bentley, Floyd, "A Sample of Brilliance", 1987) on the
// stream of words that CounterRandom draws for the run `seed` and the tensor. O(k) draws; O(n) bits of memory while a
// tensor is read.
//
// Cost: 64 bits, and 32 bits an element.
#ifndef TERSE_COMPRESSION_RANDOM_SPARSE_H_
#define TERSE_COMPRESSION_RANDOM_SPARSE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compression/tensor_codec.h"
#include "core/layout.h"
#include "core/run_config.h"

namespace terse {

// `count` distinct positions below `size`, increasing, every set of them equally likely; 1 <= count <= size < 2^31.
std::vector<uint32_t> ChoosePositions(uint64_t seed, int64_t tensor, int64_t count, int64_t size);

// The contract is Codec's.
class RandomSparseCodec : public TensorCodec {
 public:
  // INVALID_ARGUMENT for a density out of range or an unknown code.
  static absl::StatusOr<std::unique_ptr<const Codec>> Create(const CodecSpec& spec, const Layout& layout);

  absl::string_view name() const override { return "random_sparse"; }
  CodecTraits traits() const override;

 private:
  class Reader;

  RandomSparseCodec(const Layout& layout, std::vector<int64_t> counts, bool unbiased);

  absl::Status EncodeTensors(absl::Span<const TensorInput> tensors, BitWriter* writer) const override;
  absl::StatusOr<int64_t> TensorsBits(absl::Span<const TensorInput> tensors) const override;
  std::unique_ptr<TensorReader> NewReader() const override;

  // Returns the number that is sent for `value`.
  float Scaled(float value, int64_t tensor) const;

  const std::vector<int64_t> counts_;  // k of each tensor
  const bool unbiased_;
  int64_t bits_;
};

}  // namespace terse

#endif  // TERSE_COMPRESSION_RANDOM_SPARSE_H_
