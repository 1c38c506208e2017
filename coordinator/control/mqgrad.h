// MQGrad: Cui, Xu, Zeng, Lan, Guo, Cheng (ICTIR 2018), MQGrad: Reinforcement Learning of Gradient Quantization in
// Parameter Server, section 3.2 and Algorithm 2. The bits of a quantizer, 2 to 8, are chosen by SARSA:
//
//   Ls_i = alpha * L_i + (1 - alpha) * Ls_{i-1}                      smoothed losses, equation (1)
//   s_t = [n_t, the last T = 5 of Ls]                                state, at every T-th round
//   a_t in {0: keep n_t, 1: n_t + 1}                                 the T rounds after it use n_t + a_t bits
//   r_t = -beta * gamma / c                                          reward, equation (2)
//   n_{t+1} = n_t + argmax_a Q(s_t, a)                               equation (3)
//   v += eta * [r_{t-1} + discount * Q(s_t, a_t) - Q(s_{t-1}, a_{t-1})] * dQ(s_{t-1}, a_{t-1}) / dv
//
// beta is the slope of the least-squares line through the T smoothed losses that follow a_t (loss a round), and c the
// milliseconds that those T rounds took together. With probability epsilon the action is the one that argmax does not
// name. alpha = 0.01, gamma = 300, epsilon = 0.1, eta = 0.1.
//
// Readings:
// - The paper's iteration, after which losses and gradients are exchanged, is a round, however many local steps it has.
//   Bits are held for T rounds, as the paper holds them, so that all losses of a state tell of the same bits.
// - The Q network has 5 inputs and 7 outputs, but a state has 6 numbers. Section 4.1 says that the inputs are the 5
//   smoothed losses, unscaled here, and that each output is a number of bits. So n_t is no input: it picks which two
//   outputs are Q(s, 0) and Q(s, 1), those of n_t and n_t + 1 bits.
// - Equation (3) moves n_t by the action that Q prefers, not by the one taken, and the text repeats it: n_t is the most
//   confident number. So bits that were only explored are not kept (Q learns from them), the bits of a round may be
//   below those of the round before, and n_t never falls. Argmax is by Q as it was when a_t was chosen; a tie keeps.
// - n_0 = 2. There is no state before there are losses: the first T rounds use 2 bits, and learning begins with a_1.
//   The first loss is its own smoothed loss.
// - gamma is the scale of the reward in equation (2) and the discount in Algorithm 2, which cannot be 300: 0.9.
// - Beyond 8 bits there is nothing to explore: at n_t = 8 the only action is to keep.
//
// Deviations, so that no outcome makes a parameter infinite or NaN: losses are clamped to +-10^6 (NaN counts as 10^6);
// c is at least 1 ms, also where rounds take less (the paper's c is a positive integer); and a step of the network is
// bounded (q_network.h).
#ifndef TERSE_COORDINATOR_CONTROL_MQGRAD_H_
#define TERSE_COORDINATOR_CONTROL_MQGRAD_H_

#include <cstdint>
#include <optional>

#include "coordinator/control/controller.h"
#include "coordinator/control/q_network.h"
#include "core/codec_choices.h"
#include "core/round_plan.h"

namespace terse {

constexpr int64_t kMqgradRounds = 5;  // T: how long bits are held

// Equation (1). `loss` and `before`, the smoothed loss of the round before, are losses of any scale.
double MqgradSmoothed(double loss, double before);

// Equation (2), for T smoothed losses, oldest first, and the milliseconds of their rounds.
double MqgradReward(const QNetwork::Inputs& smoothed, double milliseconds);

// The contract is Controller's; RoundPlan::choice is the number of bits less 2, 0 to 6. Exploration is drawn from
// (seed, round), so a round that is asked for again under another number may be explored where the first was not. What
// counts for learning is the choice in the outcome, clamped to 0..6. Not thread-safe.
class MqgradController : public Controller {
 public:
  // `local_steps` is that of every plan.
  MqgradController(uint64_t seed, int64_t local_steps);

  RoundPlan Decide(int64_t round, int64_t first_iteration) const override;
  void Observe(const RoundOutcome& outcome) override;

  int64_t confident_bits() const { return confident_bits_; }             // n_t of the next action
  const QNetwork::Inputs& smoothed_losses() const { return smoothed_; }  // oldest first; zeros before any
  const QNetwork& network() const { return network_; }

 private:
  // a_t in s_t, with the reward once its rounds are over.
  struct Taken {
    QNetwork::Inputs smoothed;
    int64_t bits = kMqgradFewestBits;
    double reward = 0;
  };

  // Whether the next round is the first of T, and so has an action.
  bool AtAction() const { return rounds_ % kMqgradRounds == 0; }
  bool PrefersMore(const QNetwork::Outputs& values) const;
  void Choose(int64_t round, RoundPlan* plan) const;
  void BeginAction(int64_t bits);
  void Smooth(double loss);

  const uint64_t seed_;
  const int64_t local_steps_;

  QNetwork network_;
  int64_t rounds_ = 0;  // observed
  int64_t confident_bits_ = kMqgradFewestBits;
  int64_t held_bits_ = kMqgradFewestBits;  // of the T rounds that run
  QNetwork::Inputs smoothed_{};
  double milliseconds_ = 0;     // of those rounds so far
  std::optional<Taken> taken_;  // a_t of those rounds, or a_{t-1} between; none before a_1
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_CONTROL_MQGRAD_H_
