#include "compression/elias_omega.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/random.h"

namespace terse {
namespace {

// The definition, on strings.
std::string PaperWord(uint64_t n) {
  std::string word = "0";
  while (n > 1) {
    std::string digits;
    for (uint64_t rest = n; rest > 0; rest >>= 1) digits.insert(digits.begin(), (rest & 1) != 0 ? '1' : '0');
    word.insert(0, digits);
    n = digits.size() - 1;
  }
  return word;
}

std::string BitsOf(const std::string& bytes, size_t count) {
  std::string bits;
  for (size_t i = 0; i < count; ++i) bits.push_back((bytes[i / 8] >> (i % 8) & 1) != 0 ? '1' : '0');
  return bits;
}

std::string Packed(const std::string& bits) {
  std::string bytes;
  BitWriter writer(&bytes);
  for (char bit : bits) writer.Put(bit == '1', 1);
  writer.Finish();
  return bytes;
}

std::vector<uint32_t> Numbers() {
  std::vector<uint32_t> numbers;
  for (uint32_t n = 1; n < 5000; ++n) numbers.push_back(n);
  for (int power = 12; power < 32; ++power) {
    for (uint32_t step : {0u, 1u, 2u, 12345u}) numbers.push_back((uint32_t{1} << power) - 1 + step);
  }
  numbers.push_back(0xffffffffu);
  return numbers;
}

TEST(EliasOmega, HasTheWordsOfItsPaper) {
  const std::pair<uint32_t, const char*> words[] = {
      {1, "0"},       {2, "100"},      {3, "110"},          {4, "101000"},        {5, "101010"},         {7, "101110"},
      {8, "1110000"}, {15, "1111110"}, {16, "10100100000"}, {32, "101011000000"}, {100, "1011011001000"}};
  for (const auto& [number, word] : words) {
    std::string bytes;
    BitWriter writer(&bytes);
    PutEliasOmega(number, &writer);
    writer.Finish();
    EXPECT_EQ(BitsOf(bytes, std::string(word).size()), word) << number;
    EXPECT_EQ(EliasOmegaBits(number), std::string(word).size()) << number;
  }
}

TEST(EliasOmega, FollowsItsDefinitionAndComesBack) {
  std::string bytes;
  std::string expected;
  BitWriter writer(&bytes);
  for (uint32_t n : Numbers()) {
    PutEliasOmega(n, &writer);
    expected += PaperWord(n);
    ASSERT_EQ(EliasOmegaBits(n), PaperWord(n).size()) << n;
  }
  writer.Finish();
  ASSERT_EQ(BitsOf(bytes, expected.size()), expected);
  BitReader reader{absl::string_view(bytes)};
  for (uint32_t n : Numbers()) {
    uint32_t value = 0;
    ASSERT_TRUE(GetEliasOmega(0xffffffffu, &reader, &value)) << n;
    ASSERT_EQ(value, n);
  }
  EXPECT_TRUE(reader.AtPaddedEnd());
}

TEST(EliasOmega, RefusesWhatIsCutOffOrTooLarge) {
  for (uint32_t n : {2u, 7u, 15u, 16u, 255u, 70000u}) {
    const std::string word = PaperWord(n);
    uint32_t value = 0;
    std::string padded = Packed(word);
    BitReader whole{absl::string_view(padded)};
    EXPECT_TRUE(GetEliasOmega(n, &whole, &value));
    BitReader limited{absl::string_view(padded)};
    EXPECT_FALSE(GetEliasOmega(n - 1, &limited, &value)) << n;
    // In the middle of a byte string the cut is where the bytes end.
    const std::string ones = std::string(8 - word.size() % 8, '1') + word;
    padded = Packed(ones);
    BitReader cut(absl::string_view(padded).substr(0, padded.size() - 1));
    cut.Skip(ones.size() - word.size());
    EXPECT_FALSE(GetEliasOmega(0xffffffffu, &cut, &value)) << n;
  }
  const std::string endless = std::string(100, '\xff') + std::string(20000, '\0');
  BitReader reader{absl::string_view(endless)};
  uint32_t value = 0;
  EXPECT_FALSE(GetEliasOmega(0xffffffffu, &reader, &value));
}

// These two write the codes of appendix A.2 and A.3 as strings, with the readings of elias_omega.h.
std::string PaperSparse(const std::vector<uint32_t>& symbols) {
  std::string bits;
  int64_t last = -1;
  for (int64_t i = 0; i < static_cast<int64_t>(symbols.size()); ++i) {
    if (symbols[i] == 0) continue;
    bits += PaperWord(i - last) + (symbols[i] % 2 == 1 ? "1" : "0") + PaperWord(symbols[i] / 2);
    last = i;
  }
  const int64_t rest = symbols.size() - last;
  return rest == 1 ? bits : bits + PaperWord(rest);
}

std::string PaperDense(const std::vector<uint32_t>& symbols) {
  std::string bits;
  for (uint32_t symbol : symbols) {
    bits += PaperWord(symbol / 2 + 1);
    if (symbol > 0) bits += symbol % 2 == 1 ? "1" : "0";
  }
  return bits;
}

std::vector<uint32_t> RandomSymbols(size_t count, double density, uint32_t max_level, Random* random) {
  std::vector<uint32_t> symbols(count);
  for (uint32_t& symbol : symbols) {
    if (random->Uniform(0, 1) < density) symbol = 2 * (1 + random->Below(max_level)) + random->Below(2);
  }
  return symbols;
}

TEST(EliasOmegaCoder, WritesTheShorterCodeAndReadsIt) {
  Random random(5);
  int dense_ones = 0;
  for (int i = 0; i < 600; ++i) {
    const uint32_t max_level = i % 2 == 0 ? 3 : 255;
    const auto coder = NewEliasOmegaCoder(max_level);
    const double densities[] = {0, 0.01, 0.3, 0.9, 1};
    const size_t count = 1 + random.Below(i % 3 == 0 ? 1200 : 6);
    const std::vector<uint32_t> symbols = RandomSymbols(count, densities[i % 5], max_level, &random);
    const std::string sparse = PaperSparse(symbols);
    const std::string dense = PaperDense(symbols);
    const bool is_dense = dense.size() < sparse.size();
    const std::string expected = is_dense ? "1" + dense : "0" + sparse;
    dense_ones += is_dense;
    std::string bytes;
    BitWriter writer(&bytes);
    coder->Put(symbols, &writer);
    writer.Finish();
    ASSERT_EQ(BitsOf(bytes, expected.size()), expected);
    EXPECT_EQ(coder->Bits(symbols), expected.size());
    EXPECT_LE(coder->Bits(symbols), coder->MaxBits(count));

    BitReader stream{absl::string_view(bytes)};
    auto reader = coder->NewReader();
    ASSERT_TRUE(reader->Start(count, &stream).ok());
    std::vector<uint32_t> decoded(count);
    for (size_t at = 0; at < count; at += kSymbolRun) {
      reader = reader->Clone();
      ASSERT_TRUE(reader->Next(absl::MakeSpan(decoded).subspan(at, kSymbolRun), &stream).ok());
    }
    EXPECT_TRUE(reader->Finish().ok());
    EXPECT_EQ(decoded, symbols);
    EXPECT_EQ(stream.position(), expected.size());
  }
  EXPECT_GT(dense_ones, 100);
  EXPECT_LT(dense_ones, 500);
}

// Reads a bucket of `count` symbols with levels up to 3.
absl::Status Read(const std::string& bits, size_t count) {
  const std::string bytes = Packed(bits);
  BitReader stream{absl::string_view(bytes)};
  const auto reader = NewEliasOmegaCoder(3)->NewReader();
  absl::Status status = reader->Start(count, &stream);
  std::vector<uint32_t> symbols(count);
  if (status.ok()) status = reader->Next(absl::MakeSpan(symbols), &stream);
  if (status.ok()) status = reader->Finish();
  return status;
}

TEST(EliasOmegaCoder, RefusesWhatItDoesNotWrite) {
  const std::vector<uint32_t> half = {0, 4, 0, 0, 3, 4};  // sparse 17 bits, dense 15
  EXPECT_TRUE(Read("1" + PaperDense(half), 6).ok());
  EXPECT_FALSE(Read("0" + PaperSparse(half), 6).ok());
  const std::vector<uint32_t> zeros(20);
  EXPECT_TRUE(Read("0" + PaperSparse(zeros), 20).ok());
  EXPECT_FALSE(Read("1" + PaperDense(zeros), 20).ok());
  EXPECT_FALSE(Read("0" + PaperWord(22), 20).ok());                                      // past the end
  EXPECT_FALSE(Read("0" + PaperWord(1) + "0" + PaperWord(4) + PaperWord(20), 20).ok());  // level 4
  EXPECT_TRUE(Read("0" + PaperWord(1) + "0" + PaperWord(3) + PaperWord(20), 20).ok());
  EXPECT_FALSE(Read("1" + PaperWord(5) + "0", 1).ok());  // level 4
  EXPECT_FALSE(Read("", 20).ok());
}

}  // namespace
}  // namespace terse
