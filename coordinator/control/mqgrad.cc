#include "coordinator/control/mqgrad.h"

#include <algorithm>
#include <cstdio>
#include <string>

#include "core/random.h"

namespace terse {
namespace {

constexpr uint64_t kExplorationSalt = 0x4d51477261642065;  // selection draws from (seed, round) as well

constexpr double kAlpha = 0.01;
constexpr double kRewardScale = 300;  // gamma of equation (2)
constexpr double kDiscount = 0.9;     // gamma of Algorithm 2
constexpr double kEpsilon = 0.1;
constexpr double kEta = 0.1;

static_assert(QNetwork::kInputs == kMqgradRounds, "a state has the losses of one action");
static_assert(QNetwork::kOutputs == kMqgradMostBits - kMqgradFewestBits + 1, "an output for every number of bits");

size_t OutputOf(int64_t bits) { return static_cast<size_t>(bits - kMqgradFewestBits); }

// For people: "5 bits: kept, Q 0.12 against 0.09 for 6".
std::string Why(int64_t bits, const char* what, int64_t other, const QNetwork::Outputs& values) {
  char text[100];
  std::snprintf(text, sizeof(text), "%d bits: %s, Q %.3g against %.3g for %d", static_cast<int>(bits), what,
                values[OutputOf(bits)], values[OutputOf(other)], static_cast<int>(other));
  return text;
}

}  // namespace

// Equal losses stay exactly equal this way, and so earn exactly nothing.
double MqgradSmoothed(double loss, double before) { return before + kAlpha * (loss - before); }

double MqgradReward(const QNetwork::Inputs& smoothed, double milliseconds) {
  // With i centred, the least-squares slope is sum(i * L_i) / sum(i * i), and the bias drops out. In pairs from both
  // ends, equal losses give exactly 0: rounding would be taken for a trend, however small.
  constexpr size_t kLast = QNetwork::kInputs - 1;
  double products = 0;
  double squares = 0;
  for (size_t i = 0; 2 * i < kLast; ++i) {
    const double centred = static_cast<double>(kLast - i) - kLast / 2.0;
    products += centred * (smoothed[kLast - i] - smoothed[i]);
    squares += 2 * centred * centred;
  }
  return -(products / squares) * kRewardScale / std::max(1.0, milliseconds);
}

MqgradController::MqgradController(uint64_t seed, int64_t local_steps)
    : seed_(seed), local_steps_(local_steps), network_(seed) {}

bool MqgradController::PrefersMore(const QNetwork::Outputs& values) const {
  return confident_bits_ < kMqgradMostBits && values[OutputOf(confident_bits_ + 1)] > values[OutputOf(confident_bits_)];
}

RoundPlan MqgradController::Decide(int64_t round, int64_t first_iteration) const {
  RoundPlan plan;
  plan.local_steps = local_steps_;
  plan.first_iteration = first_iteration;
  if (rounds_ > 0 && AtAction()) {
    Choose(round, &plan);
    return plan;
  }
  plan.choice = held_bits_ - kMqgradFewestBits;
  plan.why = std::to_string(held_bits_) + " bits: " + (rounds_ < kMqgradRounds ? "the start, " : "held, ") + "round " +
             std::to_string(rounds_ % kMqgradRounds + 1) + " of " + std::to_string(kMqgradRounds);
  return plan;
}

void MqgradController::Choose(int64_t round, RoundPlan* plan) const {
  const int64_t kept = confident_bits_;
  plan->choice = kept - kMqgradFewestBits;
  if (kept == kMqgradMostBits) {
    plan->why = std::to_string(kept) + " bits: kept, there are no more";
    return;
  }
  const QNetwork::Outputs values = network_.Values(smoothed_);
  const bool explores = Random(seed_ ^ kExplorationSalt, static_cast<uint64_t>(round)).Uniform() < kEpsilon;
  const bool more = PrefersMore(values) != explores;
  if (more) ++plan->choice;
  const char* const what = explores ? "exploration" : more ? "one more" : "kept";
  plan->why = more ? Why(kept + 1, what, kept, values) : Why(kept, what, kept + 1, values);
}

void MqgradController::Observe(const RoundOutcome& outcome) {
  if (AtAction()) {
    BeginAction(std::clamp(outcome.plan.choice, int64_t{0}, kMqgradMostBits - kMqgradFewestBits) + kMqgradFewestBits);
  }
  Smooth(outcome.train_loss);
  milliseconds_ += static_cast<double>(outcome.duration_us) / 1000;
  ++rounds_;
  if (AtAction() && taken_.has_value()) taken_->reward = MqgradReward(smoothed_, milliseconds_);
}

// Algorithm 2: Q of before this update has chosen the action and tells n_{t+1}; then Q learns.
void MqgradController::BeginAction(int64_t bits) {
  held_bits_ = bits;
  milliseconds_ = 0;
  if (rounds_ == 0) return;
  const QNetwork::Outputs values = network_.Values(smoothed_);
  if (PrefersMore(values)) ++confident_bits_;
  if (taken_.has_value()) {
    const size_t output = OutputOf(taken_->bits);
    const double target = taken_->reward + kDiscount * values[OutputOf(bits)];
    network_.Learn(taken_->smoothed, output, target - network_.Values(taken_->smoothed)[output], kEta);
  }
  taken_ = Taken{smoothed_, bits, 0};
}

void MqgradController::Smooth(double loss) {
  const double bounded = std::max(-kMostLoss, std::min(kMostLoss, loss));  // in this order, NaN becomes kMostLoss
  if (rounds_ == 0) smoothed_.fill(bounded);
  const double next = MqgradSmoothed(bounded, smoothed_.back());
  std::rotate(smoothed_.begin(), smoothed_.begin() + 1, smoothed_.end());
  smoothed_.back() = next;
}

}  // namespace terse
