#include "compression/mcgq_rle.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compression/sparse_codec.h"
#include "compression/tensor_codec.h"
#include "core/status.h"

namespace terse {
namespace {

constexpr int kHeaderBits = 32;

int BitLength(uint32_t value) { return value == 0 ? 0 : 32 - __builtin_clz(value); }

// The widths B_g and B_RLE.
int LevelWidth(uint32_t largest_level) { return 1 + BitLength(largest_level); }
int RunBits(uint32_t longest_run) { return BitLength(longest_run); }

// Calls visit(zeros) for every run of zeros and visit_level(level) for every other element, in order.
template <typename VisitRun, typename VisitLevel>
void ForEachToken(const SparseLevels& tensor, int64_t size, VisitRun visit_run, VisitLevel visit_level) {
  int64_t next = 0;
  for (size_t i = 0; i < tensor.positions.size(); ++i) {
    const int64_t position = tensor.positions[i];
    if (position > next) visit_run(static_cast<uint32_t>(position - next));
    visit_level(tensor.levels[i]);
    next = position + 1;
  }
  if (size > next) visit_run(static_cast<uint32_t>(size - next));
}

struct Widths {
  int level;
  int run;
  int64_t runs;
};

Widths WidthsOf(const SparseLevels& tensor, int64_t size) {
  uint32_t largest = 0;
  uint32_t longest = 0;
  int64_t runs = 0;
  ForEachToken(
      tensor, size,
      [&](uint32_t zeros) {
        longest = std::max(longest, zeros);
        ++runs;
      },
      [&](uint32_t level) { largest = std::max(largest, level >> 1); });
  return {LevelWidth(largest), RunBits(longest), runs};
}

}  // namespace

int64_t RleBits(const SparseLevels& tensor, int64_t size) {
  const Widths widths = WidthsOf(tensor, size);
  const int64_t levels = static_cast<int64_t>(tensor.levels.size());
  return 2 * kHeaderBits + levels * widths.level + widths.runs * (widths.level + widths.run);
}

void PutRle(const SparseLevels& tensor, int64_t size, BitWriter* writer) {
  const Widths widths = WidthsOf(tensor, size);
  writer->Put(widths.level, kHeaderBits);
  writer->Put(widths.run, kHeaderBits);
  const uint64_t mask = (uint64_t{1} << widths.level) - 1;
  ForEachToken(
      tensor, size,
      [&](uint32_t zeros) {
        writer->Put(0, widths.level);
        writer->Put(zeros, widths.run);
      },
      [&](uint32_t level) {
        const uint64_t magnitude = level >> 1;
        writer->Put(((level & 1) == 1 ? ~magnitude + 1 : magnitude) & mask, widths.level);
      });
}

absl::Status RleReader::Start(int64_t size, const BitReader& stream) {
  *this = RleReader();
  stream_ = stream;
  size_ = size;
  uint32_t level_bits = 0;
  uint32_t run_bits = 0;
  if (!stream_.Get(kHeaderBits, &level_bits) || !stream_.Get(kHeaderBits, &run_bits)) return TruncatedIn("its header");
  const int most_run_bits = RunBits(static_cast<uint32_t>(size));
  if (level_bits < 1 || level_bits > 32 || run_bits > static_cast<uint32_t>(most_run_bits)) {
    return absl::InvalidArgumentError(absl::StrCat("widths of ", level_bits, " and ", run_bits,
                                                   " bits; levels take 1 to 32, runs 0 to ", most_run_bits));
  }
  level_bits_ = static_cast<int>(level_bits);
  run_bits_ = static_cast<int>(run_bits);
  return absl::OkStatus();
}

absl::Status RleReader::Next(absl::Span<uint32_t> positions, absl::Span<uint32_t> levels, int64_t* count) {
  const uint64_t level_mask = (uint64_t{1} << level_bits_) - 1;
  const uint64_t run_mask = (uint64_t{1} << run_bits_) - 1;
  const uint64_t most = level_mask >> 1;  // magnitude; the lowest number of a two's complement has a larger one
  uint64_t bit = stream_.position();
  int64_t at = at_;
  int64_t found = 0;
  uint64_t largest = largest_level_;
  uint64_t longest = longest_run_;
  bool after_run = after_run_;
  while (at < size_ && found < static_cast<int64_t>(positions.size())) {
    const uint64_t word = stream_.WindowAt(bit) & level_mask;
    bit += level_bits_;
    if (word == 0) {
      const uint64_t zeros = stream_.WindowAt(bit) & run_mask;
      bit += run_bits_;
      if (zeros == 0 || after_run || static_cast<int64_t>(zeros) > size_ - at) return RefuseRun(bit, zeros, at);
      after_run = true;
      longest = std::max(longest, zeros);
      at += static_cast<int64_t>(zeros);
      continue;
    }
    after_run = false;
    const uint64_t negative = word >> (level_bits_ - 1);
    const uint64_t magnitude = (((0 - negative) ^ word) + negative) & level_mask;
    if (magnitude > most) return absl::InvalidArgumentError("a level that its width does not hold");
    largest = std::max(largest, magnitude);
    positions[found] = static_cast<uint32_t>(at++);
    levels[found++] = SignedLevel(static_cast<uint32_t>(magnitude), negative == 1);
  }
  if (!stream_.Skip(bit - stream_.position())) return TruncatedIn("its levels");
  at_ = at;
  after_run_ = after_run;
  largest_level_ = static_cast<uint32_t>(largest);
  longest_run_ = static_cast<uint32_t>(longest);
  *count = found;
  return found == 0 ? CheckWidths() : absl::OkStatus();
}

absl::Status RleReader::RefuseRun(uint64_t end, uint64_t zeros, int64_t at) const {
  if (end > 8 * stream_.bytes().size()) return TruncatedIn("its runs");
  return absl::InvalidArgumentError(absl::StrCat("a run of ", zeros, " zeros at ", at,
                                                 "; a run is not empty, follows a level, and ends in the tensor"));
}

absl::Status RleReader::CheckWidths() const {
  if (level_bits_ == LevelWidth(largest_level_) && run_bits_ == RunBits(longest_run_)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("widths of ", level_bits_, " and ", run_bits_, " bits where ",
                                                 LevelWidth(largest_level_), " and ", RunBits(longest_run_),
                                                 " are enough"));
}

}  // namespace terse
