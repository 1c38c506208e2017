// A client of its own model, data and training step: logistic regression with gradient descent on small batches.
#include <memory>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/plugin.h"
#include "logistic.h"

namespace {

class LogisticTrainer : public terse::LocalTrainer {
 public:
  LogisticTrainer(const terse::RunConfig& config, const terse::Shard& shard)
      : train_(config.train), points_(DrawPoints(config.seed + 1 + shard.index, 2000)) {}

  const terse::Layout& layout() const override { return layout_; }
  int64_t samples() const override { return static_cast<int64_t>(points_.size()); }

  absl::StatusOr<terse::TrainResult> Train(absl::Span<const float> weights, const terse::LocalPlan& plan,
                                           const std::function<bool()>& keep_going, absl::Span<float> delta) override {
    std::vector<float> w(weights.begin(), weights.end());
    int64_t next = next_;
    float loss = 0;
    for (int64_t step = 0; step < plan.steps; ++step) {
      if (!keep_going()) return absl::CancelledError("the process should stop");
      loss += Step(&next, &w) / plan.steps;
    }
    next_ = next;
    for (size_t i = 0; i < w.size(); ++i) delta[i] = w[i] - weights[i];
    return terse::TrainResult{loss, plan.steps * train_.batch_size};
  }

  void MaskMomentum(absl::Span<const int64_t>) override {}  // gradient descent has none

  absl::StatusOr<std::string> SaveState() override { return absl::StrCat(next_); }
  absl::Status RestoreState(absl::string_view state) override {
    if (absl::SimpleAtoi(state, &next_) && next_ >= 0) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat("'", state, "' is no position in the data"));
  }

 private:
  // One batch from example `*next` on; its mean loss.
  float Step(int64_t* next, std::vector<float>* w) const {
    std::vector<float> gradient(w->size());
    float loss = 0;
    for (int64_t k = 0; k < train_.batch_size; ++k) {
      const Point& point = points_[(*next)++ % points_.size()];
      const float probability = Predict(*w, point), error = probability - point.label;
      for (int i = 0; i < kFeatures; ++i) gradient[i] += error * point.x[i];
      gradient[kFeatures] += error;
      loss += LossOf(probability, point.label);
    }
    const auto rate = static_cast<float>(train_.optimizer.learning_rate / train_.batch_size);
    for (size_t i = 0; i < w->size(); ++i) (*w)[i] -= rate * gradient[i];
    return loss / train_.batch_size;
  }

  const terse::TrainSpec train_;
  const terse::Layout layout_ = LogisticLayout();
  const std::vector<Point> points_;
  int64_t next_ = 0;  // example
};

}  // namespace

int main(int argc, char** argv) {
  terse::DaemonOptions options;
  if (const int code = terse::ParseDaemonOptions(argc, argv, &options); code >= 0) return code;
  return terse::RunDaemon(options, [](const terse::RunConfig& config, const terse::Shard& shard, absl::string_view) {
    return std::make_unique<LogisticTrainer>(config, shard);
  });
}
