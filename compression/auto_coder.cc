#include "compression/auto_coder.h"

#include "compression/elias.h"
#include "compression/gap_class.h"
#include "compression/gap_code.h"
#include "compression/golomb.h"
#include "compression/rice.h"

namespace terse {
namespace {

constexpr char kName[] = "auto";
constexpr int kOtherBits = 2;

// The coders behind a selector of 1 + kOtherBits bits.
constexpr const PositionCoder& (*kOthers[])() = {GolombCoder, GapClassCoder, EliasGammaCoder, EliasDeltaCoder};
constexpr int kRice = -1;

struct Choice {
  int other;  // index in kOthers, or kRice
  int64_t bits;
};

Choice Choose(absl::Span<const uint32_t> positions, int64_t size) {
  Choice choice = {kRice, 1 + RiceCoder().Bits(positions, size)};
  for (int other = 0; other < 1 << kOtherBits; ++other) {
    const int64_t bits = 1 + kOtherBits + kOthers[other]().Bits(positions, size);
    if (bits < choice.bits) choice = {other, bits};
  }
  return choice;
}

class Coder final : public PositionCoder {
 public:
  absl::string_view name() const override { return kName; }

  int64_t Bits(absl::Span<const uint32_t> positions, int64_t size) const override {
    return Choose(positions, size).bits;
  }

  int64_t MaxBits(int64_t count, int64_t size) const override { return 1 + RiceCoder().MaxBits(count, size); }

  void Put(absl::Span<const uint32_t> positions, int64_t size, BitWriter* writer) const override {
    const int other = Choose(positions, size).other;
    writer->Put(other == kRice ? 1 : 0, 1);
    if (other == kRice) return RiceCoder().Put(positions, size, writer);
    writer->Put(other, kOtherBits);
    kOthers[other]().Put(positions, size, writer);
  }

  absl::StatusOr<std::unique_ptr<PositionReader>> Open(int64_t count, int64_t size,
                                                       const BitReader& stream) const override {
    BitReader rest = stream;
    uint32_t is_rice, other;
    if (!rest.Get(1, &is_rice)) return PositionsEndEarly(kName);
    if (is_rice == 1) return RiceCoder().Open(count, size, rest);
    if (!rest.Get(kOtherBits, &other)) return PositionsEndEarly(kName);
    return kOthers[other]().Open(count, size, rest);
  }
};

}  // namespace

const PositionCoder& AutoCoder() {
  static const Coder coder;
  return coder;
}

}  // namespace terse
