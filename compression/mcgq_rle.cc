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
  *count = 0;
  while (at_ < size_ && *count < static_cast<int64_t>(positions.size())) {
    uint32_t word = 0;
    if (!stream_.Get(level_bits_, &word)) return TruncatedIn("its levels");
    if (word == 0) {
      TERSE_RETURN_IF_ERROR(ReadRun());
      continue;
    }
    after_run_ = false;
    const bool negative = word >> (level_bits_ - 1) == 1;
    const uint32_t magnitude = negative ? (~word + 1) & ((uint64_t{1} << level_bits_) - 1) : word;
    // The lowest number of a two's complement needs one bit more for its magnitude.
    if (LevelWidth(magnitude) > level_bits_) return absl::InvalidArgumentError("a level that its width does not hold");
    largest_level_ = std::max(largest_level_, magnitude);
    positions[*count] = static_cast<uint32_t>(at_++);
    levels[(*count)++] = SignedLevel(magnitude, negative);
  }
  return *count == 0 ? CheckWidths() : absl::OkStatus();
}

absl::Status RleReader::ReadRun() {
  uint32_t zeros = 0;
  if (!stream_.Get(run_bits_, &zeros)) return TruncatedIn("its runs");
  if (zeros == 0 || after_run_ || zeros > size_ - at_) {
    return absl::InvalidArgumentError(absl::StrCat("a run of ", zeros, " zeros at ", at_,
                                                   "; a run is not empty, follows a level, and ends in the tensor"));
  }
  after_run_ = true;
  longest_run_ = std::max(longest_run_, zeros);
  at_ += zeros;
  return absl::OkStatus();
}

absl::Status RleReader::CheckWidths() const {
  if (level_bits_ == LevelWidth(largest_level_) && run_bits_ == RunBits(longest_run_)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("widths of ", level_bits_, " and ", run_bits_, " bits where ",
                                                 LevelWidth(largest_level_), " and ", RunBits(longest_run_),
                                                 " are enough"));
}

}  // namespace terse
