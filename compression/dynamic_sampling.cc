#include "compression/dynamic_sampling.h"

#include <algorithm>
#include <cmath>

#include "compression/mcgq.h"
#include "core/status.h"

namespace terse {
namespace {

double Norm1(absl::Span<const float> values) {
  double sum = 0;
  for (float value : values) sum += static_cast<double>(std::fabs(value));
  return sum;
}

}  // namespace

absl::optional<double> IndexDistance(absl::Span<const float> exact, absl::Span<const float> quantized) {
  const double exact_norm = Norm1(exact);
  const double quantized_norm = Norm1(quantized);
  if (exact_norm == 0 || quantized_norm == 0) return absl::nullopt;
  double p = 0;
  double q = 0;
  double distance = 0;
  for (size_t k = 0; k < exact.size(); ++k) {
    p += static_cast<double>(std::fabs(exact[k]));
    q += static_cast<double>(std::fabs(quantized[k]));
    distance += std::fabs(p / exact_norm - q / quantized_norm);
  }
  return distance;
}

DynamicSampling::DynamicSampling(const Layout& layout, double samples, double step)
    : least_(samples / kSamplingRange),
      most_(std::min(samples * kSamplingRange, kMostSamples)),
      step_(step),
      rates_(layout.tensors().size(), samples),
      distances_(layout.tensors().size()) {}

absl::Status DynamicSampling::Observe(const Codec& codec, absl::Span<const float> update, absl::string_view message) {
  std::vector<float> decoded(update.size());
  TERSE_RETURN_IF_ERROR(codec.AddDecoded(message, 1.0f, absl::MakeSpan(decoded)));
  const absl::Span<const TensorSpec> tensors = codec.layout().tensors();
  for (size_t t = 0; t < tensors.size(); ++t) {
    const absl::optional<double> distance =
        IndexDistance(update.subspan(tensors[t].offset, tensors[t].size),
                      absl::MakeConstSpan(decoded).subspan(tensors[t].offset, tensors[t].size));
    if (!distance.has_value()) continue;
    if (distances_[t].has_value()) {
      const double wished = rates_[t] + step_ * (*distances_[t] - *distance);
      rates_[t] = std::min(std::max(wished, least_), most_);
    }
    distances_[t] = distance;
  }
  return absl::OkStatus();
}

}  // namespace terse
