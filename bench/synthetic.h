// Tensors and positions that benchmarks work on, the same on every machine.
#ifndef TERSE_BENCH_SYNTHETIC_H_
#define TERSE_BENCH_SYNTHETIC_H_

#include <cstdint>
#include <vector>

#include "core/layout.h"
#include "core/random.h"

namespace terse {

// ResNet50's number of parameters, nearly.
constexpr int64_t kLargeTensor = 25'600'000;

Layout OneTensor(int64_t size);
// The eight tensors of LeNet5-Caffe, 431,080 elements.
Layout LeNet5Tensors();

// Returns normal draws of standard deviation 1.
std::vector<float> Gaussian(int64_t size, uint64_t seed);

// Updates without end for a client: Laplace, the usual picture of weight updates, of mean magnitude 1. Each is the same
// numbers in another place, so that large ones come fast.
class UpdateStream {
 public:
  UpdateStream(int64_t size, uint64_t seed);

  // Overwrites all of `update`, which has `size` elements.
  void Next(std::vector<float>* update);

 private:
  Random random_;
  std::vector<float> numbers_;
};

// `count` different positions below `size`, uniform, increasing. count <= size.
std::vector<uint32_t> RandomPositions(int64_t count, int64_t size, uint64_t seed);

// log2 of the number of ways to choose `count` of `size` positions, over `count`: no coder that does not know more can
// take fewer bits a position. 1 <= count <= size.
double PositionEntropy(int64_t count, int64_t size);

}  // namespace terse

#endif  // TERSE_BENCH_SYNTHETIC_H_
