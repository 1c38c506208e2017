#include "coordinator/aggregation/update_blocks.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace terse {
namespace {

// Elements of a block over all updates, and the bounds of its coordinates.
constexpr int64_t kBlockElements = int64_t{1} << 20;
constexpr int64_t kLeastBlock = int64_t{1} << 10;
constexpr int64_t kMostBlock = int64_t{1} << 15;

}  // namespace

absl::StatusOr<UpdateBlocks> UpdateBlocks::Open(const Codec& codec, absl::Span<const absl::string_view> messages,
                                                int64_t end) {
  UpdateBlocks blocks;
  for (size_t i = 0; i < messages.size(); ++i) {
    absl::StatusOr<std::unique_ptr<UpdateCursor>> cursor = codec.Open(messages[i]);
    if (!cursor.ok()) return Annotate(cursor.status(), absl::StrCat("update ", i));
    blocks.cursors_.push_back(*std::move(cursor));
  }
  blocks.parts_.resize(messages.size());
  blocks.end_ = end;
  const int64_t count = std::max<int64_t>(1, static_cast<int64_t>(messages.size()));
  blocks.most_ = std::clamp(kBlockElements / count, kLeastBlock, kMostBlock);
  return blocks;
}

absl::StatusOr<bool> UpdateBlocks::Next() {
  if (block_end_ == end_) return false;
  begin_ = block_end_;
  block_end_ = std::min(end_, begin_ + most_);
  for (size_t i = 0; i < cursors_.size(); ++i) {
    const absl::Status status = Fill(cursors_[i].get(), &parts_[i]);
    if (!status.ok()) return Annotate(status, absl::StrCat("update ", i));
  }
  return true;
}

absl::Status UpdateBlocks::Fill(UpdateCursor* cursor, UpdatePart* part) const {
  part->positions.clear();
  part->values.clear();
  DecodedRun run;
  while (true) {
    TERSE_RETURN_IF_ERROR(cursor->Next(block_end_, &run));
    if (run.count == 0) return absl::OkStatus();
    for (int64_t i = 0; i < run.count; ++i) {
      part->positions.push_back(static_cast<uint32_t>(run.PositionOf(i) - begin_));
    }
    if (run.common) {
      part->values.insert(part->values.end(), run.count, run.values[0]);
    } else {
      part->values.insert(part->values.end(), run.values, run.values + run.count);
    }
  }
}

}  // namespace terse
