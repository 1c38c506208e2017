// The coder "shared" with histories of many kinds. The table's conformance suite does not see it: it needs a history.
#include "compression/shared_coder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "compression/gap_code.h"
#include "compression/rice.h"
#include "compression/simd.h"
#include "tests/compression/positions.h"
#include "tests/testing/paths.h"

namespace terse {
namespace {

constexpr uint32_t kTrailer = 0x2b5d;
constexpr int kLead = 3;

struct Shape {
  int64_t rows;
  int64_t columns;
  double density;
  double spread;  // of the rates of rows and columns
};

constexpr Shape kShapes[] = {{500, 800, 0.01, 1.0}, {700, 800, 0.012, 1.0}, {500, 800, 0.001, 1.0},
                             {50, 500, 0.1, 0.5},   {1, 70000, 0.01, 0.5},  {5000, 7, 0.02, 0.5},
                             {40, 33, 0.5, 1.5},    {9, 8, 0.6, 0.3},       {300, 1, 1.0, 0.0}};

// A line between two ends: messages of a tensor, one after the other.
class Line {
 public:
  explicit Line(const Shape& shape, uint64_t seed = 1)
      : shape_(shape), random_(seed), history_(shape.rows, shape.columns) {
    Draw();
  }

  // Takes the message in and draws the next one.
  void Advance() {
    history_.Add(positions_, side_);
    Draw();
  }

  const PositionHistory& history() const { return history_; }
  const Positions& positions() const { return positions_; }
  int64_t size() const { return history_.size(); }
  int side() const { return side_; }
  SharedCoder coder() const { return SharedCoder(&history_, side_); }

 private:
  // Rows and columns have the same rates in every message.
  void Draw() {
    Random rates(7);
    Positions lively =
        ClusteredPositions(shape_.rows, shape_.columns, std::min(1.0, 4 * shape_.density), shape_.spread, &rates);
    positions_.clear();
    for (uint32_t position : lively) {
      if (random_.Below(4) == 0) positions_.push_back(position);
    }
    if (positions_.empty()) positions_.push_back(static_cast<uint32_t>(random_.Below(size())));
    side_ = static_cast<int>(random_.Below(2));
  }

  const Shape shape_;
  Random random_;
  PositionHistory history_;
  Positions positions_;
  int side_ = 0;
};

void ExpectRoundTrip(const Line& line) {
  const SharedCoder coder = line.coder();
  const int64_t count = static_cast<int64_t>(line.positions().size());
  const ExactBytes bytes(EncodePositions(coder, line.positions(), line.size(), kLead, kTrailer));
  const auto decoded = DecodePositions(coder, count, line.size(), bytes.After(kLead));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  ASSERT_EQ(decoded->positions, line.positions());
  BitReader after = decoded->after;
  const int64_t bits = static_cast<int64_t>(after.position()) - kLead;
  ASSERT_EQ(bits, coder.Bits(line.positions(), line.size()));
  uint32_t trailer = 0;
  ASSERT_TRUE(after.Get(14, &trailer));
  ASSERT_EQ(trailer, kTrailer);
  ASSERT_LE(bits, 1 + RiceCoder().Bits(line.positions(), line.size()));
  ASSERT_LE(bits, coder.MaxBits(count, line.size()));
}

class SharedCoderOnTargets : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { ASSERT_TRUE(UseSimdTarget(GetParam()).ok()); }
  void TearDown() override { ASSERT_TRUE(UseSimdTarget("").ok()); }
};

TEST_P(SharedCoderOnTargets, RoundTripsAndCostsAtMostABitMoreThanRice) {
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(testing::Message() << shape.rows << " x " << shape.columns << ", " << shape.density);
    Line line(shape);
    for (int message = 0; message < 12; ++message) {
      ASSERT_NO_FATAL_FAILURE(ExpectRoundTrip(line)) << message;
      line.Advance();
    }
  }
}

TEST_P(SharedCoderOnTargets, WritesTheSameBitsEverywhere) {
  for (const Shape& shape : kShapes) {
    Line line(shape);
    for (int message = 0; message < 5; ++message) line.Advance();
    const std::string bytes = EncodePositions(line.coder(), line.positions(), line.size());
    ASSERT_TRUE(UseSimdTarget("scalar").ok());
    EXPECT_EQ(EncodePositions(line.coder(), line.positions(), line.size()), bytes);
    ASSERT_TRUE(UseSimdTarget(GetParam()).ok());
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, SharedCoderOnTargets, ::testing::ValuesIn(SimdTargets()),
                         [](const auto& info) { return info.param; });

TEST(SharedCoder, WithoutAHistoryIsRice) {
  const Line line(kShapes[0]);
  EXPECT_EQ(EncodePositions(line.coder(), line.positions(), line.size()),
            EncodePositions(RiceCoder(), line.positions(), line.size()));
}

TEST(SharedCoder, ReadsRunsOfAnyLengthAndClones) {
  Line line(kShapes[0]);
  line.Advance();
  const SharedCoder coder = line.coder();
  const int64_t count = static_cast<int64_t>(line.positions().size());
  const ExactBytes bytes(EncodePositions(coder, line.positions(), line.size(), kLead, kTrailer));
  auto reader = coder.Open(count, line.size(), bytes.After(kLead));
  ASSERT_TRUE(reader.ok());
  Positions decoded(count);
  int64_t done = 0;
  for (int64_t run = 0; done < count; run += count / 7) {
    const int64_t length = std::min(run, count - done);
    ASSERT_TRUE((*reader)->Next(absl::MakeSpan(decoded).subspan(done, length)).ok());
    done += length;
    const std::unique_ptr<PositionReader> clone = (*reader)->Clone();
    Positions rest(count - done);
    ASSERT_TRUE(clone->Next(absl::MakeSpan(rest)).ok());
    ASSERT_TRUE(std::equal(rest.begin(), rest.end(), line.positions().begin() + done));
    ASSERT_EQ(clone->Finish()->position(), kLead + coder.Bits(line.positions(), line.size()));
  }
  EXPECT_EQ(decoded, line.positions());
}

TEST(SharedCoder, RefusesEveryTruncation) {
  Line line({30, 40, 0.1, 1.0});
  for (int message = 0; message < 12; ++message) {
    line.Advance();
    const SharedCoder coder = line.coder();
    const int64_t count = static_cast<int64_t>(line.positions().size());
    const std::string bytes = EncodePositions(coder, line.positions(), line.size(), kLead);
    const int64_t bits = coder.Bits(line.positions(), line.size());
    ASSERT_LT(bits, 1 + RiceCoder().Bits(line.positions(), line.size()));  // not Rice's
    const size_t needed = (kLead + bits + 7) / 8;
    for (size_t length = 1; length < needed; ++length) {
      const ExactBytes cut(absl::string_view(bytes).substr(0, length));
      const auto decoded = DecodePositions(coder, count, line.size(), cut.After(kLead));
      ASSERT_EQ(decoded.status().code(), absl::StatusCode::kInvalidArgument) << length << " of " << needed;
    }
  }
}

// Expects that positions decoded from the bits encode to the same bits, unless Rice would have been shorter, or that
// the bits are refused; counts the reasons.
void ExpectRefusedOrCanonical(const Line& line, const std::string& bytes, std::map<std::string, int>* refused) {
  const SharedCoder coder = line.coder();
  const ExactBytes exact(bytes);
  const auto decoded =
      DecodePositions(coder, static_cast<int64_t>(line.positions().size()), line.size(), exact.After(kLead));
  if (!decoded.ok()) {
    EXPECT_EQ(decoded.status().code(), absl::StatusCode::kInvalidArgument);
    ++(*refused)[std::string(decoded.status().message())];
    return;
  }
  const Positions& positions = decoded->positions;
  ASSERT_TRUE(std::is_sorted(positions.begin(), positions.end(), std::less_equal<uint32_t>()));
  ASSERT_LT(positions.back(), line.size());
  const int64_t read = static_cast<int64_t>(decoded->after.position()) - kLead;
  const int64_t bits = coder.Bits(positions, line.size());
  ASSERT_LE(bits, read);
  if (bits < read) return;
  const std::string again = EncodePositions(coder, positions, line.size(), kLead);
  BitReader first = exact.After(kLead), second = BitReader(again);
  second.Skip(kLead);
  for (int64_t i = 0; i < read; ++i) {
    uint32_t a = 0, b = 0;
    ASSERT_TRUE(first.Get(1, &a) && second.Get(1, &b));
    ASSERT_EQ(a, b) << "bit " << i << " of " << read;
  }
}

// Two lanes, the first of which goes on where the second is, as no encoder that is given increasing positions has it.
TEST(SharedCoder, RefusesLanesThatOverlap) {
  Line line({700, 800, 0.012, 1.0});
  for (int message = 0; message < 3; ++message) line.Advance();
  const int64_t count = static_cast<int64_t>(line.positions().size());
  ASSERT_GE(count, 2048);
  const int64_t end = count / 2;  // index of the position between the lanes
  const auto decode = [&](const Positions& positions) {
    const ExactBytes bytes(EncodePositions(line.coder(), positions, line.size(), kLead));
    return DecodePositions(line.coder(), count, line.size(), bytes.After(kLead)).status();
  };
  Positions positions = line.positions();
  positions[end - 1] = positions[end] - 1;
  EXPECT_EQ(decode(positions), absl::OkStatus());
  positions[end - 1] = positions[end];
  EXPECT_EQ(decode(positions), PositionPastTheEnd("shared"));
  positions[end - 2] = positions[end] + 40;
  positions[end - 1] = positions[end] + 50;
  EXPECT_EQ(decode(positions), PositionPastTheEnd("shared"));
}

TEST(SharedCoder, RefusesALaneThatEndsPastTheTensor) {
  Line line({700, 800, 0.012, 1.0});
  for (int message = 0; message < 3; ++message) line.Advance();
  const int64_t count = static_cast<int64_t>(line.positions().size());
  ASSERT_GE(count, 2048);
  const std::string bytes = EncodePositions(line.coder(), line.positions(), line.size());
  BitReader stream(bytes);
  uint32_t selector = 0, length = 0;
  ASSERT_TRUE(stream.Get(1, &selector) && stream.Get(4, &length));
  const uint64_t end_at = stream.position() + 16 + length;
  for (const uint32_t end : {560000u, (1u << 20) - 1}) {
    std::string corrupt = bytes;
    for (int bit = 0; bit < 20; ++bit) {
      const uint64_t at = end_at + bit;
      const char mask = static_cast<char>(1 << at % 8);
      corrupt[at / 8] = static_cast<char>((end >> bit & 1) != 0 ? corrupt[at / 8] | mask : corrupt[at / 8] & ~mask);
    }
    const ExactBytes exact(corrupt);
    EXPECT_EQ(DecodePositions(line.coder(), count, line.size(), exact.After(0)).status(), PositionPastTheEnd("shared"))
        << end;
  }
}

// At every place of the header, and here and there in the words.
TEST(SharedCoder, RefusesTruncatedAndCorruptLanesOrDecodesWhatItWouldWrite) {
  Line line({700, 800, 0.012, 1.0});
  for (int message = 0; message < 3; ++message) line.Advance();
  ASSERT_GE(line.positions().size(), 2048u);
  const std::string bytes = EncodePositions(line.coder(), line.positions(), line.size(), kLead);
  const size_t needed = (kLead + line.coder().Bits(line.positions(), line.size()) + 7) / 8;
  constexpr size_t kHeader = 16;
  std::map<std::string, int> refused;
  for (size_t i = 1; i < needed; i += i < kHeader ? 1 : 97) {
    const ExactBytes cut(absl::string_view(bytes).substr(0, i));
    const auto decoded = DecodePositions(line.coder(), line.positions().size(), line.size(), cut.After(kLead));
    ASSERT_EQ(decoded.status().code(), absl::StatusCode::kInvalidArgument) << i << " of " << needed;
    for (int change : {0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0x81, 0x7e, 0xff}) {
      std::string corrupt = bytes;
      corrupt[i] = static_cast<char>(corrupt[i] ^ change);
      ASSERT_NO_FATAL_FAILURE(ExpectRefusedOrCanonical(line, corrupt, &refused)) << i;
    }
  }
  int ends = 0;
  for (const auto& [reason, times] : refused) ends += reason.find("end") == std::string::npos ? 0 : times;
  EXPECT_GT(ends, 20);
}

TEST(SharedCoder, RefusesCorruptBytesOrDecodesWhatItWouldWrite) {
  std::map<std::string, int> refused;
  for (const Shape& shape : {Shape{30, 40, 0.1, 1.0}, Shape{1, 4000, 0.02, 0.5}}) {
    Line line(shape);
    for (int message = 0; message < 4; ++message) line.Advance();
    const std::string bytes = EncodePositions(line.coder(), line.positions(), line.size(), kLead);
    for (size_t i = 0; i < bytes.size(); ++i) {
      for (int change : {0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0x81, 0x7e, 0xff}) {
        std::string corrupt = bytes;
        corrupt[i] = static_cast<char>(corrupt[i] ^ change);
        ASSERT_NO_FATAL_FAILURE(ExpectRefusedOrCanonical(line, corrupt, &refused)) << i;
      }
    }
    Random random(3);
    for (int i = 0; i < 20000; ++i) {
      std::string noise(random.Below(bytes.size() + 4) + 1, '\0');
      for (char& byte : noise) byte = static_cast<char>(random.Next());
      ASSERT_NO_FATAL_FAILURE(ExpectRefusedOrCanonical(line, noise, &refused)) << i;
    }
  }
  int slots = 0;
  for (const auto& [reason, times] : refused) slots += reason.find("slot") == std::string::npos ? 0 : times;
  EXPECT_GT(slots, 100);
}

// tests/golden/shared_positions.py, an encoder in Python that was written from FORMAT.md.
TEST(SharedCoder, WritesTheBytesOfTheGoldenFile) {
  std::ifstream file(InSource("tests/golden/shared_positions.txt"));
  std::unique_ptr<PositionHistory> history;
  int messages = 0, coded = 0, states = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    std::string first;
    fields >> first;
    if (first == "tensor") {
      int64_t rows = 0, columns = 0;
      fields >> rows >> columns;
      history = std::make_unique<PositionHistory>(rows, columns);
      continue;
    }
    if (first == "state") {
      std::string expected, state;
      fields >> expected;
      history->AppendState(&state);
      ASSERT_TRUE(absl::BytesToHexString(state) == expected) << "behind message " << messages;
      ++states;
      continue;
    }
    const int side = std::stoi(first);
    Positions positions;
    for (uint32_t position = 0; fields >> position;) positions.push_back(position);
    int64_t bits = 0;
    std::string hex;
    ASSERT_TRUE(file >> bits >> hex >> std::ws);
    const SharedCoder coder(history.get(), side);
    ASSERT_EQ(coder.Bits(positions, history->size()), bits) << "message " << messages;
    const std::string bytes = EncodePositions(coder, positions, history->size());
    ASSERT_EQ(absl::BytesToHexString(bytes).substr(0, hex.size()), hex) << "message " << messages;
    coded += bits < RiceCoder().Bits(positions, history->size());
    ++messages;
    history->Add(positions, side);
  }
  EXPECT_EQ(messages, 255);
  EXPECT_EQ(states, 5);
  EXPECT_GT(coded, 200);
}

// Rows and columns that differ, and elements of which a quarter is sent each time.
TEST(SharedCoder, LearnsRatesThatRiceCannotUse) {
  Line line({500, 800, 0.01, 0.5});
  for (int message = 0; message < 10; ++message) line.Advance();
  const double rice = static_cast<double>(RiceCoder().Bits(line.positions(), line.size()));
  EXPECT_LT(static_cast<double>(line.coder().Bits(line.positions(), line.size())), 0.75 * rice);
}

TEST(SharedCoder, OnRandomPositionsIsAsLongAsRice) {
  Random random(5);
  PositionHistory history(500, 800);
  for (int message = 0; message < 10; ++message) history.Add(RandomPositions(4000, 400000, &random), message % 2);
  const Positions positions = RandomPositions(4000, 400000, &random);
  const double rice = static_cast<double>(RiceCoder().Bits(positions, 400000));
  EXPECT_NEAR(static_cast<double>(SharedCoder(&history, 0).Bits(positions, 400000)), rice, 0.005 * rice);
}

}  // namespace
}  // namespace terse
