// The step of SbcClient as one writes it with LibTorch, to compare with. This header does not include LibTorch.
#ifndef TERSE_BENCH_TOPK_STEP_H_
#define TERSE_BENCH_TOPK_STEP_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/types/span.h"

namespace terse {

// Residual + delta with at::add_, at::topk of each sign, the mean of the side with the larger one, its positions sorted
// and coded with Rice, and the mean subtracted from the residual by index. One thread. Not thread-safe.
class TopkStep {
 public:
  virtual ~TopkStep() = default;
  // The message's bytes, until the next call.
  virtual const std::string& Run(absl::Span<const float> delta) = 0;
};

// Makes the step for a tensor of `size` elements, `count` of which are sent.
std::unique_ptr<TopkStep> MakeTopkStep(int64_t size, int64_t count);

}  // namespace terse

#endif  // TERSE_BENCH_TOPK_STEP_H_
