// Tests the cost of a whole run's positions against sums that are made here from positions, gaps and histories.
#include "bench/position_meter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <set>

#include "compression/codec_table.h"
#include "compression/elias.h"
#include "compression/gap_class.h"
#include "compression/golomb.h"
#include "compression/rice.h"
#include "compression/shared_coder.h"
#include "core/random.h"
#include "tests/compression/updates.h"

namespace terse {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kClients = 2;
constexpr int64_t kRounds = 24;  // of which two are the first tenth

std::unique_ptr<const Codec> NewCodec(const std::string& positions = "rice") {
  const Layout layout =
      *Layout::Create({{"conv", {40, 6, 10}}, {"bias", {40}}, {"fc", {100, 80}}, {"mean", {9}, TensorKind::kBuffer}});
  return *MakeCodec(SparseSpec("sbc", 0.02, "fp32", positions), layout);
}

// Elements that others do not send are large in one client's updates, most of them on one side at a time.
std::vector<float> NextUpdate(int64_t size, int64_t round, int64_t client, Random* random) {
  std::vector<float> update(size);
  const float tilt = round % 3 == 0 ? 0.7F : 0.3F;
  for (int64_t i = 0; i < size; ++i) {
    update[i] = static_cast<float>(random->Uniform()) - tilt;
    if (i % 11 == client) update[i] *= 3;
  }
  return update;
}

// Golomb's code with a power of two (SBC, Algorithm 3): a bit that ends the quotient, the quotient, b bits.
int64_t RiceBits(const std::vector<uint32_t>& positions, int64_t size) {
  const int b = RiceParameter(static_cast<int64_t>(positions.size()), size);
  int64_t bits = 0;
  int64_t before = -1;
  for (const int64_t position : positions) {
    bits += 1 + ((position - before - 1) >> b) + b;
    before = position;
  }
  return bits;
}

// A bit for Rice, three for one of the others (FORMAT.md, "auto").
int64_t AutoBits(const std::vector<uint32_t>& positions, int64_t size) {
  int64_t others = std::numeric_limits<int64_t>::max();
  for (const PositionCoder* coder : {&GolombCoder(), &GapClassCoder(), &EliasGammaCoder(), &EliasDeltaCoder()}) {
    others = std::min(others, coder->Bits(positions, size));
  }
  return std::min(1 + RiceBits(positions, size), 3 + others);
}

double ChoiceBits(int64_t count, int64_t size) {
  double bits = 0;
  for (int64_t i = 0; i < count; ++i) bits += std::log2(static_cast<double>(size - i) / static_cast<double>(count - i));
  return bits;
}

struct Sums {
  double positions = 0, rice = 0, automatic = 0, bound = 0, shared = 0, messages = 0, plain_bytes = 0, sent_bytes = 0;
};

// Measures the same run the long way: a tensor's positions are found in the flat ones, its side in the update.
class Expected {
 public:
  explicit Expected(const Codec* codec) : codec_(codec) {
    for (int64_t i = 0; i < kClients; ++i) {
      packing_.emplace_back(*codec->PackedLayout());
      for (const TensorSpec& spec : codec->PackedLayout()->tensors()) {
        histories_[i].emplace_back(spec.shape[0], spec.size / spec.shape[0]);
      }
    }
  }

  void Add(int64_t round, int64_t client, const std::string& message) {
    const std::vector<int64_t> flat = **codec_->SentPositions(message);
    std::vector<float> decoded(codec_->layout().size());
    ASSERT_TRUE(codec_->AddDecoded(message, 1, absl::MakeSpan(decoded)).ok());
    const std::string part = round <= 2 ? "first tenth" : "rest";
    for (size_t t = 0; t < histories_[client].size(); ++t) {
      const TensorSpec& spec = codec_->PackedLayout()->tensors()[t];
      std::vector<uint32_t> local;
      for (const int64_t p : flat) {
        if (p >= spec.offset && p < spec.offset + spec.size) local.push_back(static_cast<uint32_t>(p - spec.offset));
      }
      ASSERT_FALSE(local.empty());
      const int side = decoded[spec.offset + local[0]] < 0 ? 1 : 0;
      sides.insert(side);
      PositionHistory& history = histories_[client][t];
      const auto shared = static_cast<double>(SharedCoder(&history, side).Bits(local, spec.size));
      for (const std::string& row : {part, std::string("all"), absl::StrCat(spec.name, " (", spec.size, ")")}) {
        Sums& sums = rows[row];
        sums.positions += static_cast<double>(local.size());
        sums.rice += static_cast<double>(RiceBits(local, spec.size));
        sums.automatic += static_cast<double>(AutoBits(local, spec.size));
        sums.bound += ChoiceBits(static_cast<int64_t>(local.size()), spec.size);
        sums.shared += shared;
      }
      history.Add(local, side);
    }
    const std::string packed = *codec_->Pack(message, packing_[client]);
    longer += packed.size() > message.size() ? 1 : 0;
    for (const std::string& row : {part, std::string("all")}) {
      rows[row].messages += 1;
      rows[row].plain_bytes += static_cast<double>(message.size());
      rows[row].sent_bytes += static_cast<double>(std::min(packed.size(), message.size()));
    }
    ASSERT_TRUE(codec_->AddToHistory(message, &packing_[client]).ok());
  }

  std::map<std::string, Sums> rows;
  std::set<int> sides;  // that came
  int longer = 0;       // packed messages that Rice beats

 private:
  const Codec* const codec_;
  std::vector<UpdateHistory> packing_;
  std::vector<PositionHistory> histories_[kClients];
};

std::map<std::string, std::map<std::string, double>> Rows(const PositionMeter& meter) {
  std::vector<Metric> metrics;
  meter.Report(&metrics);
  std::map<std::string, std::map<std::string, double>> rows;
  for (const Metric& metric : metrics) {
    EXPECT_TRUE(rows[metric.setting].emplace(metric.name, metric.value).second) << metric.setting << " " << metric.name;
  }
  return rows;
}

class PositionMeterTest : public ::testing::Test {
 protected:
  std::string Message(const Codec& codec, int64_t round, int64_t client) {
    return *codec.Encode(NextUpdate(codec.layout().size(), round, client, &random_));
  }

  Random random_{1};
};

TEST_F(PositionMeterTest, CountsEveryBitWithTheHistoryOfTheClientAlone) {
  const auto codec = NewCodec();
  PositionMeter meter(codec.get(), kClients, kRounds);
  Expected expected(codec.get());
  for (int64_t round = 1; round <= kRounds; ++round) {
    for (int64_t client = 0; client < kClients; ++client) {
      const std::string message = Message(*codec, round, client);
      expected.Add(round, client, message);
      const absl::Status status = meter.Add(round, client, message);
      ASSERT_TRUE(status.ok()) << status;
    }
  }
  auto rows = Rows(meter);
  ASSERT_EQ(rows.size(), expected.rows.size());
  for (const auto& [name, sums] : expected.rows) {
    auto& row = rows[name];
    EXPECT_EQ(row["positions"], sums.positions) << name;
    EXPECT_NEAR(row["rice"], sums.rice / sums.positions, 1e-9) << name;
    EXPECT_NEAR(row["auto"], sums.automatic / sums.positions, 1e-9) << name;
    EXPECT_NEAR(row["log2 C(n,k) / k"], sums.bound / sums.positions, 1e-6) << name;
    EXPECT_NEAR(row["shared"], sums.shared / sums.positions, 1e-9) << name;
    EXPECT_NEAR(row["shared under rice, %"], 100 - 100 * sums.shared / sums.rice, 1e-9) << name;
    if (sums.messages == 0) continue;
    EXPECT_NEAR(row["message with rice, bytes"], sums.plain_bytes / sums.messages, 1e-9) << name;
    EXPECT_NEAR(row["packed, bytes"], sums.sent_bytes / sums.messages, 1e-9) << name;
  }
  // Otherwise the run above would not tell histories, sides and the choice of the shorter message apart.
  EXPECT_GT(rows["rest"]["shared under rice, %"], 5);
  EXPECT_EQ(expected.sides.size(), 2u);
}

TEST_F(PositionMeterTest, SendsTheMessageItselfWhereThatIsShorter) {
  const auto codec = NewCodec();
  PositionMeter meter(codec.get(), 1, kRounds);
  Expected expected(codec.get());
  for (int64_t round = 1; round <= kRounds; ++round) {
    std::vector<float> update(codec->layout().size());
    for (float& value : update) value = static_cast<float>(random_.Uniform());  // no element is likelier than others
    const std::string message = *codec->Encode(update);
    expected.Add(round, 0, message);
    ASSERT_TRUE(meter.Add(round, 0, message).ok());
  }
  EXPECT_GT(expected.longer, 0) << "no packed message was longer: this shows nothing";
  const Sums& all = expected.rows["all"];
  EXPECT_NEAR(Rows(meter)["all"]["packed, bytes"], all.sent_bytes / all.messages, 1e-9);
}

TEST_F(PositionMeterTest, ARunOfAFewRoundsHasAFirstTenthToo) {
  const auto codec = NewCodec();
  PositionMeter meter(codec.get(), 1, 3);
  for (int64_t round = 1; round <= 3; ++round) ASSERT_TRUE(meter.Add(round, 0, Message(*codec, round, 0)).ok());
  auto rows = Rows(meter);
  EXPECT_EQ(rows["first tenth"]["positions"] * 3, rows["all"]["positions"]);
  EXPECT_EQ(rows["first tenth"]["shared"], rows["first tenth"]["rice"]) << "there was no history yet";
}

TEST_F(PositionMeterTest, RefusesFiguresThatAreNotThoseOfTheMessage) {
  const auto codec = NewCodec("fixed16");
  PositionMeter meter(codec.get(), 1, 3);
  const absl::Status status = meter.Add(1, 0, Message(*codec, 1, 0));
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("round 1, client 0: positions take"));
}

TEST_F(PositionMeterTest, RefusesAMessageOfAnotherCodecAndCountsNothing) {
  const auto codec = NewCodec();
  PositionMeter meter(codec.get(), 1, 3);
  EXPECT_EQ(meter.Add(1, 0, "").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(Rows(meter).empty());
}

}  // namespace
}  // namespace terse
