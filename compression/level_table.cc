#include "compression/level_table.h"

#include <algorithm>
#include <bitset>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "compression/exact_math.h"
#include "compression/tensor_codec.h"

namespace terse {
namespace {

using LevelSet = std::bitset<1 << kMostLevelTableBits>;

constexpr double kRangeInDeviations = 6;

// Returns the width of a level: the range of six standard deviations, divided by the number of levels. 0 where all
// values are equal, and where there is only one.
double LevelWidth(absl::Span<const float> values, double mean, int levels) {
  if (values.size() < 2) return 0;
  const double squares = LaneSum(values, [mean](float value) {
    const double difference = static_cast<double>(value) - mean;
    return difference * difference;
  });
  return kRangeInDeviations * std::sqrt(squares / static_cast<double>(values.size() - 1)) / levels;
}

// Rounds to nearest, and to +0 also from below: a table has no -0.
float NearestSignedFloat(double value) { return value < 0 ? 0.0f - NearestFloat(-value) : NearestFloat(value); }

LevelSet Occurring(absl::Span<const uint32_t> levels) {
  LevelSet occurring;
  for (const uint32_t level : levels) occurring.set(level);
  return occurring;
}

}  // namespace

void QuantizeToTable(absl::Span<const float> values, int bits, absl::Span<uint32_t> levels, LevelTable* table) {
  const int most = (1 << bits) - 1;
  const double middle = 1 << (bits - 1);
  const double mean =
      LaneSum(values, [](float value) { return static_cast<double>(value); }) / static_cast<double>(values.size());
  const double width = LevelWidth(values, mean, most + 1);
  std::array<double, 1 << kMostLevelTableBits> sums = {};
  std::array<int64_t, 1 << kMostLevelTableBits> counts = {};
  for (size_t i = 0; i < values.size(); ++i) {
    const double place = width == 0 ? 0 : (static_cast<double>(values[i]) - mean) / width;
    const double level = std::clamp(std::floor(place + middle + 0.5), 0.0, static_cast<double>(most));
    levels[i] = static_cast<uint32_t>(level);
    sums[levels[i]] += static_cast<double>(values[i]);
    ++counts[levels[i]];
  }
  for (int level = 0; level <= most; ++level) {
    if (counts[level] == 0) continue;
    (*table)[level] = NearestSignedFloat(sums[level] / static_cast<double>(counts[level]));
  }
}

void PutLevels(absl::Span<const uint32_t> levels, int bits, const LevelTable& table, BitWriter* writer) {
  for (const uint32_t level : levels) writer->Put(level, bits);
  const LevelSet occurring = Occurring(levels);
  for (size_t level = 0; level < occurring.size(); ++level) {
    if (occurring[level]) writer->Put(FloatBits(table[level]), 32);
  }
}

int64_t LevelsBits(absl::Span<const uint32_t> levels, int bits) {
  return static_cast<int64_t>(levels.size()) * bits + 32 * static_cast<int64_t>(Occurring(levels).count());
}

int64_t MaxLevelsBits(int64_t count, int bits) {
  return count * bits + 32 * std::min<int64_t>(count, int64_t{1} << bits);
}

absl::Status GetLevelTable(int64_t count, int bits, BitReader* stream, LevelTable* table) {
  LevelSet occurring;
  for (int64_t i = 0; i < count; ++i) {
    uint32_t level = 0;
    if (!stream->Get(bits, &level)) return TruncatedIn("its values");
    occurring.set(level);
  }
  float before = -std::numeric_limits<float>::infinity();
  for (size_t level = 0; level < occurring.size(); ++level) {
    if (!occurring[level]) continue;
    uint32_t word = 0;
    if (!stream->Get(32, &word)) return TruncatedIn("its table of values");
    const float value = FloatFromBits(word);
    const bool finite = MagnitudeBits(word) < kInfinityBits;
    if (!finite || !(value > before) || word == FloatBits(-0.0f)) {
      return absl::InvalidArgumentError(
          absl::StrCat("level ", level, " has the value ", value, "; values must be finite, increase, and not be -0"));
    }
    (*table)[level] = before = value;
  }
  return absl::OkStatus();
}

}  // namespace terse
