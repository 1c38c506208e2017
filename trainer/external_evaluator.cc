#include "trainer/external_evaluator.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace terse {
namespace {

constexpr MetricKind kKindsOfEvaluators[] = {MetricKind::kTest};

// Takes a metric that Evaluation has a place for out of the others; nullopt when it is not there.
absl::optional<double> Take(absl::string_view name, std::vector<NamedMetric>* metrics) {
  const auto found =
      std::find_if(metrics->begin(), metrics->end(), [name](const NamedMetric& metric) { return metric.name == name; });
  if (found == metrics->end()) return absl::nullopt;
  const double value = found->value;
  metrics->erase(found);
  return value;
}

// A figure of a confined evaluator that is not finite, as a model that diverges has them, is not among its metrics.
absl::StatusOr<Evaluation> EvaluationOf(std::vector<NamedMetric> metrics, TrainerPeer* peer) {
  const absl::optional<double> loss = Take("loss", &metrics);
  if (!loss.has_value() && !peer->role().is_confined()) {
    return peer->Mistaken("reports no 'loss', the mean over the test set");
  }
  Evaluation evaluation;
  evaluation.loss = loss.value_or(std::numeric_limits<double>::quiet_NaN());
  evaluation.accuracy = Take("accuracy", &metrics);
  evaluation.top5 = Take("top5", &metrics);
  evaluation.perplexity = Take("perplexity", &metrics);
  for (const absl::optional<double>& fraction : {evaluation.accuracy, evaluation.top5}) {
    if (!fraction.has_value() || (*fraction >= 0 && *fraction <= 1)) continue;
    return peer->Mistaken(absl::StrCat("reports an accuracy of ", *fraction, "; it is a fraction, from 0 to 1"));
  }
  evaluation.metrics = std::move(metrics);
  return evaluation;
}

class ExternalEvaluator : public Evaluator {
 public:
  ExternalEvaluator(TrainerSource source, PeerOptions options, const RunConfig& config, const Layout& layout)
      : source_(std::move(source)),
        options_(std::move(options)),
        request_(RequestFor(config, Shard(), kEvaluatorRole)),
        layout_(layout) {}

  absl::StatusOr<Evaluation> Evaluate(absl::Span<const float> weights) override {
    return EvaluateRound(0, weights, [] { return true; });
  }

  absl::StatusOr<Evaluation> EvaluateRound(int64_t round, absl::Span<const float> weights,
                                           const std::function<bool()>& keep_going) override {
    const bool is_connected = peer_ != nullptr;
    absl::StatusOr<Evaluation> evaluation = TryEvaluate(round, weights, keep_going);
    // One that was there may have ended since it was last asked.
    if (is_connected && absl::IsUnavailable(evaluation.status()) && keep_going()) {
      return TryEvaluate(round, weights, keep_going);
    }
    return evaluation;
  }

  bool sets_own_pace() const override { return true; }

 private:
  absl::StatusOr<Evaluation> TryEvaluate(int64_t round, absl::Span<const float> weights,
                                         const std::function<bool()>& keep_going) {
    options_.stop = [keep_going] { return !keep_going(); };
    TERSE_RETURN_IF_ERROR(Connect());
    peer_->dialogue().StopWhen(options_.stop);
    absl::StatusOr<Evaluation> evaluation = AskForEvaluation(round, weights, keep_going, peer_.get());
    // The caller may be gone before the next call.
    peer_->dialogue().StopWhen(nullptr);
    if (peer_->dialogue().lost()) peer_ = nullptr;
    return evaluation;
  }

  // Opens a peer that stops as options_ says now.
  absl::Status Connect() {
    if (peer_ != nullptr) return absl::OkStatus();
    TERSE_ASSIGN_OR_RETURN(TrainerConnection connection, source_());
    TERSE_ASSIGN_OR_RETURN(std::unique_ptr<TrainerPeer> peer,
                           TrainerPeer::Open(std::move(connection), kEvaluatorRole, options_, request_));
    if (peer->layout().Hash() != layout_.Hash()) {
      return absl::FailedPreconditionError(
          "the evaluator's model has other tensors than the run's: compare their names, order and shapes");
    }
    peer_ = std::move(peer);
    return absl::OkStatus();
  }

  const TrainerSource source_;
  PeerOptions options_;
  const OpenRequest request_;
  const Layout layout_;
  std::unique_ptr<TrainerPeer> peer_;
};

}  // namespace

absl::StatusOr<Evaluation> AskForEvaluation(int64_t round, absl::Span<const float> weights,
                                            const std::function<bool()>& keep_going, TrainerPeer* peer) {
  peer->GiveWeights(weights);
  TERSE_ASSIGN_OR_RETURN(const std::string answer,
                         peer->dialogue().Call(FrameKind::kEvaluate, ToJson(EvaluateRequest{round}),
                                               TrainerPeer::kMostAnswerBytes, keep_going));
  const absl::StatusOr<WireEvaluation> wire = FromJson<WireEvaluation>(answer);
  if (!wire.ok()) return peer->Unreadable("an evaluation", wire.status());
  TERSE_ASSIGN_OR_RETURN(std::vector<NamedMetric> metrics, peer->ReadMetrics(wire->metrics, kKindsOfEvaluators));
  return EvaluationOf(std::move(metrics), peer);
}

WireEvaluation ToWire(const Evaluation& evaluation, int64_t samples) {
  std::vector<NamedMetric> metrics = evaluation.metrics;
  const auto add = [&](const char* name, const absl::optional<double>& value) {
    if (value.has_value() && std::isfinite(*value)) metrics.push_back({MetricKind::kTest, name, *value, samples});
  };
  add("loss", evaluation.loss);
  add("accuracy", evaluation.accuracy);
  add("top5", evaluation.top5);
  add("perplexity", evaluation.perplexity);
  return {ToWire(metrics)};
}

std::unique_ptr<Evaluator> MakeExternalEvaluator(TrainerSource source, PeerOptions options, const RunConfig& config,
                                                 const Layout& layout) {
  return std::make_unique<ExternalEvaluator>(std::move(source), std::move(options), config, layout);
}

}  // namespace terse
