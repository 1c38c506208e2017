#include "coordinator/svrg_step.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "compression/aggregate.h"
#include "compression/downstream_model.h"
#include "compression/exact_math.h"
#include "compression/low_precision.h"
#include "core/codec_choices.h"
#include "core/epochs.h"
#include "core/status.h"

namespace terse {
namespace {

float SoftThreshold(float value, float threshold) {
  const float magnitude = std::abs(value) - threshold;
  return magnitude > 0 ? std::copysign(magnitude, value) : 0.0f;
}

// Where values that share a delta lie: `downstream.grouping` is per_tensor or global.
std::vector<Layout::Range> SharesOfDelta(const CodecSpec& spec, const Layout& layout) {
  if (spec.grouping == "global") return {{0, layout.size()}};
  std::vector<Layout::Range> ranges;
  for (const TensorSpec& tensor : layout.tensors()) ranges.push_back({tensor.offset, tensor.size});
  return ranges;
}

}  // namespace

SvrgStep::SvrgStep(const RunConfig& config, const DownstreamCodecs& codecs)
    : config_(config),
      codecs_(codecs),
      accelerated_(config.server.name == "acc_svrg"),
      penalised_(config.train.optimizer.l1 > 0 ? codecs.updates.layout().WeightRanges()
                                               : std::vector<Layout::Range>()) {}

absl::StatusOr<std::unique_ptr<ServerStep>> SvrgStep::Make(const RunConfig& config, const DownstreamCodecs& codecs) {
  if (config.server.name != "svrg" && config.server.name != "acc_svrg") {
    return absl::InvalidArgumentError(
        absl::StrCat("server.optimizer = '", config.server.name, "' has no epochs; use 'svrg' or 'acc_svrg'"));
  }
  const bool coded = config.downstream == DownstreamMode::kCoded;
  if (coded ? codecs.coded == nullptr : config.downstream != DownstreamMode::kDense) {
    return absl::InvalidArgumentError("a run with epochs sends models: its downstream is dense or a codec");
  }
  return absl::WrapUnique<ServerStep>(new SvrgStep(config, codecs));
}

HeldState SvrgStep::state() {
  if (!accelerated_) return {};
  const auto copy = std::make_shared<const std::vector<float>>(point_);
  return {{absl::MakeConstSpan(*copy)}, copy};
}

absl::Status SvrgStep::Restore(absl::Span<const float> weights, absl::Span<const float> state) {
  if (weights.size() != size() || (!state.empty() && state.size() != state_size())) {
    return absl::DataLossError(absl::StrCat("the server's state has ", state.size(), " numbers instead of ",
                                            state_size(), ": restore the state directory from a backup"));
  }
  snapshot_.assign(weights.begin(), weights.end());
  full_gradient_.clear();
  const absl::Span<const float> point = state.empty() ? weights : state;
  point_.assign(point.begin(), point.end());
  return absl::OkStatus();
}

double SvrgStep::ThetaOf(int64_t version) const {
  return accelerated_ ? 2.0 / static_cast<double>(EpochOf(config_, version) + 3) : 1.0;
}

double SvrgStep::StepSize(int64_t version) const { return config_.server.learning_rate / ThetaOf(version); }

absl::StatusOr<ServerStep::Result> SvrgStep::MakeStep(int64_t base_version, absl::Span<const float> weights,
                                                      absl::Span<const absl::string_view> messages,
                                                      absl::Span<const int64_t> samples, int64_t total, int64_t) {
  Result result;
  TERSE_ASSIGN_OR_RETURN(result.downstream, MakeMessage(base_version, messages, samples, total));
  result.weights.assign(weights.begin(), weights.end());
  TERSE_RETURN_IF_ERROR(Apply(result.downstream, absl::MakeSpan(result.weights)));
  return result;
}

absl::StatusOr<std::string> SvrgStep::MakeMessage(int64_t base_version, absl::Span<const absl::string_view> messages,
                                                  absl::Span<const int64_t> samples, int64_t total) {
  average_.resize(size());
  TERSE_RETURN_IF_ERROR(AverageUpdates(codecs_.updates, messages, AveragingWeights(samples, total),
                                       AggregationThreads(messages), absl::MakeSpan(average_)));
  const double theta = ThetaOf(base_version);
  if (StandsAlone(config_, base_version)) {
    // A gradient that no step can follow would hold the epoch up for good.
    const float step = static_cast<float>(StepSize(base_version));
    for (size_t i = 0; i < size(); ++i) {
      const float weight = point_[i] - step * average_[i];
      TERSE_RETURN_IF_ERROR(CheckWeights({&weight, 1}));
    }
    full_gradient_.swap(average_);
    mean_.assign(accelerated_ ? size() : 0, 0.0f);
    SetModel(point_, theta);
    return EncodeModel(base_version, theta);
  }
  TERSE_RETURN_IF_ERROR(Iterate(base_version));
  const bool last = StandsAlone(config_, base_version + 1);
  SetModel(last && accelerated_ ? mean_ : point_, theta);
  if (!last) return EncodeModel(base_version, theta);
  snapshot_ = model_;
  return BuildModelDownstream(snapshot_);
}

absl::Status SvrgStep::Iterate(int64_t base_version) {
  if (full_gradient_.size() != size()) return absl::InternalError("an inner iteration before its epoch's gradient");
  const double eta = StepSize(base_version);
  const float step = static_cast<float>(eta), threshold = static_cast<float>(eta * config_.train.optimizer.l1);
  for (size_t i = 0; i < size(); ++i) average_[i] = point_[i] - step * (average_[i] + full_gradient_[i]);
  for (const Layout::Range& range : penalised_) {
    for (int64_t i = range.begin; i < range.begin + range.size; ++i) {
      average_[i] = SoftThreshold(average_[i], threshold);
    }
  }
  TERSE_RETURN_IF_ERROR(CheckWeights(average_));
  point_.swap(average_);
  const float share = 1.0f / static_cast<float>(base_version - SnapshotBefore(config_, base_version));
  for (size_t i = 0; i < mean_.size(); ++i) mean_[i] += share * (point_[i] - mean_[i]);
  return absl::OkStatus();
}

void SvrgStep::SetModel(absl::Span<const float> point, double theta) {
  model_.assign(point.begin(), point.end());
  if (!accelerated_) return;
  const float weight = static_cast<float>(theta);
  for (size_t i = 0; i < size(); ++i) model_[i] = snapshot_[i] + weight * (point[i] - snapshot_[i]);
}

absl::StatusOr<std::string> SvrgStep::EncodeModel(int64_t base_version, double theta) {
  if (model_ == snapshot_) return BuildSnapshotDownstream();
  if (config_.downstream == DownstreamMode::kDense) return BuildModelDownstream(model_);
  average_.resize(size());
  for (size_t i = 0; i < size(); ++i) average_[i] = model_[i] - snapshot_[i];
  const double mu = config_.server.precision_loss;
  const double distance = LaneSum(average_, [](float value) { return static_cast<double>(value) * value; });
  const std::vector<float>& values = config_.server.bit_centering ? average_ : model_;
  EncodeOptions options;
  options.key = ServerKey(config_, base_version);
  options.choice = mu > 0 ? ChooseBits(values, theta * mu * distance) : 0;
  absl::StatusOr<std::string> message = codecs_.coded->Encode(values, options);
  if (!message.ok()) return absl::InternalError(absl::StrCat("the model: ", message.status().message()));
  return config_.server.bit_centering ? BuildCenteredModelDownstream(*message) : BuildCodedModelDownstream(*message);
}

int64_t SvrgStep::ChooseBits(absl::Span<const float> values, double most_loss) const {
  const CodecSpec& spec = config_.downstream_codec;
  const std::vector<Layout::Range> shares = SharesOfDelta(spec, codecs_.updates.layout());
  int64_t bits = kLowPrecisionFewestBits;
  for (; bits < spec.bits; ++bits) {
    double loss = 0;
    for (const Layout::Range& range : shares) {
      loss += LowPrecisionLoss(values.subspan(range.begin, range.size), static_cast<int>(bits));
    }
    if (loss <= most_loss) break;
  }
  return bits - kLowPrecisionFewestBits;
}

absl::Status SvrgStep::Apply(absl::string_view downstream, absl::Span<float> weights) {
  return ApplyModel(codecs_, downstream, snapshot_, &average_, weights);
}

}  // namespace terse
