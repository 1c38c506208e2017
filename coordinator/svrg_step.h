// The master of AsyLPG and Acc-AsyLPG: Yu, Wu, Huang, "Double Quantization for Communication-Efficient Distributed
// Optimization" (NeurIPS 2019), Algorithms 1 and 3. core/epochs.h says which version is what.
//
// Algorithm 1 ("svrg"), epoch s, with the snapshot x~ = x_0 and the full gradient g of f at x~:
//
//   u_t = zeta_t + g,  x_{t+1} = prox(x_t - eta * u_t),  t = 0 .. m - 1;  the next snapshot is x_m
//
// Algorithm 3 ("acc_svrg"), epoch s = 1, 2, ...; theta_s = 2 / (s + 2) and eta_s = eta / theta_s (section 5.1):
//
//   y_0 is y_m of the epoch before, at first x~;  x_0 = theta_s * y_0 + (1 - theta_s) * x~
//   y_{t+1} = prox(y_t - eta_s * u_t),  x_{t+1} = x~ + theta_s * (y_{t+1} - x~)
//   the next snapshot is the mean of x_1 .. x_m
//
// prox is that of h = l1 * ||w||_1 over weights (Layout::WeightRanges) with the step's eta: soft thresholding at
// eta * l1. zeta_t is the average of a round's updates: with a buffer of one, Algorithm 1's. Full gradients are
// weighted by the clients' training samples.
//
// Clients receive snapshots in float32 (compression/downstream_model.h); inner iterates in float32, or through
// codec.downstream (step 7). Their bits are fixed, or with mu = server.precision_loss > 0 the fewest, from 2 to
// downstream.bits, with E ||Q(x) - x||^2 <= theta_s * mu * ||x - x~||^2 (conditions (2) and (4); theta_s = 1 in
// Algorithm 1): the left side is known exactly. Close to x~, where none are enough, they are downstream.bits; where x =
// x~ it is one byte. With server.bit_centering x - x~ takes x's place in Q.
#ifndef TERSE_COORDINATOR_SVRG_STEP_H_
#define TERSE_COORDINATOR_SVRG_STEP_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "coordinator/server_step.h"
#include "core/layout.h"

namespace terse {

// The contract is ServerStep's. The iterates stay in full precision here; the run's model is what clients hold. The
// state at a snapshot is nothing, or y_m of Algorithm 3. Memory: six models.
class SvrgStep : public ServerStep {
 public:
  static absl::StatusOr<std::unique_ptr<ServerStep>> Make(const RunConfig& config, const DownstreamCodecs& codecs);

  bool has_state() const override { return true; }
  size_t state_size() const override { return accelerated_ ? size() : 0; }
  // It copies the point, once an epoch.
  HeldState state() override;
  absl::Status Restore(absl::Span<const float> weights, absl::Span<const float> state) override;
  absl::StatusOr<Result> MakeStep(int64_t base_version, absl::Span<const float> weights,
                                  absl::Span<const absl::string_view> messages, absl::Span<const int64_t> samples,
                                  int64_t total, int64_t choice) override;
  absl::Status Apply(absl::string_view downstream, absl::Span<float> weights) override;

 private:
  SvrgStep(const RunConfig& config, const DownstreamCodecs& codecs);

  size_t size() const { return static_cast<size_t>(codecs_.updates.layout().size()); }
  // theta_s of the version's epoch; 1 in Algorithm 1.
  double ThetaOf(int64_t version) const;
  // eta_s of the version's epoch.
  double StepSize(int64_t version) const;
  // Does the work of MakeStep, but for the new weights.
  absl::StatusOr<std::string> MakeMessage(int64_t base_version, absl::Span<const absl::string_view> messages,
                                          absl::Span<const int64_t> samples, int64_t total);
  // One inner iteration from `base_version`, with the average of its updates in average_.
  absl::Status Iterate(int64_t base_version);
  // The iterate x that belongs to `point`, which is x itself in Algorithm 1 and y in Algorithm 3, in model_.
  void SetModel(absl::Span<const float> point, double theta);
  // The message of model_ as an inner iterate.
  absl::StatusOr<std::string> EncodeModel(int64_t base_version, double theta);
  // The fewest bits for `values` in place of model_, as their choice (core/codec_choices.h).
  int64_t ChooseBits(absl::Span<const float> values, double most_loss) const;

  const RunConfig config_;
  const DownstreamCodecs codecs_;
  const bool accelerated_;
  const std::vector<Layout::Range> penalised_;
  std::vector<float> snapshot_;       // x~
  std::vector<float> full_gradient_;  // g, once the epoch's clients have sent it
  std::vector<float> point_;          // x_t, or y_t
  std::vector<float> mean_;           // of y_1 .. y_t
  std::vector<float> average_;
  std::vector<float> model_;
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_SVRG_STEP_H_
