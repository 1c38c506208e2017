// The record that the two ends of a line keep of the messages that one client sent and that were applied: a
// PositionHistory for each tensor that its codec codes. Messages are packed by it on their way to the coordinator
// (Codec::Pack).
#ifndef TERSE_COMPRESSION_UPDATE_HISTORY_H_
#define TERSE_COMPRESSION_UPDATE_HISTORY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compression/position_history.h"
#include "core/id128.h"
#include "core/layout.h"

namespace terse {

// A function of the messages that were added (Codec::AddToHistory), in order. Not thread-safe; safe to share between
// threads that only read. Memory: a byte for every element of the layout, and little more.
class UpdateHistory {
 public:
  // The history of no messages. `layout` is Codec::PackedLayout(). The rows of a tensor are its first dimension.
  explicit UpdateHistory(const Layout& layout);

  absl::Span<const PositionHistory> tensors() const { return tensors_; }
  void Add(int64_t tensor, absl::Span<const uint32_t> positions, int side) { tensors_[tensor].Add(positions, side); }

  // A format byte and the states of the tensors, in order; always of the same length for one layout.
  std::string Serialize() const;
  // Returns the hash of Serialize(): two ends with equal hashes hold equal histories.
  Id128 Hash() const { return HashBytes(Serialize()); }
  // Reads what Serialize wrote. INVALID_ARGUMENT for bytes that are no history of this layout.
  static absl::StatusOr<UpdateHistory> Parse(const Layout& layout, absl::string_view bytes);

 private:
  UpdateHistory() = default;

  std::vector<PositionHistory> tensors_;
};

}  // namespace terse

#endif  // TERSE_COMPRESSION_UPDATE_HISTORY_H_
