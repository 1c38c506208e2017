// The state of a PositionHistory as bytes, for the disks of both ends.
#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "compression/bit_stream.h"
#include "compression/position_history.h"
#include "core/status.h"

namespace terse {
namespace {

// The bounds of the fields for a tensor of fewer than 2^31 elements: a message fades a cell by an eighth and adds at
// most 2^8 for every element and some. Sums and products of such numbers do not overflow.
constexpr uint64_t kMostOfACell = uint64_t{1} << 44;
constexpr uint64_t kMostMessages = uint64_t{1} << 48;

// Puts fields one behind the other; the caller has made room for them.
class FieldWriter {
 public:
  explicit FieldWriter(char* out) : out_(out) {}

  void Put32(uint32_t value) {
    StoreLittle32(value, out_);
    out_ += sizeof(value);
  }

  void Put64(uint64_t value) {
    StoreLittle64(value, out_);
    out_ += sizeof(value);
  }

  void PutBytes(const uint8_t* bytes, size_t size) { out_ = std::copy_n(bytes, size, out_); }

 private:
  char* out_;
};

absl::Status Refused(absl::string_view reason) {
  return absl::InvalidArgumentError(absl::StrCat("not a state of a history of positions: ", reason));
}

// Takes fields from the front; the caller has seen that there are enough bytes.
class Fields {
 public:
  explicit Fields(absl::string_view bytes) : bytes_(bytes) {}

  uint32_t Take32() {
    const uint32_t value = LoadLittle32(bytes_.data());
    bytes_.remove_prefix(4);
    return value;
  }

  uint64_t Take64() {
    const uint64_t value = LoadLittle64(bytes_.data());
    bytes_.remove_prefix(8);
    return value;
  }

  absl::string_view rest() const { return bytes_; }

 private:
  absl::string_view bytes_;
};

}  // namespace

int64_t PositionHistory::StateBytes() const {
  const int64_t lines = has_lines_ ? 2 * (size_ / columns_ + columns_) : 0;
  return 3 * 8 + 4 * kBlockNumbers + 2 * 8 * static_cast<int64_t>(sent_.size()) + 4 * lines + size_;
}

void PositionHistory::AppendState(std::string* out) const {
  const size_t begin = out->size();
  out->resize(begin + static_cast<size_t>(StateBytes()));
  FieldWriter writer(&(*out)[begin]);
  for (int64_t number : {now_, until_fade_, messages_}) writer.Put64(static_cast<uint64_t>(number));
  for (int64_t positions : blocks_) writer.Put32(static_cast<uint32_t>(positions));
  for (const Cells* cells : {&sent_, &seen_}) {
    for (uint64_t cell : *cells) writer.Put64(cell);
  }
  for (const Lines* lines : {&row_lines_, &column_lines_}) {
    for (const auto& counts : lines->counts) {
      for (uint32_t count : counts) writer.Put32(count);
    }
  }
  writer.PutBytes(last_.data(), last_.size());
}

absl::StatusOr<PositionHistory> PositionHistory::FromState(int64_t rows, int64_t columns, absl::string_view state) {
  PositionHistory history(rows, columns);
  TERSE_RETURN_IF_ERROR(history.ReadState(state));
  history.UpdateTables();
  return history;
}

absl::Status PositionHistory::ReadState(absl::string_view state) {
  if (static_cast<int64_t>(state.size()) != StateBytes()) {
    return Refused(absl::StrCat(state.size(), " bytes; this tensor's state has ", StateBytes()));
  }
  const uint64_t fade_period = static_cast<uint64_t>(until_fade_);
  Fields fields(state);
  const uint64_t now = fields.Take64(), until_fade = fields.Take64(), messages = fields.Take64();
  if (now > kMostMessages || messages > kMostMessages || now > messages) return Refused("its counters");
  if (until_fade == 0 || until_fade > fade_period) return Refused("its rows and columns fade too late");
  now_ = static_cast<int64_t>(now);
  until_fade_ = static_cast<int64_t>(until_fade);
  messages_ = static_cast<int64_t>(messages);
  for (int64_t& positions : blocks_) {
    positions = fields.Take32();
    if (positions > 2 * size_) return Refused("a block with more positions than it can have");
  }
  in_block_ = blocks_[now_ % kBlockNumbers];
  if (in_block_ * kBlockNumbers >= size_) return Refused("its growing block is full");
  for (Cells* cells : {&sent_, &seen_}) {
    for (uint64_t& cell : *cells) {
      cell = fields.Take64();
      if (cell > kMostOfACell) return Refused("a cell that no messages fill so");
    }
  }
  // Every message counts as many elements as it has positions, or more. Masses divide by what is seen.
  const uint64_t sent = std::accumulate(sent_.begin(), sent_.end(), uint64_t{0});
  const uint64_t seen = std::accumulate(seen_.begin(), seen_.end(), uint64_t{0});
  if (sent > 2 * seen) return Refused("more positions than elements");
  for (Lines* lines : {&row_lines_, &column_lines_}) {
    for (auto& counts : lines->counts) {
      for (uint32_t& count : counts) count = fields.Take32();
    }
  }
  std::copy(fields.rest().begin(), fields.rest().end(), last_.begin());
  return absl::OkStatus();
}

}  // namespace terse
