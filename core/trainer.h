// The seams between the engines and the learning side. learning/ implements them with LibTorch; tests implement them
// with arithmetic that has an exact answer. Weights are flat vectors in the order of the model's Layout.
#ifndef TERSE_CORE_TRAINER_H_
#define TERSE_CORE_TRAINER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "core/cohort.h"
#include "core/layout.h"
#include "core/named_metrics.h"
#include "core/run_config.h"

namespace terse {

struct TrainResult {
  float mean_loss = 0;  // over the local steps
  int64_t samples = 0;  // seen, counting repeats
  // Further figures for people: of the training, or of the weights that it began from on the client's own data. They
  // pass CheckMetrics, and none is of the kind kTest.
  std::vector<NamedMetric> metrics = {};
  CohortFacts cohort = {};  // set by a relay, whose training is that of its clients
  // The update itself (compression/bundle.h), which is sealed as it is; `delta` is all zero then. Only a relay that
  // forwards sets it. Where it is empty, the run's codec makes the update from `delta`.
  std::string message = {};
};

// The training that a round asks of a client.
struct LocalPlan {
  int64_t steps = 1;            // n of SGD_n
  int64_t first_iteration = 0;  // of the run, for learning-rate schedules
  int64_t round = 0;            // its number, which trainers may show to people
  int64_t version = 0;
};

// Gradients of SVRG (core/epochs.h). The loss is that of the training data with train.optimizer.weight_decay.
struct GradientPlan {
  absl::Span<const float> weights;   // where it is taken
  absl::Span<const float> snapshot;  // empty: over all of the client's examples. Else over the next batch, less the
                                     // gradient of the same batch at the snapshot
};

// SGD_n of SBC Algorithm 1 on one client's data. Not thread-safe.
class LocalTrainer {
 public:
  virtual ~LocalTrainer() = default;

  virtual const Layout& layout() const = 0;
  // Returns the layout().size() weights that the run starts from, as this machine computes them; empty when this
  // trainer cannot compute them. Where they equal the coordinator's, version 0 need not be downloaded.
  virtual std::vector<float> StartWeights() const { return {}; }
  // Returns the number of training samples that this client has: its weight under weighting and selection by samples.
  // At least 1.
  virtual int64_t samples() const = 0;

  // Returns the device that it trains on, for people who look at the fleet: "cpu", "cuda:0". The name fits IsDeviceName
  // (core/session_messages.h); it is empty when the device is not known.
  virtual std::string device() const { return {}; }

  // Runs plan.steps optimizer steps from `weights` (W_0) and writes delta = W_n - W_0; both have layout().size()
  // elements, and delta has unspecified ones after an error. Moves the data position and the optimizer state forward.
  // `keep_going` is asked between steps; when it returns false the call returns CANCELLED and the trainer's state is as
  // it was after the last Train or RestoreState. INTERNAL when LibTorch fails; FAILED_PRECONDITION when the loss is not
  // finite.
  virtual absl::StatusOr<TrainResult> Train(absl::Span<const float> weights, const LocalPlan& plan,
                                            const std::function<bool()>& keep_going, absl::Span<float> delta) = 0;

  // Writes the gradient that `plan` asks for; all have layout().size() elements. A batch moves the data position
  // forward. `keep_going` is asked between batches; otherwise as Train. UNIMPLEMENTED unless the trainer has it.
  virtual absl::StatusOr<TrainResult> Gradient(const GradientPlan& plan, const std::function<bool()>& keep_going,
                                               absl::Span<float> gradient) {
    return absl::UnimplementedError("this client's trainer has no gradients for server.epoch_length above 0");
  }

  // Momentum masking (SBC supplement VII-A): zeroes the first-moment state of the given flat positions.
  virtual void MaskMomentum(absl::Span<const int64_t> positions) = 0;

  // Returns the optimizer's state and the position in the data, as bytes that RestoreState accepts in another process.
  virtual absl::StatusOr<std::string> SaveState() = 0;
  // DATA_LOSS when the bytes are not from SaveState of the same model, optimizer and data.
  virtual absl::Status RestoreState(absl::string_view state) = 0;

  // Tells the trainer that the result of its newest Train is stored together with the state after it: whatever happens
  // from here on, it is counted exactly once. A trainer that fails here fails its next call.
  virtual void OnSealed(int64_t round) {}
  // Tells the trainer that the verdict on its newest sealed result is known, or will never come. Also called after
  // RestoreState, unless the verdict is outstanding. `is_left` is true when the result was a message of the trainer's
  // own (TrainResult::message) and was not applied: nothing else keeps its content, so the trainer must send it again.
  virtual void OnSettled(bool is_left) {}

  // Tells the trainer that the run has ended with these weights, and why, for people. It gets no further calls.
  virtual void OnFinished(absl::string_view reason, absl::Span<const float> weights) {}
};

struct Evaluation {
  // Fraction of the test set's predictions that are right, 0..1; nullopt where predictions are not right or wrong, as
  // in regression.
  absl::optional<double> accuracy = {};
  double loss = 0;  // mean over the test set's predictions
  // Fraction of the predictions whose class is among the five largest outputs. Only set where there are more than five
  // classes or symbols.
  absl::optional<double> top5 = {};
  absl::optional<double> perplexity = {};  // exp of the mean cross-entropy; only of texts
  // Further figures from a user's own evaluator, all of the kind kTest. They pass CheckMetrics.
  std::vector<NamedMetric> metrics = {};
};

// Evaluates weights on the test set. Thread-compatible: one call at a time.
class Evaluator {
 public:
  virtual ~Evaluator() = default;
  virtual absl::StatusOr<Evaluation> Evaluate(absl::Span<const float> weights) = 0;
  // Evaluates the weights that the round ended with, for an evaluator that tells people so. An evaluator that can give
  // up asks `keep_going` meanwhile; when it returns false, the call ends soon with an error.
  virtual absl::StatusOr<Evaluation> EvaluateRound(int64_t round, absl::Span<const float> weights,
                                                   const std::function<bool()>& keep_going) {
    return Evaluate(weights);
  }
  // Whether an evaluation may take longer than a round, because another program does it. Rounds do not wait for such an
  // evaluator.
  virtual bool sets_own_pace() const { return false; }
};

// The part of the training data that belongs to a client: part `index` of the `count` that data.partition cuts.
struct Shard {
  int64_t index = 0;
  int64_t count = 1;
};

// Makes a trainer once the coordinator has said what the run is. `module` holds the bytes of the run's TorchScript file
// when config.model.name is "torchscript", and nothing otherwise.
using TrainerFactory = std::function<absl::StatusOr<std::unique_ptr<LocalTrainer>>(
    const RunConfig& config, const Shard& shard, absl::string_view module)>;

}  // namespace terse

#endif  // TERSE_CORE_TRAINER_H_
