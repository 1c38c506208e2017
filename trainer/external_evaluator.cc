#include "trainer/external_evaluator.h"

#include <algorithm>
#include <atomic>
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

absl::StatusOr<Evaluation> EvaluationOf(std::vector<NamedMetric> metrics) {
  const absl::optional<double> loss = Take("loss", &metrics);
  if (!loss.has_value()) {
    return absl::FailedPreconditionError("the evaluator reports no 'loss', the mean over the test set");
  }
  Evaluation evaluation;
  evaluation.loss = *loss;
  evaluation.accuracy = Take("accuracy", &metrics);
  evaluation.top5 = Take("top5", &metrics);
  evaluation.perplexity = Take("perplexity", &metrics);
  for (const absl::optional<double>& fraction : {evaluation.accuracy, evaluation.top5}) {
    if (!fraction.has_value() || (*fraction >= 0 && *fraction <= 1)) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("the evaluator reports an accuracy of ", *fraction, "; it is a fraction, from 0 to 1"));
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
        layout_(layout) {
    options_.stop = [this] { return is_cancelled_.load(); };
  }

  absl::StatusOr<Evaluation> Evaluate(absl::Span<const float> weights) override { return EvaluateRound(0, weights); }

  absl::StatusOr<Evaluation> EvaluateRound(int64_t round, absl::Span<const float> weights) override {
    const bool is_connected = peer_ != nullptr;
    absl::StatusOr<Evaluation> evaluation = TryEvaluate(round, weights);
    // One that was there may have ended since it was last asked.
    if (is_connected && absl::IsUnavailable(evaluation.status()) && !is_cancelled_) {
      return TryEvaluate(round, weights);
    }
    return evaluation;
  }

  void Cancel() override { is_cancelled_ = true; }
  bool sets_own_pace() const override { return true; }

 private:
  absl::StatusOr<Evaluation> TryEvaluate(int64_t round, absl::Span<const float> weights) {
    TERSE_RETURN_IF_ERROR(Connect());
    peer_->GiveWeights(weights);
    const absl::StatusOr<std::string> answer =
        peer_->dialogue().Call(FrameKind::kEvaluate, ToJson(EvaluateRequest{round}), TrainerPeer::kMostAnswerBytes,
                               [this] { return !is_cancelled_.load(); });
    absl::StatusOr<std::vector<NamedMetric>> metrics =
        answer.ok() ? Read(*answer) : absl::StatusOr<std::vector<NamedMetric>>(answer.status());
    if (peer_->dialogue().lost()) peer_ = nullptr;
    TERSE_RETURN_IF_ERROR(metrics.status());
    return EvaluationOf(*std::move(metrics));
  }

  absl::StatusOr<std::vector<NamedMetric>> Read(const std::string& answer) {
    const absl::StatusOr<WireEvaluation> wire = FromJson<WireEvaluation>(answer);
    if (!wire.ok()) return peer_->Unreadable("an evaluation", wire.status());
    return peer_->ReadMetrics(wire->metrics, kKindsOfEvaluators);
  }

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
  std::atomic<bool> is_cancelled_{false};
  std::unique_ptr<TrainerPeer> peer_;
};

}  // namespace

std::unique_ptr<Evaluator> MakeExternalEvaluator(TrainerSource source, PeerOptions options, const RunConfig& config,
                                                 const Layout& layout) {
  return std::make_unique<ExternalEvaluator>(std::move(source), std::move(options), config, layout);
}

}  // namespace terse
