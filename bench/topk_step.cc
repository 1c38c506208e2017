#include "bench/topk_step.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <tuple>
#include <vector>

#include "bench/measure.h"
#include "compression/bit_stream.h"
#include "compression/position_coder_table.h"

namespace terse {
namespace {

class AtTopkStep : public TopkStep {
 public:
  AtTopkStep(int64_t size, int64_t count)
      : count_(count), residual_(at::zeros({size})), rice_(*Must(FindPositionCoder("rice"))) {
    at::set_num_threads(1);
  }

  const std::string& Run(absl::Span<const float> delta) override {
    residual_.add_(at::from_blob(const_cast<float*>(delta.data()), {residual_.size(0)}));
    const auto positive = at::topk(residual_, count_, 0, /*largest=*/true, /*sorted=*/false);
    const auto negative = at::topk(residual_, count_, 0, /*largest=*/false, /*sorted=*/false);
    const float up = std::get<0>(positive).mean().item<float>();
    const float down = std::get<0>(negative).mean().item<float>();
    const bool take_positive = up >= -down;
    const at::Tensor indices = std::get<0>(std::get<1>(take_positive ? positive : negative).sort());
    Write(indices, take_positive ? up : down);
    residual_.index_add_(0, indices, at::full({count_}, take_positive ? -up : -down));
    return message_;
  }

 private:
  void Write(const at::Tensor& indices, float mean) {
    const int64_t* const sorted = indices.data_ptr<int64_t>();
    const std::vector<uint32_t> positions(sorted, sorted + count_);
    message_.clear();
    BitWriter writer(&message_);
    writer.Put(FloatBits(mean), 32);
    rice_.Put(positions, residual_.size(0), &writer);
    writer.Finish();
  }

  const int64_t count_;
  at::Tensor residual_;
  const PositionCoder& rice_;
  std::string message_;
};

}  // namespace

std::unique_ptr<TopkStep> MakeTopkStep(int64_t size, int64_t count) {
  return std::make_unique<AtTopkStep>(size, count);
}

}  // namespace terse
