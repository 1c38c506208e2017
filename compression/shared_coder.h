// The coder "shared": positions by arithmetic coding of the gaps between them, measured not in elements but in the mass
// that the tensor's history (position_history.h) gives each element: gaps of unlikely elements are short, and a likely
// element takes few bits. Mass is dealt out so that random positions of these rates would be a Poisson process of even
// rate. rANS (Duda 2013) in integers. Format: compression/FORMAT.md.
#ifndef TERSE_COMPRESSION_SHARED_CODER_H_
#define TERSE_COMPRESSION_SHARED_CODER_H_

#include "compression/position_coder.h"
#include "compression/position_history.h"

namespace terse {

// Never costs more than Rice and one bit, which says which of the two it is; it is not there where the positions are
// too few or the history is empty, which both ends know. `history` must outlive the coder and its readers, be of the
// size that is coded, and not change while a reader is used. `side` as in PositionHistory.
class SharedCoder final : public PositionCoder {
 public:
  SharedCoder(const PositionHistory* history, int side) : history_(history), side_(side) {}

  absl::string_view name() const override;
  int64_t Bits(absl::Span<const uint32_t> positions, int64_t size) const override;
  int64_t MaxBits(int64_t count, int64_t size) const override;
  void Put(absl::Span<const uint32_t> positions, int64_t size, BitWriter* writer) const override;
  absl::StatusOr<std::unique_ptr<PositionReader>> Open(int64_t count, int64_t size,
                                                       const BitReader& stream) const override;

 private:
  const PositionHistory* const history_;
  const int side_;
};

}  // namespace terse

#endif  // TERSE_COMPRESSION_SHARED_CODER_H_
