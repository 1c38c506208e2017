#include "compression/auto_coder.h"

#include "compression/elias.h"
#include "compression/gap_class.h"
#include "compression/gap_code.h"
#include "compression/golomb.h"
#include "compression/rice.h"

namespace terse {
namespace {

constexpr char kAutoName[] = "auto";
constexpr int kOtherBits = 2;

// The coders behind a selector of 1 + kOtherBits bits.
constexpr const PositionCoder& (*kOthers[])() = {GolombCoder, GapClassCoder, EliasGammaCoder, EliasDeltaCoder};
constexpr int kRice = -1;
constexpr int kGolomb = 0;
constexpr int kGapClass = 1;
constexpr int kGamma = 2;
constexpr int kDelta = 3;

// The choice for some positions.
class Choice {
 public:
  Choice(absl::Span<const uint32_t> positions, int64_t size) : gap_class_(positions) {
    bits_ = 1 + RiceCoder().Bits(positions, size);
    Offer(kGolomb, GolombCoder().Bits(positions, size));
    Offer(kGapClass, gap_class_.bits());
    // Most positions are far from what the Elias codes are good for, which their classes show without another look.
    const GapClassCounts& counts = gap_class_.counts();
    if (Fits(EliasGammaLeastBits(counts))) Offer(kGamma, EliasGammaCoder().Bits(positions, size));
    if (Fits(EliasDeltaLeastBits(counts))) Offer(kDelta, EliasDeltaCoder().Bits(positions, size));
  }

  int other() const { return other_; }  // index in kOthers, or kRice
  int64_t bits() const { return bits_; }
  const GapClassCoding& gap_class() const { return gap_class_; }

 private:
  // Whether so many bits of another coder than rice would be fewer than those of the choice so far.
  bool Fits(int64_t bits) const { return 1 + kOtherBits + bits < bits_; }

  void Offer(int other, int64_t bits) {
    if (!Fits(bits)) return;
    bits_ = 1 + kOtherBits + bits;
    other_ = other;
  }

  const GapClassCoding gap_class_;
  int other_ = kRice;
  int64_t bits_ = 0;
};

class AutoPositions final : public PositionCoder {
 public:
  absl::string_view name() const override { return kAutoName; }

  int64_t Bits(absl::Span<const uint32_t> positions, int64_t size) const override {
    return Choice(positions, size).bits();
  }

  int64_t MaxBits(int64_t count, int64_t size) const override { return 1 + RiceCoder().MaxBits(count, size); }

  void Put(absl::Span<const uint32_t> positions, int64_t size, BitWriter* writer) const override {
    const Choice choice(positions, size);
    const int other = choice.other();
    writer->Put(other == kRice ? 1 : 0, 1);
    if (other == kRice) return RiceCoder().Put(positions, size, writer);
    writer->Put(other, kOtherBits);
    if (other == kGapClass) return choice.gap_class().Put(writer);
    kOthers[other]().Put(positions, size, writer);
  }

  absl::StatusOr<std::unique_ptr<PositionReader>> Open(int64_t count, int64_t size,
                                                       const BitReader& stream) const override {
    BitReader rest = stream;
    uint32_t is_rice, other;
    if (!rest.Get(1, &is_rice)) return PositionsEndEarly(kAutoName);
    if (is_rice == 1) return RiceCoder().Open(count, size, rest);
    if (!rest.Get(kOtherBits, &other)) return PositionsEndEarly(kAutoName);
    return kOthers[other]().Open(count, size, rest);
  }
};

}  // namespace

const PositionCoder& AutoCoder() {
  static const AutoPositions coder;
  return coder;
}

}  // namespace terse
