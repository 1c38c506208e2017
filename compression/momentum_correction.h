// The memory and the schedule of Deep Gradient Compression: Lin, Han, Mao, Wang, Dally (ICLR 2018), section 3; the
// message is dgc.h.
//
// Section 3.1, momentum correction, equation (6), and gradient clipping: with the delta g of a round,
//   g <- g * min(1, clip / ||g||_2)        clip = 0: no clipping
//   u <- m u + g                           velocity
//   v <- v + u                             accumulated velocity: this is encoded
// Section 3.2, momentum factor masking, equation (8): where an applied message carried an element, v and u become 0, so
// stale momentum does not carry on in the old direction.
//
// Readings, where the paper leaves a choice:
// - g is the delta of a round of local training, one step in the paper. Local training should have no momentum of its
//   own.
// - `clip` is the local threshold thr_G_k = N^(-1/2) thr_G of a fleet of N clients; the norm is over the delta
//   of all parameters, its squares added as LaneSum of exact_math.h does. Buffers are no gradients: they are neither
//   clipped nor part of the norm.
// - An element that was sent is forgotten whole, as DGC's messages carry it exactly; with a codec that rounds, what
//   rounding left is lost: error_feedback.h keeps it. A message that carries all elements empties both.
// - An update that was not applied changes nothing: v and u go on.
// - All operations are float32, but for the clipping factor, which is a quotient of doubles and multiplies as one.
#ifndef TERSE_COMPRESSION_MOMENTUM_CORRECTION_H_
#define TERSE_COMPRESSION_MOMENTUM_CORRECTION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compression/accumulation.h"
#include "compression/feedback.h"

namespace terse {

// The contract is Feedback's. The state is v, then u.
class MomentumCorrection : public Feedback {
 public:
  // 0 <= momentum < 1: m. 0 <= clip.
  MomentumCorrection(const Codec* codec, double momentum, double clip, std::unique_ptr<RateSchedule> schedule = nullptr)
      : Feedback(codec, 2, 1, std::move(schedule)), momentum_(static_cast<float>(momentum)), clip_(clip) {}

  absl::string_view name() const override { return "momentum_correction"; }
  std::vector<float>* StateBefore(std::vector<float>*) override { return &next_; }

 private:
  absl::StatusOr<std::string> Accumulate(std::vector<float>* delta, const EncodeOptions& options) override;
  absl::Status Subtract(absl::string_view message) override {
    return ForgetSent(codec(), message, absl::MakeSpan(dense_));
  }

  void Clip(absl::Span<float> delta) const;

  const float momentum_;
  const double clip_;
  std::vector<float> next_;  // the state that is being made, and then the one before
};

// Section 3.3, warm-up: the density falls exponentially over the first rounds, in four stages, by a factor of 4 each:
// 0.25, 0.0625, 0.015625, 0.00390625 (the paper's sparsities 75%, 93.75%, 98.4375%, 99.6%), and then the run's density,
// 0.001 (99.9%). Stage s = 4 * round div warmup_rounds; never below the run's density. A pure function of the round;
// powers of 1/4 are exact.
double WarmUpDensity(double density, int64_t warmup_rounds, uint64_t round);

// WarmUpDensity of CodecKey::round for every tensor. The first round is 0.
class WarmUp : public RateSchedule {
 public:
  // 0 < density <= 1; 1 <= warmup_rounds.
  WarmUp(const Layout& layout, double density, int64_t warmup_rounds)
      : density_(density), warmup_rounds_(warmup_rounds), rates_(layout.tensors().size()) {}

  absl::Span<const double> Rates(const CodecKey& key) override;
  absl::Status Observe(const Codec&, absl::Span<const float>, absl::string_view) override { return absl::OkStatus(); }

 private:
  const double density_;
  const int64_t warmup_rounds_;
  std::vector<double> rates_;
};

}  // namespace terse

#endif  // TERSE_COMPRESSION_MOMENTUM_CORRECTION_H_
