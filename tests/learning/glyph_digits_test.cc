#include "learning/datasets/glyph_digits.h"

#include <algorithm>
#include <numeric>

#include "core/id128.h"
#include "gtest/gtest.h"
#include "learning/datasets/dataset_table.h"
#include "learning/datasets/glyph_strokes.h"
#include "tests/learning/contents.h"

namespace terse {
namespace {

TEST(GlyphDigitsTest, HasMnistsShapeAndAllClasses) {
  const Dataset dataset = GlyphDigits({1000, 500, 28});
  EXPECT_EQ(dataset.classes, 10);
  EXPECT_EQ(dataset.train.count(), 1000);
  EXPECT_EQ(dataset.test.count(), 500);
  EXPECT_EQ(dataset.train.features.shape(), (std::vector<int64_t>{1, 28, 28}));
  const std::string labels = Contents(dataset.train.targets);
  for (int digit = 0; digit < 10; ++digit) {
    const auto count = std::count(labels.begin(), labels.end(), digit);
    EXPECT_GT(count, 60) << digit;
    EXPECT_LT(count, 140) << digit;
  }
}

TEST(GlyphDigitsTest, ImagesHoldInkOnPaper) {
  const Dataset dataset = GlyphDigits({200, 1, 28});
  for (int64_t i = 0; i < 200; ++i) {
    const auto* begin = reinterpret_cast<const uint8_t*>(dataset.train.features.data()) + i * 784;
    EXPECT_GT(*std::max_element(begin, begin + 784), 110) << i;
    const double mean = std::accumulate(begin, begin + 784, 0.0) / 784;
    EXPECT_GT(mean, 5) << i;
    EXPECT_LT(mean, 130) << i;
  }
}

TEST(GlyphDigitsTest, IsTheSameOnEveryMachine) {
  const Dataset dataset = GlyphDigits({300, 100, 28});
  EXPECT_EQ(HashBytes(Contents(dataset.train.features)).ToHex(), "fa88774cea6c603d7eede8de462cf829");
  EXPECT_EQ(HashBytes(Contents(dataset.test.targets)).ToHex(), "9aff2b7ddb9335e6d6cc6ce0c55c9651");
  // The first test image is the one after the last train image.
  const Dataset longer = GlyphDigits({301, 1, 28});
  EXPECT_EQ(Contents(longer.train.features.Slice(300, 1)), Contents(dataset.test.features.Slice(0, 1)));
}

TEST(GlyphDigitsTest, StrokesAreChainsOfCurves) {
  for (int digit = 0; digit < 10; ++digit) {
    EXPECT_GE(GlyphsOf(digit).size(), 2u) << digit;
    for (const Glyph& glyph : GlyphsOf(digit)) {
      for (const GlyphStroke& stroke : glyph) EXPECT_TRUE(stroke.size() >= 3 && stroke.size() % 2 == 1) << digit;
    }
  }
}

TEST(DatasetTableTest, MnistWithoutAFolderIsRendered) {
  const Dataset dataset = LoadDataset({"mnist"}, "").value();
  EXPECT_EQ(dataset.train.count(), 12000);
  EXPECT_EQ(dataset.test.count(), 2000);
}

TEST(DatasetTableTest, UnknownNameAndMissingFilesAreNotFound) {
  EXPECT_EQ(LoadDataset({"imagenet"}, "").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(LoadDataset({"mnist"}, "/nowhere").status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace terse
