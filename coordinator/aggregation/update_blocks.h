// A round's updates, decoded side by side: a block of coordinates of all of them at a time, so that nobody holds as
// many models as there are updates.
#ifndef TERSE_COORDINATOR_AGGREGATION_UPDATE_BLOCKS_H_
#define TERSE_COORDINATOR_AGGREGATION_UPDATE_BLOCKS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compression/codec.h"

namespace terse {

// The part of an update that lies in the block: its elements in increasing position.
struct UpdatePart {
  std::vector<uint32_t> positions;  // from the block's first coordinate
  std::vector<float> values;        // finite; a value of 0 was sent too
};

// Not thread-safe; codec and messages must outlive it. Memory: about 5 KB an update for its cursor, and 8 bytes for
// each element of the block: at most 8 MiB up to 1,024 updates, and 8 KiB for each further one.
class UpdateBlocks {
 public:
  // Reads [0, end) of the model. INVALID_ARGUMENT naming the update whose header is broken.
  static absl::StatusOr<UpdateBlocks> Open(const Codec& codec, absl::Span<const absl::string_view> messages,
                                           int64_t end);

  // Moves on to the next block, or to the first one; false behind the last. INVALID_ARGUMENT naming the update that
  // does not decode.
  absl::StatusOr<bool> Next();

  // The block that Next moved to.
  int64_t begin() const { return begin_; }
  int64_t size() const { return block_end_ - begin_; }
  const std::vector<UpdatePart>& parts() const { return parts_; }  // one an update

 private:
  UpdateBlocks() = default;

  absl::Status Fill(UpdateCursor* cursor, UpdatePart* part) const;

  std::vector<std::unique_ptr<UpdateCursor>> cursors_;
  std::vector<UpdatePart> parts_;
  int64_t end_ = 0;
  int64_t most_ = 0;  // coordinates of a block
  int64_t begin_ = 0;
  int64_t block_end_ = 0;
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_AGGREGATION_UPDATE_BLOCKS_H_
