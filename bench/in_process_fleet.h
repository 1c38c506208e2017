// A whole fleet in one process: the rounds of a run without its wire and its disk.
#ifndef TERSE_BENCH_IN_PROCESS_FLEET_H_
#define TERSE_BENCH_IN_PROCESS_FLEET_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compression/codec.h"
#include "compression/feedback.h"
#include "coordinator/aggregation/aggregation_rule.h"
#include "coordinator/update_policy.h"
#include "core/run_config.h"
#include "core/trainer.h"
#include "learning/blueprint.h"

namespace terse {

// Synchronous rounds in which every client takes part, and the model takes the step that run.aggregation makes of the
// updates that run.policy does not refuse. Every other update counts as applied. A client that would be set aside at
// once (unless clients.set_aside_after is 0) takes no part any more, as in a run that is over before
// clients.set_aside_seconds are. Messages are as the codec makes them (positions = "shared": not packed), and the run's
// limits are the caller's to keep. Not thread-safe.
class InProcessFleet {
 public:
  // Receives the message that a client sends in a round, while that is pending in the client's feedback.
  using OnMessage = std::function<absl::Status(int64_t client, const Feedback& feedback, const std::string& message)>;
  // Receives what each client trained in a round, before any of it is compressed; nothing (an empty delta) of a client
  // that takes no part any more. It may overwrite the deltas, as hostile clients do.
  using OnDeltas = std::function<void(absl::Span<const absl::Span<float>> deltas)>;

  // `run.rounds.clients` clients, of which `workers` >= 1 train at a time; how many changes no result. `data` and
  // `device` as for MakeTrainerFactory, whose statuses it returns, with those of MakeCodec and MakeFeedback.
  // UNIMPLEMENTED for a run that asks for more than the above.
  static absl::StatusOr<std::unique_ptr<InProcessFleet>> Create(const RunConfig& run, const std::string& data,
                                                                const std::string& device, int workers = 1);

  // The next round. Statuses of training, coding and aggregation, and what `on_message` returns; the fleet is of no use
  // after one. Either may be empty.
  absl::Status Round(const OnMessage& on_message, const OnDeltas& on_deltas = {});

  // Scores the model as it is on the run's test examples. The statuses of LoadDataset, MakeEvaluator and Evaluate.
  absl::StatusOr<Evaluation> Evaluate();

  const Codec& codec() const { return *codec_; }
  const std::vector<float>& weights() const { return weights_; }
  // Updates of each client that were refused.
  const std::vector<int64_t>& refused() const { return refused_; }
  // The largest norm of an update in medians of its round's norms (policy.norm_ratio), so far, and in which round it
  // was.
  double largest_ratio() const { return largest_ratio_; }
  int64_t largest_ratio_round() const { return largest_ratio_round_; }

 private:
  struct Client {
    std::unique_ptr<LocalTrainer> trainer;
    std::unique_ptr<Feedback> feedback;
    std::vector<float> delta;
    bool aside = false;
  };

  InProcessFleet(const RunConfig& run, std::string data, std::string device, int workers)
      : run_(run), data_(std::move(data)), device_(std::move(device)), workers_(workers) {}

  absl::Status TrainAll();
  absl::Status Train(Client* client);
  absl::StatusOr<std::string> Compress(int64_t index);
  // Takes the step, and settles every client that has a message here.
  absl::Status Step(const std::vector<std::string>& messages);
  // Keeps the largest ratio.
  void NoteRatios(absl::Span<const MeasuredUpdate> updates);

  const RunConfig run_;
  const std::string data_, device_;
  const int workers_;
  std::shared_ptr<const Blueprint> blueprint_;
  std::unique_ptr<Evaluator> evaluator_;  // null before the first Evaluate
  int64_t round_ = 0;                     // that is under way, from 1
  std::unique_ptr<const Codec> codec_;
  std::unique_ptr<const AggregationRule> rule_;
  std::vector<float> weights_;
  std::vector<float> step_;
  std::vector<Client> clients_;
  std::vector<int64_t> refused_;
  double largest_ratio_ = 0;
  int64_t largest_ratio_round_ = 0;
};

}  // namespace terse

#endif  // TERSE_BENCH_IN_PROCESS_FLEET_H_
