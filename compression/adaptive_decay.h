// Error feedback whose decay is measured: the residual keeps what local training would not do again.
//
// A client with many local steps trains towards a point, not along a direction. In the next round it starts from nearly
// the same weights and makes most of its delta once more, while the residual still holds what the last message left
// out. Both are sent, and the model overshoots. A client with few steps makes something new in every round, and all of
// its residual is needed. The two differ in what training answers to a step of the model. Let W_t be the weights from
// which delta_t was trained. Near a minimum W*, with P the part of the way there that a round's training goes,
//
//   delta_t = P (W* - W_t),   so   delta_t - delta_{t-1} = -P (W_t - W_{t-1}),
//
// and P is a regression over the parameters: near 0 when local training is short, near 1 when it ends at W* from
// wherever it begins. As the residual R is not in W_t, delta_t holds P R already, and the client's messages will have
// it twice. Other clients, which learn much of the same, send it too. So it fades by P for each:
//
//   R_t = max(0, 1 - 2 P) R_{t-1} + delta_t - decode(message_t)
//
// Fading by P alone is not enough: bench/RESULTS.md, "Many local steps".
//
// A client's own message is chosen by what its delta happened to be, chance included, and chance does not come back in
// the next delta: this looks like an answer to the step. So the positions that the last message carried do not count,
// and P comes from what others changed. Both sums of the regression fade, by kKept for each round. Of a large model, a
// sample of the parameters is enough: one number comes out of them. Terse's own.
#ifndef TERSE_COMPRESSION_ADAPTIVE_DECAY_H_
#define TERSE_COMPRESSION_ADAPTIVE_DECAY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "compression/error_feedback.h"

namespace terse {

// The contract is Feedback's. Until two deltas were observed, with a codec that carries all parameters, and where
// nobody else changes the model, P is 0 and this is error feedback. Memory: 8 bytes more for each parameter that is
// looked at, and 4 for each of them that is sent; all parameters of a small model are looked at, and at most
// kMostObserved of a large one.
class AdaptiveDecay : public ErrorFeedback {
 public:
  static constexpr int64_t kMostObserved = int64_t{1} << 15;

  explicit AdaptiveDecay(const Codec* codec, std::unique_ptr<RateSchedule> schedule = nullptr);

  absl::string_view name() const override { return "adaptive_decay"; }
  bool observes() const override { return true; }
  void Observe(absl::Span<const float> weights, absl::Span<const float> delta) override;
  // Format, little-endian: float64 answered, float64 moved; uint8, 1 if something was observed and else 0, and then
  // float32 weights and float32 deltas, one of each for every parameter that is looked at; and to the end uint32 places
  // of those in the last message, increasing.
  std::string Observations() const override;
  absl::Status RestoreObservations(absl::string_view bytes) override;

  // P, from 0 to 1.
  double repeated() const;

 private:
  absl::StatusOr<std::string> Accumulate(std::vector<float>* delta, const EncodeOptions& options) override;
  // The parameter that is looked at in place i: one of each `spacing_` in a row, and not always the same one of them,
  // which could be a row of a matrix.
  size_t Observed(size_t i) const;
  size_t observed() const { return (parameters() + spacing_ - 1) / spacing_; }

  const size_t spacing_;
  // Both have the parameters that are looked at, as observed last, and are empty before that.
  std::vector<float> weights_;
  std::vector<float> delta_;
  std::vector<uint32_t> sent_;  // places of those in the last message
  double answered_ = 0;         // sum of -(delta_t - delta_{t-1}) (W_t - W_{t-1})
  double moved_ = 0;            // sum of (W_t - W_{t-1})^2
};

}  // namespace terse

#endif  // TERSE_COMPRESSION_ADAPTIVE_DECAY_H_
