#include "compression/mcgq.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compression/counter_random.h"
#include "compression/position_coder_table.h"
#include "compression/sparse_codec.h"
#include "core/status.h"

namespace terse {
namespace {

constexpr int kFormatNumber = 0x0c;

// The smallest integer that is not below `value`; |value| < 2^62.
int64_t Ceil(double value) {
  const int64_t towards_zero = static_cast<int64_t>(value);
  return towards_zero + (static_cast<double>(towards_zero) < value ? 1 : 0);
}

CodecTraits McgqTraits() {
  CodecTraits traits;
  traits.unbiased = true;
  traits.stochastic = true;
  return traits;
}

// Returns the levels of a tensor of finite values and sets *scale to the scale before its rounding; a tensor of zeros
// has no levels and the scale 0.
SparseLevels Quantize(const TensorInput& input, double samples, double* scale) {
  *scale = 0;
  const auto zero = [](float value) { return value == 0; };
  if (std::all_of(input.values.begin(), input.values.end(), zero)) return {};
  const int64_t count = SampleCount(input.rate == 0 ? samples : input.rate, static_cast<int64_t>(input.values.size()));
  const double xi = UniformDouble(CounterRandom(input.key, input.tensor).At(0));
  SparseLevels levels = SampleLevels(input.values, count, xi, scale);
  *scale /= static_cast<double>(count);
  return levels;
}

absl::Status CheckRate(const TensorInput& input, absl::string_view tensor) {
  if (input.rate == 0 || (input.rate > 0 && input.rate <= kMostSamples)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("tensor '", tensor, "': a rate of ", input.rate,
                                                 "; samples per element are above 0 and at most ", kMostSamples));
}

// The codec of spec.code = "positions".
class SparseMcgqCodec : public SparseCodec {
 public:
  SparseMcgqCodec(const Layout& layout, SparseFormat format, double samples)
      : SparseCodec(layout, std::move(format)), samples_(samples) {}

  absl::string_view name() const override { return "mcgq"; }
  CodecTraits traits() const override { return McgqTraits(); }

 private:
  absl::Status Select(const TensorInput& input, TopSelector*, SparsePart* part) const override {
    TERSE_RETURN_IF_ERROR(CheckRate(input, tensor(input.tensor).name));
    TERSE_RETURN_IF_ERROR(CheckFinite(input));
    double scale = 0;
    SparseLevels levels = Quantize(input, samples_, &scale);
    part->positions = std::move(levels.positions);
    part->payload = std::move(levels.levels);
    if (!part->positions.empty()) part->scale = RoundScale(scale);
    return absl::OkStatus();
  }

  const double samples_;
};

// The codec of spec.code = "simple".
class RleMcgqCodec : public TensorCodec {
 public:
  RleMcgqCodec(const Layout& layout, double samples) : TensorCodec(layout, kFormatNumber), samples_(samples) {
    int64_t bits = 0;
    // A level takes at most 32 bits; at most every second element, rounded up, is a run, of 32 + 31 bits.
    for (const TensorSpec& tensor : layout.tensors()) bits += 96 + tensor.size * 32 + (tensor.size + 1) / 2 * 31;
    SetMaxBits(bits);
  }

  absl::string_view name() const override { return "mcgq"; }
  CodecTraits traits() const override { return McgqTraits(); }

 private:
  class Reader;

  absl::Status EncodeTensors(absl::Span<const TensorInput> tensors, BitWriter* writer) const override {
    for (const TensorInput& input : tensors) {
      float scale = 0;
      TERSE_ASSIGN_OR_RETURN(const SparseLevels levels, LevelsOf(input, &scale));
      writer->Put(FloatBits(scale), 32);
      PutRle(levels, static_cast<int64_t>(input.values.size()), writer);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<int64_t> TensorsBits(absl::Span<const TensorInput> tensors) const override {
    int64_t bits = 0;
    for (const TensorInput& input : tensors) {
      float scale = 0;
      TERSE_ASSIGN_OR_RETURN(const SparseLevels levels, LevelsOf(input, &scale));
      bits += 32 + RleBits(levels, static_cast<int64_t>(input.values.size()));
    }
    return bits;
  }

  std::unique_ptr<TensorReader> NewReader() const override;

  absl::StatusOr<SparseLevels> LevelsOf(const TensorInput& input, float* scale) const {
    TERSE_RETURN_IF_ERROR(CheckRate(input, tensor(input.tensor).name));
    TERSE_RETURN_IF_ERROR(CheckFinite(input));
    double exact = 0;
    SparseLevels levels = Quantize(input, samples_, &exact);
    *scale = levels.positions.empty() ? 0.0f : RoundToFiniteFloat(exact);
    return levels;
  }

  const double samples_;
};

class RleMcgqCodec::Reader : public TensorReader {
 public:
  explicit Reader(const RleMcgqCodec* codec) : codec_(codec) {}

  std::unique_ptr<TensorReader> Clone() const override { return std::make_unique<Reader>(*this); }

  absl::Status StartTensor(int64_t tensor, BitReader* stream) override {
    filled_ = used_ = 0;
    any_level_ = false;
    uint32_t bits = 0;
    if (!stream->Get(32, &bits)) return TruncatedIn("its header");
    if (bits >= kInfinityBits) {
      return absl::InvalidArgumentError(
          absl::StrCat("its scale is ", FloatFromBits(bits), "; it must be finite and not negative"));
    }
    scale_ = FloatFromBits(bits);
    return rle_.Start(codec_->tensor(tensor).size, *stream);
  }

  absl::Status Next(int64_t limit, DecodedRun* run) override {
    if (used_ == filled_) TERSE_RETURN_IF_ERROR(Fill());
    const uint32_t* const from = positions_ + used_;
    run->count = CountBelow(from, filled_ - used_, limit);
    run->positions = from;
    run->begin = 0;
    run->values = values_ + used_;
    used_ += run->count;
    return absl::OkStatus();
  }

  absl::Status FinishTensor(BitReader* stream) override {
    *stream = rle_.stream();
    if (any_level_ == (scale_ > 0)) return absl::OkStatus();
    return absl::InvalidArgumentError("its scale must be 0 exactly where all levels are");
  }

 private:
  // Decodes the next elements into the buffer.
  absl::Status Fill() {
    uint32_t levels[kDecodedRun];
    used_ = 0;
    TERSE_RETURN_IF_ERROR(rle_.Next(absl::MakeSpan(positions_), absl::MakeSpan(levels), &filled_));
    any_level_ = any_level_ || filled_ > 0;
    for (int64_t i = 0; i < filled_; ++i) values_[i] = LevelValue(scale_, levels[i]);
    return absl::OkStatus();
  }

  const RleMcgqCodec* codec_;
  RleReader rle_;
  float scale_ = 0;
  bool any_level_ = false;
  int64_t filled_ = 0;  // of the buffer
  int64_t used_ = 0;
  uint32_t positions_[kDecodedRun];
  float values_[kDecodedRun];
};

std::unique_ptr<TensorReader> RleMcgqCodec::NewReader() const { return std::make_unique<Reader>(this); }

}  // namespace

int64_t SampleCount(double samples, int64_t size) {
  return std::min(int64_t{kMostLevel}, Ceil(samples * static_cast<double>(size)));
}

SparseLevels SampleLevels(absl::Span<const float> values, int64_t count, double xi, double* norm) {
  *norm = 0;
  for (float value : values) *norm += static_cast<double>(std::fabs(value));
  const double samples = static_cast<double>(count);
  SparseLevels result;
  double sum = 0;
  int64_t before = 0;
  for (size_t k = 0; k < values.size(); ++k) {
    if (values[k] == 0) continue;
    sum += static_cast<double>(std::fabs(values[k]));
    const int64_t until = sum == *norm ? count : std::min(count, Ceil(samples * sum / *norm - xi));
    if (until == before) continue;
    result.positions.push_back(static_cast<uint32_t>(k));
    result.levels.push_back(SignedLevel(static_cast<uint32_t>(until - before), values[k] < 0));
    before = until;
  }
  return result;
}

absl::StatusOr<std::unique_ptr<const Codec>> CreateMcgq(const CodecSpec& spec, const Layout& layout) {
  if (!(spec.samples > 0 && spec.samples <= kMostSamples)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "codec.samples is ", spec.samples, "; mcgq needs samples per element above 0 and at most ", kMostSamples));
  }
  if (spec.code == "simple") return std::unique_ptr<const Codec>(new RleMcgqCodec(layout, spec.samples));
  if (spec.code != "positions") {
    return absl::InvalidArgumentError(
        absl::StrCat("codec.code is '", spec.code, "'; mcgq knows 'simple' and 'positions'"));
  }
  SparseFormat format;
  format.number = kFormatNumber;
  format.values = SparseValues::kLevels;
  TERSE_ASSIGN_OR_RETURN(format.coder, FindPositionCoder(spec.positions));
  return std::unique_ptr<const Codec>(new SparseMcgqCodec(layout, std::move(format), spec.samples));
}

}  // namespace terse
