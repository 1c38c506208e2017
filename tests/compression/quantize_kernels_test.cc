#include "compression/quantize_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "compression/bit_fields.h"
#include "compression/codec_table.h"
#include "compression/exact_math.h"
#include "compression/philox_kernels.h"
#include "compression/select_kernels.h"
#include "compression/simd.h"
#include "tests/compression/updates.h"

namespace terse {
namespace {

// Results of the kernels of the target in use, in words.
using Words = std::vector<uint64_t>;

void AddDoubles(const std::vector<double>& numbers, Words* words) {
  for (double number : numbers) {
    uint64_t bits;
    std::memcpy(&bits, &number, sizeof(bits));
    words->push_back(bits);
  }
}

// The results of every kernel for the finite numbers of `values`, as many draws, and symbols of all kinds.
class Kernels {
 public:
  Kernels(const std::vector<float>& values, const std::vector<uint32_t>& draws)
      : values_(values), draws_(draws), size_(static_cast<int64_t>(values.size())) {}

  Words Statistics() const {
    std::vector<double> partial(4 * kPartialSums), octets(size_ / 8 + 1);
    kernels_.add_magnitudes(values_.data(), size_, &partial[0]);
    kernels_.add_squares(values_.data(), size_, &partial[8]);
    Words words = {static_cast<uint64_t>(kernels_.add_by_sign(values_.data(), size_, &partial[16], &partial[24]))};
    kernels_.octet_magnitudes(values_.data(), size_ / 8, octets.data());
    AddDoubles(partial, &words);
    AddDoubles(octets, &words);
    return words;
  }

  Words Symbols() const {
    const float largest = LargestMagnitude(values_);
    Words words;
    const auto add = [&](auto make) {
      std::vector<uint32_t> symbols(size_);
      make(symbols.data());
      words.insert(words.end(), symbols.begin(), symbols.end());
    };
    add([&](uint32_t* to) { kernels_.signs(values_.data(), size_, to); });
    add([&](uint32_t* to) { kernels_.to_fp16(values_.data(), size_, to); });
    add([&](uint32_t* to) { kernels_.to_bf16(values_.data(), size_, to); });
    add([&](uint32_t* to) { kernels_.to_levels(values_.data(), draws_.data(), size_, largest, 15, to); });
    add([&](uint32_t* to) { kernels_.to_ternary(values_.data(), draws_.data(), size_, largest / 2, to); });
    add([&](uint32_t* to) {
      kernels_.to_low_precision(values_.data(), draws_.data(), size_, FloatAtLeast(largest / 127), 8, to);
    });
    add([&](uint32_t* to) { kernels_.mark_by_chance(values_.data(), draws_.data(), size_, largest, to); });
    add([&](uint32_t* to) { kernels_.mark_at_least(values_.data(), values_.data(), size_, largest / 3, to); });
    return words;
  }

  Words Values() const {
    Words words;
    const float table[] = {1.5f, -2.5f, 3.5f};
    const auto add = [&](uint32_t most, auto make) {
      std::vector<uint32_t> symbols(size_);
      for (int64_t i = 0; i < size_; ++i) symbols[i] = draws_[i] % most;
      std::vector<float> values(size_);
      words.push_back(make(symbols.data(), values.data()));
      for (float value : values) words.push_back(FloatBits(value));
    };
    using S = const uint32_t*;
    add(0xffffffffu, [&](S from, float* to) { return kernels_.from_floats(from, size_, to); });
    add(0x10000, [&](S from, float* to) { return kernels_.from_fp16(from, size_, to); });
    add(0x10000, [&](S from, float* to) { return kernels_.from_bf16(from, size_, to); });
    add(32, [&](S from, float* to) { return kernels_.from_levels(from, size_, 0.3, to); });
    add(16, [&](S from, float* to) { return kernels_.from_low_precision(from, size_, 0.7f, 4, to); });
    add(3, [&](S from, float* to) { return kernels_.from_table(from, size_, table, to), true; });
    add(1, [&](S, float* to) { return kernels_.add_scaled(values_.data(), size_, -0.3f, to), true; });
    add(1, [&](S, float* to) {
      std::copy(values_.begin(), values_.end(), to);
      return kernels_.scale(size_, -0.3f, to);
    });
    add(3, [&](S senders, float* to) {
      std::copy(values_.begin(), values_.end(), to);
      const std::vector<float> weights(senders, senders + size_);
      return kernels_.impute(size_, {0.75f, 7.0, 1.0f / 7}, weights.data(), to);
    });
    return words;
  }

  Words Others() const {
    Words words;
    uint32_t any = 1, all = ~uint32_t{2};
    kernels_.or_and(draws_.data(), size_, &any, &all);
    words.insert(words.end(), {any, all});
    std::vector<uint32_t> marks(size_), places(size_ + kSelectPad);
    for (int64_t i = 0; i < size_; ++i) marks[i] = draws_[i] % 3 == 0 ? draws_[i] : 0;
    const int64_t found = GetSelectKernels().nonzero(marks.data(), size_, 7, places.data());
    words.insert(words.end(), places.begin(), places.begin() + found);
    std::vector<double> reached(size_);
    double sum = 0;
    for (int64_t i = 0; i < size_; ++i) reached[i] = sum += std::abs(static_cast<double>(values_[i]));
    std::vector<int32_t> until(size_);
    kernels_.samples_until(reached.data(), size_, sum, 0.25, 1000, until.data());
    words.insert(words.end(), until.begin(), until.end());
    std::vector<uint32_t> blocks(4 * size_);
    GetPhiloxKernel()({0xfffffff0u, 2, 3, 4}, {5, 6}, size_, blocks.data());
    words.insert(words.end(), blocks.begin(), blocks.end());
    return words;
  }

 private:
  const QuantizeKernels& kernels_ = GetQuantizeKernels();
  const std::vector<float>& values_;
  const std::vector<uint32_t>& draws_;
  const int64_t size_;
};

class EveryTarget : public testing::Test {
 protected:
  void TearDown() override { ASSERT_TRUE(UseSimdTarget("").ok()); }

  // Calls check() with each target in use, the plain one last.
  template <typename Check>
  static void ForEach(Check check) {
    for (const std::string& target : SimdTargets()) {
      ASSERT_TRUE(UseSimdTarget(target).ok());
      check(target);
    }
  }
};

std::vector<uint32_t> Draws(int64_t count, Random* random) {
  std::vector<uint32_t> draws(count);
  for (uint32_t& draw : draws) draw = static_cast<uint32_t>(random->Below(uint64_t{1} << 32));
  return draws;
}

// Sizes that fill vectors, that do not, and that are smaller than one; numbers of very different size, zeros of both
// signs and the smallest and the largest floats.
TEST_F(EveryTarget, GivesTheSameBits) {
  Random random(36);
  for (int64_t size : {1, 3, 7, 8, 17, 64, 100, 480, 1021}) {
    std::vector<float> values = RandomUpdate(size, &random);
    for (int64_t i = 0; i < size; i += 5) values[i] = FloatFromBits(static_cast<uint32_t>(random.Below(0x7f000000u)));
    values[0] = -0.0f;
    values[size / 2] = -0x1p-149f;
    values[size / 3] = 0x1p-25f;
    const std::vector<uint32_t> draws = Draws(size, &random);
    ASSERT_TRUE(UseSimdTarget("scalar").ok());
    const Kernels plain(values, draws);
    const Words expected[] = {plain.Statistics(), plain.Symbols(), plain.Values(), plain.Others()};
    ForEach([&](const std::string& target) {
      const Kernels kernels(values, draws);
      EXPECT_EQ(kernels.Statistics(), expected[0]) << target << " " << size;
      EXPECT_EQ(kernels.Symbols(), expected[1]) << target << " " << size;
      EXPECT_EQ(kernels.Values(), expected[2]) << target << " " << size;
      EXPECT_EQ(kernels.Others(), expected[3]) << target << " " << size;
    });
  }
}

TEST_F(EveryTarget, ScalesAndFindsWhatIsNotFinite) {
  const float infinity = std::numeric_limits<float>::infinity();
  ForEach([&](const std::string& target) {
    for (int64_t size : {1, 7, 64, 100}) {
      std::vector<float> values(size, -3.0f);
      EXPECT_TRUE(GetQuantizeKernels().scale(size, 0.5f, values.data())) << target;
      EXPECT_EQ(values, std::vector<float>(size, -1.5f)) << target;
      for (float bad : {infinity, -infinity, std::numeric_limits<float>::quiet_NaN(), 0x1.8p127f}) {
        for (int64_t at = 0; at < size; ++at) {
          std::vector<float> numbers(size, 1.0f);
          numbers[at] = bad;
          const std::vector<float> senders(size, 3.0f);
          std::vector<float> sums = numbers;
          EXPECT_FALSE(GetQuantizeKernels().scale(size, 2.0f, numbers.data())) << target << " " << bad << " at " << at;
          EXPECT_FALSE(GetQuantizeKernels().impute(size, {1, 9, 1}, senders.data(), sums.data())) << target << at;
        }
      }
    }
  });
}

TEST_F(EveryTarget, PacksFieldsOfEveryWidthAndReadsThemBack) {
  Random random(37);
  ForEach([&](const std::string& target) {
    for (int width = 1; width <= 32; ++width) {
      for (int64_t size : {1, 8, 9, 100, 481}) {
        for (int skip : {0, 3, 8}) {
          std::vector<uint32_t> values = Draws(size, &random);
          std::string bytes;
          BitWriter writer(&bytes);
          writer.Put(0, skip);
          PutFields(values, width, &writer);
          writer.Finish();
          ASSERT_EQ(bytes.size(), (skip + size * width + 7) / 8) << target;
          // In a string of just this size, so that a sanitizer sees who reads on.
          const std::vector<char> exact(bytes.begin(), bytes.end());
          BitReader reader(absl::string_view(exact.data(), exact.size()));
          reader.Skip(skip);
          std::vector<uint32_t> read(size);
          GetFields(width, absl::MakeSpan(read), &reader);
          for (uint32_t& value : values) value &= static_cast<uint32_t>((uint64_t{1} << width) - 1);
          ASSERT_EQ(read, values) << target << ", width " << width << ", size " << size << ", skip " << skip;
          ASSERT_EQ(reader.position(), skip + size * width);
        }
      }
    }
  });
}

TEST_F(EveryTarget, EncodesTheSameMessages) {
  Random random(38);
  const std::vector<float> update = RandomUpdate(20'011, &random);
  EncodeOptions options;
  options.key = {1, 2, 3};
  for (const std::string& name : CodecNames()) {
    int codes = 0;
    for (const char* code : {"simple", "positions", "elias"}) {
      CodecSpec spec;
      spec.name = name;
      spec.code = code;
      const absl::StatusOr<std::unique_ptr<const Codec>> codec = MakeCodec(spec, MakeLayout({20'000, 11}));
      if (!codec.ok()) continue;  // a code of another codec
      ++codes;
      ASSERT_TRUE(UseSimdTarget("scalar").ok());
      const std::string expected = *(*codec)->Encode(update, options);
      const std::vector<float> decoded = Decode(**codec, expected);
      ForEach([&](const std::string& target) {
        EXPECT_EQ(*(*codec)->Encode(update, options), expected) << name << " " << code << " " << target;
        EXPECT_EQ(Decode(**codec, expected), decoded) << name << " " << code << " " << target;
      });
    }
    EXPECT_GT(codes, 0) << name;
  }
}

// A message takes the memory of the one that is of no more use, and nothing else of it.
TEST(EncodeScratch, AMessageTakesTheMemoryOfTheSpentOne) {
  Random random(39);
  const std::vector<float> update = RandomUpdate(5'000, &random);
  for (const std::string& name : CodecNames()) {
    CodecSpec spec;
    spec.name = name;
    const std::unique_ptr<const Codec> codec = *MakeCodec(spec, MakeLayout({5'000}));
    const std::unique_ptr<EncodeScratch> scratch = codec->NewScratch();
    EncodeOptions options;
    options.scratch = scratch.get();
    const std::string first = *codec->Encode(update, options);
    scratch->spent.assign(100'000, 'x');
    const char* const memory = scratch->spent.data();
    const std::string second = *codec->Encode(update, options);
    EXPECT_EQ(second, first) << name;
    EXPECT_EQ(second.data(), memory) << name;
  }
}

}  // namespace
}  // namespace terse
