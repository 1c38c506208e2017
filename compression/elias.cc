#include "compression/elias.h"

#include "compression/elias_gamma.h"
#include "compression/gap_code.h"

namespace terse {
namespace {

constexpr int kMaxLog = 30;  // gaps are below 2^31

struct Delta {
  static constexpr char kName[] = "elias_delta";

  static int Length(int log) { return log + EliasGamma::Length(FloorLog2(log + 1)); }

  static void Put(uint32_t value, BitWriter* writer) {
    EliasGamma::Put(FloorLog2(value) + 1, writer);
    EliasGamma::PutMantissa(value, writer);
  }

  static bool Get(int max_log, BitReader* reader, uint32_t* value) {
    static_assert(kMaxLog + 1 == 31, "the largest number of five bits, so that Gamma's limit is the limit");
    uint32_t bits;
    if (!EliasGamma::Get(FloorLog2(max_log + 1), reader, &bits)) return false;
    return EliasGamma::GetMantissa(static_cast<int>(bits) - 1, reader, value);
  }
};

template <typename Code>
class EliasSource {
 public:
  explicit EliasSource(const BitReader& stream) : stream_(stream) {}

  absl::Status Zeros(absl::Span<uint32_t> zeros) {
    BitReader stream = stream_;
    for (uint32_t& gap : zeros) {
      if (!Code::Get(kMaxLog, &stream, &gap)) {
        return RefusePositions(Code::kName, "the bits end early, or a gap is 2^31 or more");
      }
      --gap;
    }
    stream_ = stream;
    return absl::OkStatus();
  }

  absl::StatusOr<BitReader> Finish() { return stream_; }

 private:
  BitReader stream_;
};

template <typename Code>
class EliasCoder final : public PositionCoder {
 public:
  absl::string_view name() const override { return Code::kName; }

  int64_t Bits(absl::Span<const uint32_t> positions, int64_t) const override {
    const auto counts = CountGaps<kMaxLog + 1>(positions, [](uint32_t zeros) { return FloorLog2(zeros + 1); });
    int64_t bits = 0;
    for (int log = 0; log <= kMaxLog; ++log) bits += int64_t{counts[log]} * Code::Length(log);
    return bits;
  }

  int64_t MaxBits(int64_t count, int64_t size) const override { return MaxGapBits(count, size, Code::Length); }

  void Put(absl::Span<const uint32_t> positions, int64_t, BitWriter* writer) const override {
    ForEachGap(positions, [&](uint32_t zeros) { Code::Put(zeros + 1, writer); });
  }

  absl::StatusOr<std::unique_ptr<PositionReader>> Open(int64_t count, int64_t size,
                                                       const BitReader& stream) const override {
    if (stream.remaining() < static_cast<uint64_t>(count)) return PositionsEndEarly(Code::kName);
    return std::make_unique<GapReader<EliasSource<Code>>>(EliasSource<Code>(stream), size, Code::kName);
  }
};

// A gap of a class has at least as many zeros as the class's first.
template <typename Code>
int64_t LeastBits(const GapClassCounts& counts) {
  int64_t bits = 0;
  for (int c = 0; c < kGapClasses; ++c) {
    const int log = c < 2 ? c : c / 2;  // of one more than those zeros, rounded down
    bits += int64_t{counts[c]} * Code::Length(log);
  }
  return bits;
}

}  // namespace

int64_t EliasGammaLeastBits(const GapClassCounts& counts) { return LeastBits<EliasGamma>(counts); }
int64_t EliasDeltaLeastBits(const GapClassCounts& counts) { return LeastBits<Delta>(counts); }

const PositionCoder& EliasGammaCoder() {
  static const EliasCoder<EliasGamma> coder;
  return coder;
}

const PositionCoder& EliasDeltaCoder() {
  static const EliasCoder<Delta> coder;
  return coder;
}

}  // namespace terse
