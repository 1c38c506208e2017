// The common part of the coders of gaps. A gap is coded as its zeros: the number of elements that are skipped between
// the position before (or the tensor's beginning) and the position.
#ifndef TERSE_COMPRESSION_GAP_CODE_H_
#define TERSE_COMPRESSION_GAP_CODE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compression/bit_stream.h"
#include "compression/position_coder.h"

namespace terse {

// Calls visit(zeros) for every gap, in order.
template <typename Visit>
void ForEachGap(absl::Span<const uint32_t> positions, Visit visit) {
  uint32_t next = 0;
  for (uint32_t position : positions) {
    visit(position - next);
    next = position + 1;
  }
}

// Counts the gaps by class_of(zeros), which is below kClasses.
template <size_t kClasses, typename ClassOf>
std::array<uint32_t, kClasses> CountGaps(absl::Span<const uint32_t> positions, ClassOf class_of) {
  // Neighbours count in different places, because a count waits for the one before of the same place.
  constexpr uint32_t kPlaces = 4;
  uint32_t places[kClasses][kPlaces] = {};
  uint32_t place = 0;
  ForEachGap(positions, [&](uint32_t zeros) { ++places[class_of(zeros)][place++ % kPlaces]; });
  std::array<uint32_t, kClasses> counts = {};
  for (size_t c = 0; c < kClasses; ++c) {
    for (const uint32_t count : places[c]) counts[c] += count;
  }
  return counts;
}

// An upper bound of the bits of 1..count gaps in a tensor of `size` elements, for a code that spends cost(n) bits on a
// gap with 2^n - 1 zeros and never more on one with fewer than 2^(n+1) - 1. Linear programming duality: for every price
// of an element, all elements at that price and what each gap costs beyond its elements' price is such a bound; the
// lowest one of the prices 1, 1/2, 1/4, ... is taken.
int64_t MaxGapBits(int64_t count, int64_t size, int (*cost)(int log2_gap));

// Returns INVALID_ARGUMENT for the positions of one tensor, in the one wording of all coders.
absl::Status RefusePositions(absl::string_view coder, absl::string_view reason);
absl::Status PositionsEndEarly(absl::string_view coder);
absl::Status PositionPastTheEnd(absl::string_view coder);

// The reader of every such coder. Source is copyable and has
//   absl::Status Zeros(absl::Span<uint32_t> zeros)   the zeros of the next gaps, or INVALID_ARGUMENT
//   absl::StatusOr<BitReader> Finish()               as in PositionReader
// Turning zeros into positions in a second pass keeps the decoding loop free of everything else.
template <typename Source>
class GapReader final : public PositionReader {
 public:
  GapReader(Source source, int64_t size, absl::string_view coder)
      : source_(std::move(source)), end_(static_cast<uint64_t>(size)), coder_(coder) {}

  std::unique_ptr<PositionReader> Clone() const override { return std::make_unique<GapReader>(*this); }

  absl::Status Next(absl::Span<uint32_t> positions) override {
    absl::Status status = source_.Zeros(positions);
    if (!status.ok()) return status;
    uint64_t next = next_;
    for (uint32_t& position : positions) {
      next += position;
      position = static_cast<uint32_t>(next++);
    }
    next_ = next;
    if (next > end_) return PositionPastTheEnd(coder_);
    return absl::OkStatus();
  }

  absl::StatusOr<BitReader> Finish() override { return source_.Finish(); }

 private:
  Source source_;
  uint64_t next_ = 0;  // the lowest position that may come next; a run of 2^31 gaps cannot overflow it
  uint64_t end_;
  absl::string_view coder_;
};

}  // namespace terse

#endif  // TERSE_COMPRESSION_GAP_CODE_H_
