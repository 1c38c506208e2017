#include "compression/random_sparse.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "compression/counter_random.h"
#include "compression/exact_math.h"
#include "compression/sparse_codec.h"
#include "core/status.h"

namespace terse {
namespace {

constexpr int kSeedBits = 64;
constexpr int kValueBits = 32;

// The words of one stream, one after the other.
class Draws {
 public:
  Draws(uint64_t seed, int64_t tensor) : random_({seed, 0, 0}, tensor) {}

  // Uniform in 0 .. most, by the high word of a product; the few low words that would favour some results are drawn
  // again.
  uint32_t UpTo(uint32_t most) {
    const uint32_t range = most + 1;
    const uint32_t unfair = (0u - range) % range;  // 2^32 mod range
    uint64_t product;
    do {
      product = uint64_t{Next()} * range;
    } while (static_cast<uint32_t>(product) < unfair);
    return static_cast<uint32_t>(product >> 32);
  }

 private:
  uint32_t Next() {
    if (used_ == kBlock) {
      random_.Fill(first_, absl::MakeSpan(words_));
      first_ += kBlock;
      used_ = 0;
    }
    return words_[used_++];
  }

  static constexpr int kBlock = 64;

  const CounterRandom random_;
  int64_t first_ = 0;  // draw of the stream that comes after words_
  int used_ = kBlock;
  uint32_t words_[kBlock];
};

uint64_t SeedOf(const CodecKey& key) {
  const CounterRandom random(key, 0);
  return random.At(0) | uint64_t{random.At(1)} << 32;
}

}  // namespace

std::vector<uint32_t> ChoosePositions(uint64_t seed, int64_t tensor, int64_t count, int64_t size) {
  std::vector<uint64_t> chosen((size + 63) / 64, 0);
  const auto is_chosen = [&](uint32_t i) { return (chosen[i / 64] >> (i % 64) & 1) == 1; };
  Draws draws(seed, tensor);
  for (int64_t last = size - count; last < size; ++last) {
    const uint32_t candidate = draws.UpTo(static_cast<uint32_t>(last));
    const uint32_t taken = is_chosen(candidate) ? static_cast<uint32_t>(last) : candidate;
    chosen[taken / 64] |= uint64_t{1} << (taken % 64);
  }
  std::vector<uint32_t> positions;
  positions.reserve(count);
  for (size_t word = 0; word < chosen.size(); ++word) {
    for (uint64_t left = chosen[word]; left != 0; left &= left - 1) {
      positions.push_back(static_cast<uint32_t>(64 * word) + __builtin_ctzll(left));
    }
  }
  return positions;
}

absl::StatusOr<std::unique_ptr<const Codec>> RandomSparseCodec::Create(const CodecSpec& spec, const Layout& layout) {
  TERSE_RETURN_IF_ERROR(CheckDensity(spec));
  if (spec.code != "simple" && spec.code != "unbiased") {
    return absl::InvalidArgumentError(
        absl::StrCat("codec.code is '", spec.code, "'; random_sparse knows 'simple' and 'unbiased'"));
  }
  return absl::WrapUnique<const Codec>(
      new RandomSparseCodec(layout, PlannedCounts(spec, layout), spec.code == "unbiased"));
}

RandomSparseCodec::RandomSparseCodec(const Layout& layout, std::vector<int64_t> counts, bool unbiased)
    : TensorCodec(layout, 0x0b), counts_(std::move(counts)), unbiased_(unbiased), bits_(kSeedBits) {
  for (int64_t count : counts_) bits_ += count * kValueBits;
  SetMaxBits(bits_);
}

CodecTraits RandomSparseCodec::traits() const {
  CodecTraits traits;
  traits.unbiased = unbiased_;
  traits.stochastic = true;
  return traits;
}

float RandomSparseCodec::Scaled(float value, int64_t tensor) const {
  if (!unbiased_) return value;
  const double size = static_cast<double>(this->tensor(tensor).size);
  const double scaled = static_cast<double>(value) * size / static_cast<double>(counts_[tensor]);
  return std::copysign(NearestFloat(std::fabs(scaled)), value);
}

absl::Status RandomSparseCodec::EncodeTensors(absl::Span<const TensorInput> tensors, BitWriter* writer) const {
  const uint64_t seed = SeedOf(tensors[0].key);
  writer->Put(seed & 0xffffffffu, 32);
  writer->Put(seed >> 32, 32);
  for (const TensorInput& input : tensors) {
    TERSE_RETURN_IF_ERROR(CheckFinite(input));
    const int64_t size = static_cast<int64_t>(input.values.size());
    for (uint32_t position : ChoosePositions(seed, input.tensor, counts_[input.tensor], size)) {
      writer->Put(FloatBits(Scaled(input.values[position], input.tensor)), kValueBits);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> RandomSparseCodec::TensorsBits(absl::Span<const TensorInput> tensors) const {
  for (const TensorInput& input : tensors) TERSE_RETURN_IF_ERROR(CheckFinite(input));
  return bits_;
}

class RandomSparseCodec::Reader : public TensorReader {
 public:
  explicit Reader(const RandomSparseCodec* codec) : codec_(codec) {}

  std::unique_ptr<TensorReader> Clone() const override { return std::make_unique<Reader>(*this); }

  absl::Status StartMessage(BitReader* stream) override {
    uint32_t low = 0;
    uint32_t high = 0;
    if (!stream->Get(32, &low) || !stream->Get(32, &high)) return TruncatedIn("its seed");
    // Nothing after the seed varies in length; so no positions are derived for a message that cannot be whole.
    if (stream->remaining() != static_cast<uint64_t>(codec_->bits_ - kSeedBits)) return TruncatedIn("its values");
    seed_ = low | uint64_t{high} << 32;
    return absl::OkStatus();
  }

  absl::Status StartTensor(int64_t tensor, BitReader* stream) override {
    const TensorSpec& spec = codec_->tensor(tensor);
    std::vector<uint32_t> positions = ChoosePositions(seed_, tensor, codec_->counts_[tensor], spec.size);
    positions_ = std::make_shared<const std::vector<uint32_t>>(std::move(positions));
    used_ = 0;
    stream_ = *stream;
    return absl::OkStatus();
  }

  absl::Status Next(int64_t limit, DecodedRun* run) override {
    const int64_t left = static_cast<int64_t>(positions_->size() - used_);
    run->count = CountBelow(positions_->data() + used_, std::min(left, kDecodedRun), limit);
    for (int64_t i = 0; i < run->count; ++i) {
      uint32_t bits = 0;
      stream_.Get(kValueBits, &bits);  // StartMessage saw that they are all there
      if (MagnitudeBits(bits) >= kInfinityBits) {
        return absl::InvalidArgumentError(absl::StrCat("a value of ", FloatFromBits(bits), "; values must be finite"));
      }
      values_[i] = FloatFromBits(bits);
    }
    run->positions = positions_->data() + used_;
    run->begin = 0;
    run->values = values_;
    run->common = false;
    used_ += run->count;
    return absl::OkStatus();
  }

  absl::Status FinishTensor(BitReader* stream) override {
    *stream = stream_;
    return absl::OkStatus();
  }

 private:
  const RandomSparseCodec* codec_;
  uint64_t seed_ = 0;
  std::shared_ptr<const std::vector<uint32_t>> positions_;  // in the tensor that is being read
  size_t used_ = 0;
  BitReader stream_;
  float values_[kDecodedRun];
};

std::unique_ptr<TensorReader> RandomSparseCodec::NewReader() const { return std::make_unique<Reader>(this); }

}  // namespace terse
