// Local steps n and density p together, under a budget of bytes. SBC (Sattler et al. 2018, section III, Figures 3, 4
// and 9) observes that the error depends on the product of temporal sparsity (a large n) and gradient sparsity (a small
// p), that the first does better while the learning rate is high and the second after it fell, and leaves open how to
// adapt them while training.
//
// The choices: `control.local_steps`, n_0 >= n_1 >= ..., and `control.density`, p_0 < p_1 < ...
//
// Phases. There are as many as local steps: phase k trains with n_k. Where the learning rate decays, phases begin with
// decays, evenly chosen among them when there are more than needed. A phase that no decay begins comes after three
// quarters of what was left of the run. A phase is cut into rounds of nearly equal length, so that it ends where the
// next begins, or up to the fewest local steps later.
//
// Bytes. `control.budget` is what a client may send in the whole run: payload, as a mean over the chosen updates of
// each committed round (what aborted rounds and late updates sent beside them is not known here). An iteration of a
// phase may cost twice what one of the phase before may (kJointGrowth), and a round an equal share of what its phase
// and those before it have left. So late messages are more frequent, not denser: a client trains from the common
// model, derives again what it did not send, and its residual holds that several times over. With `control.price` the
// budget is earned: so many bytes for each unit that the training loss has fallen by.
//
// Density: the densest that the round can pay for. A message is taken to cost its positions' entropy and its values,
// times the median of what the newest kJointWindow rounds cost above that. Bytes that a coarse list leaves unspent go
// to later rounds. Where even the least density is too dear for n_k, n is the next larger one that can pay for it;
// where the densest leaves bytes, n is the next smaller one unless that spends fewer.
//
// Rising loss. A large n lets the clients' models drift apart, and a residual that waits too long outruns the model:
// the training loss rises. When the mean of the newest kJointWindow losses is above that of as many before by
// kJointRise of it, and by five standard errors, all with the same n, the rest of the run uses the next smaller n, at
// the same bytes.
//
// It never stalls: whatever was spent, a round sends at least p_0 after at most n_0 local steps. Only so, and by what
// the estimate of a phase's last message errs, a run costs more than its budget; the reasons of such rounds say it.
//
// Losses are what clients report, within 0 and 10^6: one that lies can move the mean, and with it what a price pays.
//
// Not used: the norms of the clients' residuals, which messages do not carry and the store does not keep; a residual
// that waits too long shows in the loss. Whether single tensors are better sent with one sign or with both, the codec
// decides with every message (`codec.name = 'sbc_or_stc'`).
#ifndef TERSE_COORDINATOR_CONTROL_JOINT_H_
#define TERSE_COORDINATOR_CONTROL_JOINT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "coordinator/control/controller.h"
#include "core/run_config.h"

namespace terse {

constexpr int64_t kJointWindow = 8;  // rounds whose mean loss is compared with those before
constexpr double kJointRise = 0.05;
constexpr double kJointGrowth = 2;  // of the bytes of an iteration, from phase to phase

// Where phases 1, 2, ... begin, in iterations, not decreasing, all below `iterations`: `phases` - 1 of them. `phases`
// and `iterations` are at least 1.
std::vector<int64_t> JointTurns(const LearningRateSchedule& schedule, int64_t phases, int64_t iterations);

// The contract is Controller's; RoundPlan::choice is the index in control.density. Not thread-safe.
class JointController : public Controller {
 public:
  // The configuration obeys the rules of proto/run_config_rules. `parameters` is the number of the model's, from which
  // the first message's size is guessed.
  JointController(const RunConfig& config, int64_t parameters);

  RoundPlan Decide(int64_t round, int64_t first_iteration) const override;
  void Observe(const RoundOutcome& outcome) override;

 private:
  struct Round {
    int64_t level = 0;  // index in local_steps
    int64_t steps = 1;
    int64_t rounds_left = 1;  // of the phase, this one counted
    int64_t choice = 0;
    const char* cause = "";  // of what is not as the phase says
  };

  int64_t PhaseAt(int64_t iteration) const;
  // Iterations with which phase `phase` begins and ends.
  int64_t BeginOf(int64_t phase) const { return phase == 0 ? 0 : turns_[phase - 1]; }
  int64_t EndOf(int64_t phase) const;
  // Returns the share of the budget that phases 0 to `phase` may spend together.
  double ShareUntil(int64_t phase) const;
  // The round that begins at `iteration` with n = local_steps[level].
  Round CutAt(int64_t iteration, int64_t phase, int64_t level) const;
  // Level with which rounds of the phase are tried first: n_k, or fewer steps for each time that the loss rose.
  int64_t StartOf(int64_t phase) const;
  // Estimate of a message's bytes.
  double BytesOf(int64_t choice) const;
  double BytesPerStepOf(const Round& round) const;
  // The densest choice that costs at most `bytes`; -1 for none.
  int64_t DensestFor(double bytes) const;
  double Budget() const;
  // Returns the bytes that each of the rounds left in the phase may cost; may be below 0.
  double AllowedOf(const Round& round, int64_t phase) const;
  Round Choose(int64_t iteration, int64_t phase) const;
  std::string PhaseText(int64_t phase) const;
  // The level whose rounds are that long: the last one with as many local steps.
  int64_t LevelOf(int64_t steps) const;
  bool LossRises() const;

  const ControlSpec control_;
  const LearningRateSchedule schedule_;
  const int64_t iterations_;
  const std::vector<int64_t> turns_;
  const std::vector<double> ideal_bytes_;  // of a message of each density

  double spent_ = 0;                 // bytes of a client
  std::vector<double> above_ideal_;  // of the newest rounds, at most kJointWindow: bytes over ideal ones
  int64_t times_loss_rose_ = 0;
  int64_t last_level_ = -1;  // of the newest round
  absl::optional<double> first_loss_;
  std::vector<double> newest_;  // losses, at most kJointWindow
  std::vector<double> losses_;  // the newest of one level, at most 2 * kJointWindow
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_CONTROL_JOINT_H_
