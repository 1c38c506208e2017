// Prefix codes of symbols by how often they occur: Huffman, "A Method for the Construction of Minimum-Redundancy Codes"
// (1952), in canonical form (Schwartz and Kallick 1964), so that the lengths of the code words alone say what they are.
// Integer arithmetic only: the same counts give the same code on every machine.
#ifndef TERSE_COMPRESSION_PREFIX_CODE_H_
#define TERSE_COMPRESSION_PREFIX_CODE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace terse {

// The most symbols of a code, and the most bits of a code word. A balanced code of so many symbols fits.
inline constexpr int64_t kMostPrefixSymbols = int64_t{1} << 14;
inline constexpr int kMostPrefixBits = 15;

// The lengths of the code words of 1 to kMostPrefixSymbols symbols that occur so often, each at least once. A single
// symbol has a code word of no bits. The code is a shortest one unless that has code words of more than kMostPrefixBits
// bits; then counts are halved, rounded up, until it does not.
std::vector<uint8_t> PrefixLengths(absl::Span<const uint64_t> counts);

// A code word as it stands in a stream of bits: its first bit is the lowest.
struct PrefixWord {
  uint16_t bits = 0;
  uint8_t length = 0;
};

// Code words in the canonical order: of two symbols the one with the shorter code word, and then the one with the lower
// index, has the lower code word, read as a number whose first bit is the highest. INVALID_ARGUMENT for lengths that
// are no complete code of 1 to kMostPrefixSymbols symbols.
absl::StatusOr<std::vector<PrefixWord>> PrefixWords(absl::Span<const uint8_t> lengths);

// Finds symbols by the bits in front. Immutable; safe to share. At most 128 KiB.
class PrefixTable {
 public:
  struct Entry {
    uint16_t symbol = 0;  // index
    uint8_t length = 0;   // of its code word
  };

  // The words are those of PrefixWords.
  explicit PrefixTable(absl::Span<const PrefixWord> words);

  // The symbol whose code word is in front of `window`, the first bit lowest. There always is one.
  Entry Find(uint64_t window) const { return entries_[window & mask_]; }

 private:
  uint64_t mask_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace terse

#endif  // TERSE_COMPRESSION_PREFIX_CODE_H_
