// The contract that every row of the table of position coders must keep. A new coder is tested by being a row.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "compression/position_coder_table.h"
#include "tests/compression/positions.h"

namespace terse {
namespace {

constexpr int64_t kLargestSize = 2147483647;
constexpr uint32_t kTrailer = 0x2b5d;
constexpr int kLead = 3;            // an odd bit offset
constexpr size_t kManyBytes = 400;  // longer encodings are not looked at byte by byte

struct Case {
  Positions positions;
  int64_t size;
};

Positions Range(uint32_t begin, uint32_t end, uint32_t step = 1) {
  Positions positions;
  for (uint32_t i = begin; i < end; i += step) positions.push_back(i);
  return positions;
}

// Cases of few bytes, for tests that look at each of them.
std::vector<Case> MakeSmallCases() {
  Random random(1);
  std::vector<Case> cases = {
      {{0}, 1},
      {{0}, 2},
      {{1}, 2},
      {{0, 1}, 2},
      {{0}, kLargestSize},
      {{kLargestSize - 1}, kLargestSize},
      {{0, kLargestSize - 1}, kLargestSize},
      {{kLargestSize - 3, kLargestSize - 2, kLargestSize - 1}, kLargestSize},
      {{65534}, 65535},
      {{65535}, 65536},
      {{0, 65535, 65536, 131071, 131072}, 131073},
      {{7}, 100},
      {{0, 99}, 100},
      {Range(0, 50), 50},
      {Range(0, 64), 6400},
      {Range(0, 6400, 100), 6400},
      {RandomPositions(9, kLargestSize, &random), kLargestSize},
  };
  for (int64_t size : {3, 10, 64, 500, 25000}) {
    for (int64_t count : {size / 100, size / 10, size / 3, size / 2, size - 1}) {
      if (count >= 1 && count <= 250) cases.push_back({RandomPositions(count, size, &random), size});
    }
  }
  return cases;
}

std::vector<Case> MakeCases() {
  Random random(2);
  std::vector<Case> cases = MakeSmallCases();
  for (int64_t size : {1000, 25000, 400000}) {
    for (double density : {0.0005, 0.01, 0.1, 0.4, 0.9, 1.0}) {
      const int64_t count = static_cast<int64_t>(static_cast<double>(size) * density);
      if (count >= 1) cases.push_back({RandomPositions(count, size, &random), size});
    }
  }
  for (double spread : {0.5, 1.0, 1.5}) {
    cases.push_back({ClusteredPositions(500, 800, 0.01, spread, &random), 400000});
    cases.push_back({ClusteredPositions(500, 10, 0.05, spread, &random), 5000});
  }
  cases.push_back({RandomPositions(5000, kLargestSize, &random), kLargestSize});
  // A long crowd and a far straggler: the longest gap and the rarest one at once.
  Positions crowd = Range(1000, 21000);
  crowd.push_back(kLargestSize - 1);
  cases.push_back({crowd, kLargestSize});
  return cases;
}

const std::vector<Case>& SmallCases() {
  static const auto* const cases = new std::vector<Case>(MakeSmallCases());
  return *cases;
}

const std::vector<Case>& Cases() {
  static const auto* const cases = new std::vector<Case>(MakeCases());
  return *cases;
}

class PositionCoderConformance : public ::testing::TestWithParam<std::string> {
 protected:
  const PositionCoder& coder() const { return **FindPositionCoder(GetParam()); }

  // The one place where several encodings decode is the selector of "auto" (FORMAT.md).
  bool IsCanonical() const { return GetParam() != "auto"; }

  // The stream's first bits are refused, or are what the encoder writes for some positions below `size`.
  void ExpectRefusedOrCanonical(int64_t count, int64_t size, const std::string& bytes, int lead) const {
    const ExactBytes exact(bytes);
    const BitReader stream = exact.After(lead);
    const auto decoded = DecodePositions(coder(), count, size, stream);
    if (!decoded.ok()) {
      EXPECT_EQ(decoded.status().code(), absl::StatusCode::kInvalidArgument);
      return;
    }
    const Positions& positions = decoded->positions;
    ASSERT_TRUE(std::is_sorted(positions.begin(), positions.end(), std::less_equal<uint32_t>()));
    ASSERT_LT(positions.back(), size);
    const int64_t used = static_cast<int64_t>(decoded->after.position() - stream.position());
    if (!IsCanonical()) {
      EXPECT_LE(coder().Bits(positions, size), used);
      return;
    }
    ASSERT_EQ(coder().Bits(positions, size), used);
    const std::string again = EncodePositions(coder(), positions, size, lead);
    const ExactBytes exact_again(again);
    BitReader first = exact.After(lead), second = exact_again.After(lead);
    for (int64_t i = 0; i < used; ++i) {
      uint32_t a = 0, b = 0;
      ASSERT_TRUE(first.Get(1, &a) && second.Get(1, &b));
      ASSERT_EQ(a, b) << "bit " << i << " of " << used;
    }
  }
};

TEST_P(PositionCoderConformance, IsFoundByItsName) { EXPECT_EQ(coder().name(), GetParam()); }

TEST_P(PositionCoderConformance, RoundTripsAndLeavesTheStreamBehindTheTensor) {
  for (const Case& c : Cases()) {
    const int64_t count = static_cast<int64_t>(c.positions.size());
    SCOPED_TRACE(testing::Message() << count << " of " << c.size);
    for (int lead : {0, kLead}) {
      const ExactBytes bytes(EncodePositions(coder(), c.positions, c.size, lead, kTrailer));
      const auto decoded = DecodePositions(coder(), count, c.size, bytes.After(lead));
      ASSERT_TRUE(decoded.ok()) << decoded.status();
      ASSERT_EQ(decoded->positions, c.positions);
      BitReader after = decoded->after;
      ASSERT_EQ(static_cast<int64_t>(after.position()) - lead, coder().Bits(c.positions, c.size));
      uint32_t trailer;
      ASSERT_TRUE(after.Get(14, &trailer));
      EXPECT_EQ(trailer, kTrailer);
    }
    EXPECT_LE(coder().Bits(c.positions, c.size), coder().MaxBits(count, c.size));
  }
}

TEST_P(PositionCoderConformance, ReadsRunsOfAnyLengthAndClones) {
  for (const Case& c : Cases()) {
    const int64_t count = static_cast<int64_t>(c.positions.size());
    const ExactBytes bytes(EncodePositions(coder(), c.positions, c.size, kLead, kTrailer));
    auto reader = coder().Open(count, c.size, bytes.After(kLead));
    ASSERT_TRUE(reader.ok());
    Positions decoded(count);
    const int64_t step = count < 1000 ? 1 : count / 7;
    int64_t done = 0;
    for (int64_t run = 0; done < count; run += step) {
      const int64_t length = std::min(run, count - done);
      ASSERT_TRUE((*reader)->Next(absl::MakeSpan(decoded).subspan(done, length)).ok());
      done += length;
      const std::unique_ptr<PositionReader> clone = (*reader)->Clone();
      Positions rest(count - done);
      ASSERT_TRUE(clone->Next(absl::MakeSpan(rest)).ok());
      ASSERT_TRUE(std::equal(rest.begin(), rest.end(), c.positions.begin() + done));
      ASSERT_EQ(clone->Finish()->position(), kLead + static_cast<uint64_t>(coder().Bits(c.positions, c.size)));
    }
    EXPECT_EQ(decoded, c.positions);
    EXPECT_EQ((*reader)->Finish()->position(), kLead + static_cast<uint64_t>(coder().Bits(c.positions, c.size)));
  }
}

TEST_P(PositionCoderConformance, MaxBitsBoundsEverySubset) {
  const int64_t size = 13;
  std::vector<int64_t> longest(size + 1);
  for (uint32_t mask = 1; mask < (1u << size); ++mask) {
    Positions positions;
    for (uint32_t i = 0; i < size; ++i) {
      if ((mask >> i & 1) != 0) positions.push_back(i);
    }
    longest[positions.size()] = std::max(longest[positions.size()], coder().Bits(positions, size));
  }
  for (int64_t limit = 1; limit <= size; ++limit) {
    const int64_t most = *std::max_element(longest.begin(), longest.begin() + limit + 1);
    EXPECT_GE(coder().MaxBits(limit, size), most) << limit;
  }
}

TEST_P(PositionCoderConformance, RefusesEveryTruncation) {
  for (const Case& c : SmallCases()) {
    const int64_t count = static_cast<int64_t>(c.positions.size());
    const std::string bytes = EncodePositions(coder(), c.positions, c.size, kLead);
    const size_t needed = (kLead + coder().Bits(c.positions, c.size) + 7) / 8;
    if (needed > kManyBytes) continue;
    for (size_t length = 1; length <= bytes.size(); ++length) {
      const ExactBytes cut(absl::string_view(bytes).substr(0, length));
      const auto decoded = DecodePositions(coder(), count, c.size, cut.After(kLead));
      if (length < needed) {
        ASSERT_FALSE(decoded.ok()) << length << " of " << needed << " bytes, " << count << " of " << c.size;
        EXPECT_EQ(decoded.status().code(), absl::StatusCode::kInvalidArgument);
      } else {
        ASSERT_TRUE(decoded.ok()) << decoded.status();
        EXPECT_EQ(decoded->positions, c.positions);
      }
    }
  }
}

TEST_P(PositionCoderConformance, RefusesCorruptBytesOrDecodesWhatItWouldWrite) {
  for (const Case& c : SmallCases()) {
    const int64_t count = static_cast<int64_t>(c.positions.size());
    const std::string bytes = EncodePositions(coder(), c.positions, c.size, kLead);
    for (size_t i = 0; i < bytes.size() && bytes.size() <= kManyBytes; ++i) {
      for (int change : {0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0x81, 0x7e, 0xff}) {
        std::string corrupt = bytes;
        corrupt[i] = static_cast<char>(corrupt[i] ^ change);
        ExpectRefusedOrCanonical(count, c.size, corrupt, kLead);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(PositionCoderConformance, RefusesRandomBytesOrDecodesWhatItWouldWrite) {
  Random random(3);
  for (int i = 0; i < 20000; ++i) {
    const int64_t size = 1 + static_cast<int64_t>(random.Below(uint64_t{1} << random.Below(31)));
    const int64_t count = 1 + static_cast<int64_t>(random.Below(std::min<int64_t>(size, 1 << random.Below(8))));
    std::string bytes(random.Below(200), '\0');
    const uint64_t ones = random.Below(4);  // few, half or many ones
    for (char& byte : bytes) {
      uint64_t bits = random.Next();
      if (ones == 0) bits &= random.Next() & random.Next();
      if (ones == 1) bits |= random.Next() | random.Next();
      byte = static_cast<char>(bits);
    }
    ExpectRefusedOrCanonical(count, size, bytes, static_cast<int>(bytes.empty() ? 0 : random.Below(8)));
    if (HasFatalFailure()) return;
  }
}

TEST_P(PositionCoderConformance, RefusesAStreamThatNeverEndsAGap) {
  for (char fill : {'\0', '\xff'}) {
    const ExactBytes bytes(std::string(4096, fill));
    for (int64_t size : {int64_t{10}, kLargestSize}) {
      const auto decoded = DecodePositions(coder(), 1, size, bytes.After(1));
      if (decoded.ok()) {
        EXPECT_LT(decoded->positions[0], size);
      }
    }
  }
}

TEST(PositionCoderTable, NamesTheKnownCodersWhenOneIsUnknown) {
  const absl::Status status = FindPositionCoder("huffman").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  for (const std::string& name : PositionCoderNames()) {
    EXPECT_NE(status.message().find(name), absl::string_view::npos) << name;
  }
}

TEST(PositionCoderTable, ReportsEveryCodersBits) {
  const std::vector<PositionCost> costs = PositionCosts({0, 1, 2, 65538}, 65539);
  ASSERT_EQ(costs.size(), PositionCoderNames().size());
  for (const PositionCost& cost : costs) {
    if (cost.coder == "fixed16") {
      EXPECT_EQ(cost.bits_per_position, 16 * 5 / 4.0);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Coders, PositionCoderConformance, ::testing::ValuesIn(PositionCoderNames()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace terse
