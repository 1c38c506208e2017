#include "compression/chunk12.h"

#include <algorithm>
#include <cstddef>

#include "compression/gap_code.h"

namespace terse {
namespace {

constexpr char kChunk12Name[] = "chunk12";
constexpr int kPlaceBits = 12;
constexpr int kCountBits = 13;
constexpr int64_t kChunk = 1 << kPlaceBits;

int64_t ChunksOf(int64_t size) { return (size + kChunk - 1) / kChunk; }

// Returns the number of positions in the first chunk if all but the last chunk have as many, otherwise -1.
int64_t CommonCount(absl::Span<const uint32_t> positions, int64_t chunks) {
  const int64_t count = static_cast<int64_t>(positions.size());
  const int64_t common = std::lower_bound(positions.begin(), positions.end(), kChunk) - positions.begin();
  if (common * (chunks - 1) > count) return -1;
  for (int64_t chunk = 0; chunk < chunks - 1 && common > 0; ++chunk) {
    const int64_t first = positions[chunk * common] >> kPlaceBits;
    const int64_t last = positions[chunk * common + common - 1] >> kPlaceBits;
    if (first != chunk || last != chunk) return -1;
  }
  const int64_t behind = common * (chunks - 1);
  return behind == count || positions[behind] >> kPlaceBits == chunks - 1 ? common : -1;
}

// The bits before the places.
int64_t CountsBits(int64_t common, int64_t chunks) {
  if (chunks == 1) return 0;
  return 1 + kCountBits * (common >= 0 ? 1 : chunks - 1);
}

// Gives how many positions each chunk has, from the first to the last. Copies are independent.
class ChunkCounts {
 public:
  // Reads the header of `count` positions and moves the stream past it.
  absl::Status Read(int64_t count, int64_t size, BitReader* stream) {
    chunks_ = ChunksOf(size);
    last_ = count;
    if (chunks_ == 1) return CheckLast(size);
    uint32_t regular = 0;
    if (!stream->Get(1, &regular)) return PositionsEndEarly(kChunk12Name);
    is_regular_ = regular == 1;
    counts_ = *stream;
    return is_regular_ ? ReadCommon(count, size, stream) : ReadEach(count, size, stream);
  }

  int64_t chunks() const { return chunks_; }
  // Whether only the last chunk has positions.
  bool OnlyLast() const { return is_regular_ && common_ == 0; }
  // The count of chunk `chunk`; each is asked for once, in order.
  int64_t Next(int64_t chunk) {
    if (chunk == chunks_ - 1) return last_;
    if (is_regular_) return common_;
    uint32_t count = 0;
    counts_.Get(kCountBits, &count);
    return count;
  }

 private:
  absl::Status CheckLast(int64_t size) const {
    if (last_ >= 0 && last_ <= size - (chunks_ - 1) * kChunk) return absl::OkStatus();
    return RefusePositions(kChunk12Name, "the chunks' counts do not add up");
  }

  absl::Status ReadCommon(int64_t count, int64_t size, BitReader* stream) {
    uint32_t common = 0;
    if (!stream->Get(kCountBits, &common)) return PositionsEndEarly(kChunk12Name);
    if (common > kChunk) return RefusePositions(kChunk12Name, "a chunk has more positions than elements");
    common_ = common;
    last_ = count - common_ * (chunks_ - 1);
    return CheckLast(size);
  }

  absl::Status ReadEach(int64_t count, int64_t size, BitReader* stream) {
    bool all_equal = true;
    int64_t before = -1;
    for (int64_t chunk = 0; chunk < chunks_ - 1; ++chunk) {
      uint32_t own = 0;
      if (!stream->Get(kCountBits, &own)) return PositionsEndEarly(kChunk12Name);
      if (own > kChunk) return RefusePositions(kChunk12Name, "a chunk has more positions than elements");
      all_equal = all_equal && (chunk == 0 || own == before);
      before = own;
      last_ -= own;
    }
    if (all_equal) return RefusePositions(kChunk12Name, "equal counts of the chunks are written once");
    return CheckLast(size);
  }

  int64_t chunks_ = 1;
  bool is_regular_ = true;
  int64_t common_ = 0;
  int64_t last_ = 0;
  BitReader counts_;
};

class Chunk12Reader final : public PositionReader {
 public:
  Chunk12Reader(const ChunkCounts& counts, int64_t size, const BitReader& places)
      : counts_(counts), size_(static_cast<uint64_t>(size)), places_(places) {
    // Most chunks of a large tensor may be empty; they are passed at once.
    if (counts_.OnlyLast()) chunk_ = counts_.chunks() - 2;
  }

  std::unique_ptr<PositionReader> Clone() const override { return std::make_unique<Chunk12Reader>(*this); }

  absl::Status Next(absl::Span<uint32_t> positions) override {
    for (uint32_t& position : positions) {
      while (left_ == 0) NextChunk();
      uint32_t place = 0;
      if (!places_.Get(kPlaceBits, &place)) return PositionsEndEarly(kChunk12Name);
      if (place < least_) return RefusePositions(kChunk12Name, "the places of a chunk do not increase");
      const uint64_t at = static_cast<uint64_t>(chunk_) * kChunk + place;
      if (at >= size_) return PositionPastTheEnd(kChunk12Name);
      position = static_cast<uint32_t>(at);
      least_ = place + 1;
      --left_;
    }
    return absl::OkStatus();
  }

  absl::StatusOr<BitReader> Finish() override { return places_; }

 private:
  void NextChunk() {
    left_ = counts_.Next(++chunk_);
    least_ = 0;
  }

  ChunkCounts counts_;
  uint64_t size_;
  BitReader places_;
  int64_t chunk_ = -1;
  int64_t left_ = 0;    // positions of the chunk that were not read yet
  uint32_t least_ = 0;  // the lowest place that may come next
};

class Chunk12 final : public PositionCoder {
 public:
  absl::string_view name() const override { return kChunk12Name; }

  int64_t Bits(absl::Span<const uint32_t> positions, int64_t size) const override {
    const int64_t chunks = ChunksOf(size);
    return CountsBits(CommonCount(positions, chunks), chunks) + static_cast<int64_t>(positions.size()) * kPlaceBits;
  }

  int64_t MaxBits(int64_t count, int64_t size) const override {
    return 1 + kCountBits * (ChunksOf(size) - 1) + count * kPlaceBits;
  }

  void Put(absl::Span<const uint32_t> positions, int64_t size, BitWriter* writer) const override {
    PutCounts(positions, ChunksOf(size), writer);
    for (const uint32_t position : positions) writer->Put(position % kChunk, kPlaceBits);
  }

  absl::StatusOr<std::unique_ptr<PositionReader>> Open(int64_t count, int64_t size,
                                                       const BitReader& stream) const override {
    ChunkCounts counts;
    BitReader places = stream;
    if (absl::Status status = counts.Read(count, size, &places); !status.ok()) return status;
    if (places.remaining() < static_cast<uint64_t>(count) * kPlaceBits) return PositionsEndEarly(kChunk12Name);
    return std::make_unique<Chunk12Reader>(counts, size, places);
  }

 private:
  static void PutCounts(absl::Span<const uint32_t> positions, int64_t chunks, BitWriter* writer) {
    if (chunks == 1) return;
    const int64_t common = CommonCount(positions, chunks);
    writer->Put(common >= 0 ? 1 : 0, 1);
    if (common >= 0) return writer->Put(common, kCountBits);
    size_t next = 0;
    for (int64_t chunk = 0; chunk < chunks - 1; ++chunk) {
      const size_t begin = next;
      while (next < positions.size() && positions[next] >> kPlaceBits == chunk) ++next;
      writer->Put(next - begin, kCountBits);
    }
  }
};

}  // namespace

const PositionCoder& Chunk12Coder() {
  static const Chunk12 coder;
  return coder;
}

}  // namespace terse
