#include "compression/adaptive_decay.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/base/casts.h"
#include "absl/types/optional.h"
#include "compression/bit_stream.h"
#include "compression/dense.h"
#include "core/status.h"

namespace terse {
namespace {

// A twentieth of what was seen 13 rounds ago: training changes over the run, and one round's regression is noisy.
constexpr double kKept = 0.8;

constexpr size_t kHeadBytes = 17;

void AppendDouble(double value, std::string* out) {
  char bytes[8];
  StoreLittle64(absl::bit_cast<uint64_t>(value), bytes);
  out->append(bytes, sizeof bytes);
}

double DoubleAt(absl::string_view bytes) { return absl::bit_cast<double>(LoadLittle64(bytes.data())); }

}  // namespace

AdaptiveDecay::AdaptiveDecay(const Codec* codec, std::unique_ptr<RateSchedule> schedule)
    : ErrorFeedback(codec, 1, std::move(schedule)),
      spacing_(static_cast<size_t>((parameters() + kMostObserved - 1) / kMostObserved)) {}

size_t AdaptiveDecay::Observed(size_t i) const {
  const size_t begin = i * spacing_;
  // The high bits of a multiple of the golden ratio (Knuth, The Art of Computer Programming, vol. 3, section 6.4).
  const size_t shift = static_cast<size_t>((i * 0x9e3779b97f4a7c15ULL) >> 40) % spacing_;
  return std::min(begin + shift, static_cast<size_t>(parameters()) - 1);
}

void AdaptiveDecay::Observe(absl::Span<const float> weights, absl::Span<const float> delta) {
  const bool first = weights_.empty();
  const size_t count = observed();
  weights_.resize(count);
  delta_.resize(count);
  // Only parameters that others changed count: those of the last message take no part.
  for (const uint32_t i : sent_) weights_[i] = weights[Observed(i)];
  double answered = 0, moved = 0;
  for (size_t i = 0; i < count; ++i) {
    const size_t at = Observed(i);
    const double step = static_cast<double>(weights[at]) - static_cast<double>(weights_[i]);
    answered -= (static_cast<double>(delta[at]) - static_cast<double>(delta_[i])) * step;
    moved += step * step;
    weights_[i] = weights[at];
    delta_[i] = delta[at];
  }
  if (first) return;
  answered_ = kKept * answered_ + answered;
  moved_ = kKept * moved_ + moved;
}

std::string AdaptiveDecay::Observations() const {
  std::string out;
  out.reserve(kHeadBytes + 8 * weights_.size() + 4 * sent_.size());
  AppendDouble(answered_, &out);
  AppendDouble(moved_, &out);
  out.push_back(weights_.empty() ? '\0' : '\1');
  if (weights_.empty()) return out;
  AppendFloats(weights_, &out);
  AppendFloats(delta_, &out);
  const size_t floats = out.size();
  out.resize(floats + 4 * sent_.size());
  for (size_t i = 0; i < sent_.size(); ++i) StoreLittle32(sent_[i], &out[floats + 4 * i]);
  return out;
}

absl::Status AdaptiveDecay::RestoreObservations(absl::string_view bytes) {
  const absl::Status bad = absl::DataLossError("what a feedback has observed is stored in another form");
  if (bytes.size() < kHeadBytes || (bytes[kHeadBytes - 1] & ~1) != 0) return bad;
  const size_t count = bytes[kHeadBytes - 1] == 1 ? observed() : 0;
  if (bytes.size() < kHeadBytes + 8 * count || (bytes.size() - kHeadBytes) % 4 != 0) return bad;
  const absl::string_view floats = bytes.substr(kHeadBytes, 8 * count), places = bytes.substr(kHeadBytes + 8 * count);
  std::vector<uint32_t> sent(places.size() / 4);
  for (size_t i = 0; i < sent.size(); ++i) {
    sent[i] = LoadLittle32(places.data() + 4 * i);
    if (sent[i] >= count || (i > 0 && sent[i] <= sent[i - 1])) return bad;
  }
  std::vector<float> values(2 * count);
  for (size_t i = 0; i < values.size(); ++i) values[i] = FloatAt(floats, static_cast<int64_t>(i));
  const double answered = DoubleAt(bytes), moved = DoubleAt(bytes.substr(8));
  const bool finite = absl::c_all_of(values, [](float value) { return std::isfinite(value); });
  if (!finite || !std::isfinite(answered) || !std::isfinite(moved)) return bad;
  weights_.assign(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(count));
  delta_.assign(values.begin() + static_cast<std::ptrdiff_t>(count), values.end());
  sent_ = std::move(sent);
  answered_ = answered;
  moved_ = moved;
  return absl::OkStatus();
}

double AdaptiveDecay::repeated() const { return moved_ > 0 ? std::clamp(answered_ / moved_, 0.0, 1.0) : 0; }

absl::StatusOr<std::string> AdaptiveDecay::Accumulate(std::vector<float>* delta, const EncodeOptions& options) {
  set_decay(std::max(0.0, 1 - 2 * repeated()));
  TERSE_ASSIGN_OR_RETURN(std::string message, ErrorFeedback::Accumulate(delta, options));
  TERSE_ASSIGN_OR_RETURN(const absl::optional<std::vector<int64_t>> sent, codec().SentPositions(message));
  sent_.clear();
  if (!sent.has_value()) weights_.clear();  // a message that carries all parameters leaves none to learn from
  if (weights_.empty()) return message;
  for (const int64_t position : *sent) {
    const size_t place = static_cast<size_t>(position) / spacing_;
    if (Observed(place) == static_cast<size_t>(position)) sent_.push_back(static_cast<uint32_t>(place));
  }
  return message;
}

}  // namespace terse
