#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "compression/position_coder_table.h"
#include "core/random.h"
#include "core/status.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/targets.h"

namespace terse {
namespace {

// The most positions of an input: more than what readers take at a time.
constexpr int64_t kMostPositions = 600;
// The largest size of a tensor whose positions are written here: beyond it fixed16 writes nothing but counters that ran
// full.
constexpr int64_t kMostCoded = 1 << 24;

struct Stream {
  const PositionCoder* coder;
  int64_t count;
  int64_t size;
  BitReader bits;
};

// Reads all positions, fewer than `step` at a time, and sets `after` behind them.
absl::StatusOr<std::vector<uint32_t>> ReadPieces(const Stream& stream, int64_t step, Random* random, BitReader* after) {
  TERSE_ASSIGN_OR_RETURN(std::unique_ptr<PositionReader> reader,
                         stream.coder->Open(stream.count, stream.size, stream.bits));
  std::vector<uint32_t> positions(stream.count);
  for (int64_t at = 0; at < stream.count;) {
    const int64_t count = std::min<int64_t>(stream.count - at, 1 + static_cast<int64_t>(random->Below(step)));
    if (random->Below(4) == 0) reader = reader->Clone();
    TERSE_RETURN_IF_ERROR(reader->Next(absl::MakeSpan(positions).subspan(at, count)));
    at += count;
  }
  TERSE_ASSIGN_OR_RETURN(*after, reader->Finish());
  return positions;
}

bool SameBits(BitReader a, BitReader b, int64_t count) {
  for (; count > 0; count -= 32) {
    const int width = static_cast<int>(std::min<int64_t>(count, 32));
    uint32_t from_a = 0, from_b = 0;
    if (!a.Get(width, &from_a) || !b.Get(width, &from_b) || from_a != from_b) return false;
  }
  return true;
}

// Checks that a set of positions was read, and that writing it gives the bits that were read.
void CheckRead(const Stream& stream, const std::vector<uint32_t>& positions, const BitReader& after) {
  for (size_t i = 1; i < positions.size(); ++i) Require(positions[i - 1] < positions[i], "positions increase");
  Require(positions.back() < stream.size, "positions lie in the tensor");
  const int64_t read = static_cast<int64_t>(after.position() - stream.bits.position());
  if (stream.coder->name() == "auto") {  // its reader does not check that the shortest coder was chosen
    return Require(read >= stream.coder->Bits(positions, stream.size), "Bits is the shortest that can be read");
  }
  Require(read == stream.coder->Bits(positions, stream.size), "Bits is what is read");
  Require(read <= stream.coder->MaxBits(stream.count, stream.size), "nothing takes more than MaxBits");
  std::string again;
  BitWriter writer(&again);
  stream.coder->Put(positions, stream.size, &writer);
  writer.Finish();
  Require(static_cast<int64_t>(again.size()) == (read + 7) / 8, "Put writes as many bits as are read");
  Require(SameBits(BitReader(again), stream.bits, read), "Put writes the bits that were read");
}

// Reads at once and in pieces, whose size `pieces` chooses.
absl::StatusOr<std::vector<uint32_t>> ReadEveryWay(const Stream& stream, uint64_t pieces) {
  Random random(pieces);
  BitReader after;
  auto positions = ReadPieces(stream, stream.count, &random, &after);
  constexpr int64_t kSteps[] = {1, 7, 300};
  BitReader pieced_after;
  const auto pieced = ReadPieces(stream, kSteps[pieces % 3], &random, &pieced_after);
  Require(pieced.ok() == positions.ok(), "pieces change nothing about what is accepted");
  if (pieced.ok()) {
    Require(*pieced == *positions, "pieces change nothing about the positions");
    Require(pieced_after.position() == after.position(), "pieces change nothing about the end");
  } else {
    Require(pieced.status().code() == absl::StatusCode::kInvalidArgument, "bad bits are an INVALID_ARGUMENT");
  }
  if (positions.ok()) {
    CheckRead(stream, *positions, after);
  } else {
    Require(positions.status().code() == absl::StatusCode::kInvalidArgument, "bad bits are an INVALID_ARGUMENT");
  }
  return positions;
}

// Positions from bytes: two bytes a gap, the second one's upper bits a shift.
std::vector<uint32_t> PositionsFrom(Input* input, int64_t count, int64_t size) {
  std::vector<uint32_t> positions;
  int64_t next = 0;
  while (static_cast<int64_t>(positions.size()) < count && next < size) {
    const uint32_t gap = input->Word16();
    next += int64_t{gap & 0x7ff} << (gap >> 11);
    if (next < size) positions.push_back(static_cast<uint32_t>(next++));
  }
  if (positions.empty()) positions.push_back(static_cast<uint32_t>(size - 1));
  return positions;
}

void CodeAndRead(const PositionCoder& coder, const std::vector<uint32_t>& positions, int64_t size, int lead,
                 uint64_t pieces) {
  std::string bytes;
  BitWriter writer(&bytes);
  writer.Put((uint64_t{1} << lead) - 1, lead);
  coder.Put(positions, size, &writer);
  writer.Finish();
  BitReader bits(bytes);
  Require(bits.Skip(lead), "the lead was written");
  const auto read = ReadEveryWay({&coder, static_cast<int64_t>(positions.size()), size, bits}, pieces);
  Require(read.ok() && *read == positions, "what was written is read");
}

}  // namespace

void FuzzPositions(const char* row, const uint8_t* data, size_t size) {
  static const PositionCoder* const coder = [row] {
    const auto found = FindPositionCoder(row);
    Require(found.ok(), "the table of position coders has the row that this target is named after");
    return *found;
  }();
  Input input(data, size);
  const bool code = input.Byte() % 2 == 1;
  const int lead = input.Byte() % 16;
  const uint64_t pieces = input.Byte();
  const int shift = input.Byte() % 31;
  const int64_t count = 1 + input.Word16() % kMostPositions;
  int64_t elements = std::max<int64_t>(count, (input.Word32() & 0x7fffffffu) >> shift);
  if (code) elements = std::min(elements, kMostCoded);
  if (code) return CodeAndRead(*coder, PositionsFrom(&input, count, elements), elements, lead, pieces);
  BitReader bits(input.Rest());
  if (bits.Skip(lead)) ReadEveryWay({coder, count, elements, bits}, pieces).IgnoreError();
}

}  // namespace terse
