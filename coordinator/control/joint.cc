#include "coordinator/control/joint.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/codec_choices.h"
#include "core/learning_rate.h"

namespace terse {
namespace {

int64_t CeilOfRatio(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The first iteration, at most `last`, before which the rate has decayed `decays` times.
int64_t IterationOfDecay(const LearningRateSchedule& schedule, int64_t decays, int64_t last) {
  int64_t first = 0;
  while (first < last) {
    const int64_t middle = first + (last - first) / 2;
    if (DecaysBefore(schedule, middle) >= decays) {
      last = middle;
    } else {
      first = middle + 1;
    }
  }
  return last;
}

// Bits that the positions of a share p of all elements need, an element. A bit map serves from a half on.
double Entropy(double p) { return p >= 0.5 ? 1 : -(p * std::log2(p) + (1 - p) * std::log2(1 - p)); }

// Bytes of a message without anything but positions and values.
std::vector<double> IdealBytes(const RunConfig& config, int64_t parameters) {
  const double value_bits = static_cast<double>(SentValueBits(config.codec).value_or(0));
  std::vector<double> bytes;
  for (const double p : config.control.density) {
    bytes.push_back(static_cast<double>(parameters) * (Entropy(p) + value_bits * p) / 8);
  }
  return bytes;
}

double MedianOf(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double MeanOf(const double* values) {
  double sum = 0;
  for (int64_t i = 0; i < kJointWindow; ++i) sum += values[i];
  return sum / kJointWindow;
}

double SquaresAround(const double* values, double mean) {
  double sum = 0;
  for (int64_t i = 0; i < kJointWindow; ++i) sum += (values[i] - mean) * (values[i] - mean);
  return sum;
}

// Adds the newest, and drops the oldest beyond `most`.
void Keep(double value, int64_t most, std::vector<double>* values) {
  values->push_back(value);
  if (static_cast<int64_t>(values->size()) > most) values->erase(values->begin());
}

}  // namespace

std::vector<int64_t> JointTurns(const LearningRateSchedule& schedule, int64_t phases, int64_t iterations) {
  const int64_t turns = phases - 1;
  const int64_t at_start = DecaysBefore(schedule, 0);  // a rate that decays every so often does so at 0 too
  const int64_t decays = schedule.factor < 1 ? DecaysBefore(schedule, iterations - 1) - at_start : 0;
  const int64_t at_decays = std::min(decays, turns);
  std::vector<int64_t> found;
  for (int64_t i = 1; i <= at_decays; ++i) {
    const int64_t number = decays >= turns ? CeilOfRatio(i * decays, phases) : i;
    found.push_back(IterationOfDecay(schedule, at_start + number, iterations - 1));
  }
  while (static_cast<int64_t>(found.size()) < turns) {
    const int64_t last = found.empty() ? 0 : found.back();
    found.push_back(iterations - CeilOfRatio(iterations - last, 4));
  }
  return found;
}

JointController::JointController(const RunConfig& config, int64_t parameters)
    : control_(config.control),
      schedule_(config.train.schedule),
      iterations_(config.limits.iterations),
      turns_(JointTurns(config.train.schedule, static_cast<int64_t>(config.control.local_steps.size()),
                        config.limits.iterations)),
      ideal_bytes_(IdealBytes(config, parameters)) {}

int64_t JointController::PhaseAt(int64_t iteration) const {
  return std::upper_bound(turns_.begin(), turns_.end(), iteration) - turns_.begin();
}

int64_t JointController::EndOf(int64_t phase) const {
  return phase < static_cast<int64_t>(turns_.size()) ? turns_[phase] : iterations_;
}

JointController::Round JointController::CutAt(int64_t iteration, int64_t phase, int64_t level) const {
  const int64_t left = std::max<int64_t>(1, EndOf(phase) - iteration);
  Round round;
  round.level = level;
  round.rounds_left = CeilOfRatio(left, control_.local_steps[level]);
  // Not below the fewest, or rounds.count would not be enough: a phase with less than that left goes beyond its end.
  round.steps = std::max(CeilOfRatio(left, round.rounds_left), control_.local_steps.back());
  round.steps = std::min(round.steps, std::max<int64_t>(1, iterations_ - iteration));
  return round;
}

double JointController::BytesOf(int64_t choice) const {
  return ideal_bytes_[choice] * (above_ideal_.empty() ? 1 : MedianOf(above_ideal_));
}

double JointController::BytesPerStepOf(const Round& round) const {
  return BytesOf(round.choice) / static_cast<double>(round.steps);
}

int64_t JointController::DensestFor(double bytes) const {
  int64_t choice = static_cast<int64_t>(ideal_bytes_.size()) - 1;
  while (choice >= 0 && BytesOf(choice) > bytes) --choice;
  return choice;
}

double JointController::Budget() const {
  if (control_.price == 0) return control_.budget;
  if (newest_.empty()) return 0;
  const double newest = std::accumulate(newest_.begin(), newest_.end(), 0.0) / static_cast<double>(newest_.size());
  return control_.price * std::max(0.0, *first_loss_ - newest);
}

double JointController::ShareUntil(int64_t phase) const {
  double until = 0, all = 0, rate = 1;
  for (int64_t i = 0; i <= static_cast<int64_t>(turns_.size()); ++i) {
    all += rate * static_cast<double>(EndOf(i) - BeginOf(i));
    if (i == phase) until = all;
    rate *= kJointGrowth;
  }
  return until / all;
}

double JointController::AllowedOf(const Round& round, int64_t phase) const {
  return (Budget() * ShareUntil(phase) - spent_) / static_cast<double>(round.rounds_left);
}

int64_t JointController::StartOf(int64_t phase) const {
  const std::vector<int64_t>& steps = control_.local_steps;
  int64_t level = phase;
  for (int64_t rise = 0; rise < times_loss_rose_; ++rise) {
    const auto next = std::upper_bound(steps.begin() + level, steps.end(), steps[level], std::greater<>());
    if (next == steps.end()) break;
    level = next - steps.begin();
  }
  return level;
}

JointController::Round JointController::Choose(int64_t iteration, int64_t phase) const {
  const int64_t last = static_cast<int64_t>(control_.local_steps.size()) - 1;
  const int64_t densest = static_cast<int64_t>(ideal_bytes_.size()) - 1;
  const int64_t start = StartOf(phase);
  Round round = CutAt(iteration, phase, start);
  round.choice = DensestFor(AllowedOf(round, phase));
  if (start != phase) round.cause = ", fewer steps since the loss rose";
  while (round.choice < 0 && round.level > 0) {
    round = CutAt(iteration, phase, round.level - 1);
    round.choice = DensestFor(AllowedOf(round, phase));
    round.cause = ", more steps since shorter rounds cost too much";
  }
  while (round.choice == densest && round.level < last) {
    Round finer = CutAt(iteration, phase, round.level + 1);
    finer.choice = DensestFor(AllowedOf(finer, phase));
    if (finer.choice < 0 || BytesPerStepOf(finer) < BytesPerStepOf(round)) break;
    round = finer;
    round.cause = ", fewer steps since the largest density leaves bytes";
  }
  if (round.choice < 0) {
    round.choice = 0;
    round.cause = ", the least that a round sends";
  }
  return round;
}

std::string JointController::PhaseText(int64_t phase) const {
  std::string text = absl::StrCat("phase ", phase + 1, " of ", turns_.size() + 1);
  if (phase == 0) return text;
  const int64_t begin = BeginOf(phase);
  const bool decays = begin > 0 && DecaysBefore(schedule_, begin) > DecaysBefore(schedule_, begin - 1);
  absl::StrAppend(&text, " from iteration ", begin, decays ? ", where the rate decays" : "");
  return text;
}

RoundPlan JointController::Decide(int64_t, int64_t first_iteration) const {
  const int64_t phase = PhaseAt(first_iteration);
  const Round round = Choose(first_iteration, phase);
  RoundPlan plan;
  plan.local_steps = round.steps;
  plan.choice = round.choice;
  plan.first_iteration = first_iteration;
  plan.why =
      absl::StrFormat("%s: %d steps, density %g for %.3g KB of %.3g KB a round; %.3g of %.3g KB sent%s",
                      PhaseText(phase), round.steps, control_.density[round.choice], BytesOf(round.choice) / 1000,
                      std::max(0.0, AllowedOf(round, phase)) / 1000, spent_ / 1000, Budget() / 1000, round.cause);
  return plan;
}

int64_t JointController::LevelOf(int64_t steps) const {
  int64_t level = static_cast<int64_t>(control_.local_steps.size()) - 1;
  while (level > 0 && control_.local_steps[level] < steps) --level;
  return level;
}

bool JointController::LossRises() const {
  if (losses_.size() < 2 * kJointWindow) return false;
  const double* const before = losses_.data();
  const double* const newest = before + kJointWindow;
  const double mean = MeanOf(before);
  const double rise = MeanOf(newest) - mean;
  const double squares = SquaresAround(before, mean) + SquaresAround(newest, MeanOf(newest));
  const double error = std::sqrt(squares / ((kJointWindow - 1) * kJointWindow));
  return rise > kJointRise * std::abs(mean) && rise > 5 * error;
}

void JointController::Observe(const RoundOutcome& outcome) {
  if (outcome.updates > 0) {
    const double bytes = static_cast<double>(outcome.update_bytes) / static_cast<double>(outcome.updates);
    const int64_t most = static_cast<int64_t>(ideal_bytes_.size()) - 1;
    Keep(bytes / ideal_bytes_[std::clamp<int64_t>(outcome.plan.choice, 0, most)], kJointWindow, &above_ideal_);
    spent_ += bytes;
  }
  const double loss = std::clamp(outcome.train_loss, 0.0, kMostLoss);
  if (!first_loss_.has_value()) first_loss_ = loss;
  Keep(loss, kJointWindow, &newest_);
  const int64_t level = LevelOf(outcome.plan.local_steps);
  if (level != last_level_) losses_.clear();
  last_level_ = level;
  Keep(loss, 2 * kJointWindow, &losses_);
  if (!LossRises()) return;
  ++times_loss_rose_;
  losses_.clear();
}

}  // namespace terse
