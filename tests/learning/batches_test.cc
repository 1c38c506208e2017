#include "learning/batches.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "learning/augment.h"
#include "tests/learning/small_data.h"

namespace terse {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kChannels = 2, kRows = 6, kColumns = 5, kPixels = kChannels * kRows * kColumns;

// `count` images of random bytes from 1 to 255, labelled by their numbers.
std::shared_ptr<const Dataset> NumberedImages(int64_t count) {
  auto dataset = std::make_shared<Dataset>();
  dataset->classes = count;
  std::vector<uint8_t> pixels(count * kPixels);
  std::vector<int64_t> labels(count);
  Random random(1);
  for (uint8_t& pixel : pixels) pixel = static_cast<uint8_t>(1 + random.Below(255));
  std::iota(labels.begin(), labels.end(), 0);
  dataset->train = {Column::FromBytes({kChannels, kRows, kColumns}, pixels), Column::FromInt64s({}, labels)};
  return dataset;
}

std::unique_ptr<BatchSource> BatchesOf(const std::shared_ptr<const Dataset>& dataset, const DataSpec& spec,
                                       int64_t batch_size, uint64_t seed = 1, int64_t shard = 0) {
  std::vector<uint32_t> indices(dataset->train_count());
  std::iota(indices.begin(), indices.end(), 0u);
  return MakeExampleBatches(dataset, indices, spec, batch_size, seed, shard, c10::kCPU).value();
}

TEST(ExampleBatchesTest, AnEpochShowsEveryExampleWithItsLabel) {
  const auto dataset = NumberedImages(12);
  const auto batches = BatchesOf(dataset, {}, 4);
  EXPECT_EQ(batches->samples(), 12);
  EXPECT_EQ(batches->rows(), 4);
  std::vector<int> seen(12, 0);
  for (int i = 0; i < 3; ++i) {
    const Batch batch = batches->Next();
    ASSERT_EQ(batch.x.sizes(), at::IntArrayRef({4, kChannels, kRows, kColumns}));
    for (int64_t row = 0; row < 4; ++row) {
      const int64_t label = batch.target[row].item<int64_t>();
      ++seen[label];
      const auto* pixels = reinterpret_cast<const uint8_t*>(dataset->train.features.data()) + label * kPixels;
      const at::Tensor image = batch.x[row].contiguous();
      for (int64_t i = 0; i < kPixels; ++i) ASSERT_FLOAT_EQ(image.data_ptr<float>()[i], pixels[i] / 255.0f);
    }
  }
  EXPECT_EQ(seen, std::vector<int>(12, 1));
}

TEST(ExampleBatchesTest, StandardizedImagesHaveMeanZeroAndDeviationOne) {
  DataSpec spec;
  spec.normalize = "standardize";
  const at::Tensor x = BatchesOf(NumberedImages(3), spec, 3)->Next().x;
  EXPECT_LT(x.mean({1, 2, 3}).abs().max().item<float>(), 1e-5);
  EXPECT_LT((x.flatten(1).std(1, /*unbiased=*/false) - 1).abs().max().item<float>(), 1e-5);
}

TEST(ExampleBatchesTest, AnEvenImageIsDividedByTheLeastDeviation) {
  auto dataset = std::make_shared<Dataset>(*NumberedImages(1));
  std::vector<uint8_t> pixels(kPixels, 7);
  pixels[0] = 8;
  dataset->train.features = Column::FromBytes({kChannels, kRows, kColumns}, pixels);
  DataSpec spec;
  spec.normalize = "standardize";
  const at::Tensor x = BatchesOf(dataset, spec, 1)->Next().x.flatten();
  const double difference = 1 / 255.0 * std::sqrt(kPixels);
  EXPECT_NEAR((x[0] - x[1]).item<float>(), difference, 1e-5);
}

TEST(ExampleBatchesTest, AugmentationFollowsSeedShardAndPositionAlone) {
  const auto dataset = NumberedImages(10);
  DataSpec spec;
  spec.augment = "pad_crop_flip";
  const auto one = BatchesOf(dataset, spec, 4), same = BatchesOf(dataset, spec, 4);
  std::vector<at::Tensor> seen;
  for (int i = 0; i < 6; ++i) seen.push_back(one->Next().x);
  ASSERT_TRUE(same->Seek({0, 8}));  // after two batches, in the middle of the first epoch
  for (int i = 2; i < 6; ++i) EXPECT_TRUE(same->Next().x.equal(seen[i])) << i;
  EXPECT_FALSE(same->Seek({0, 10}));
  EXPECT_FALSE(BatchesOf(dataset, spec, 4, 2)->Next().x.equal(seen[0]));
  EXPECT_FALSE(BatchesOf(dataset, spec, 4, 1, 1)->Next().x.equal(seen[0]));
  EXPECT_FALSE(BatchesOf(dataset, {}, 4)->Next().x.equal(seen[0]));
}

// docs/DATA.md, "numpy": whole numbers come to a model as float32, and are not scaled as bytes are.
TEST(ExampleBatchesTest, WholeNumbersReachTheModelAsFloats) {
  const int32_t small[] = {-3, 255};
  const Column int32s = Column::Shared(Element::kInt32, {1}, 2, small, nullptr);
  const Column int64s = Column::FromInt64s({1}, {-3, int64_t{1} << 24});
  for (const std::string normalize : {"unit", "standardize"}) {
    const at::Tensor x = FeaturesOf(int32s, {0, 1}, normalize, c10::kCPU);
    EXPECT_EQ(x.scalar_type(), at::kFloat);
    EXPECT_EQ(x[0].item<float>(), -3);
    EXPECT_EQ(x[1].item<float>(), 255);
    EXPECT_EQ(FeaturesOf(int64s, {0, 1}, normalize, c10::kCPU)[1].item<float>(), 16777216);
  }
  EXPECT_EQ(TargetsOf(int32s, {0, 1}, c10::kCPU).scalar_type(), at::kLong);
}

TEST(ExampleBatchesTest, RefusesWhatMakesNoBatch) {
  const auto dataset = NumberedImages(2);
  const auto refusal = [](const std::shared_ptr<const Dataset>& data, std::vector<uint32_t> indices, int64_t size,
                          const DataSpec& spec) {
    const absl::Status status = MakeExampleBatches(data, std::move(indices), spec, size, 1, 0, c10::kCPU).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  DataSpec augmented;
  augmented.augment = "pad_crop_flip";
  EXPECT_THAT(refusal(dataset, {}, 1, {}), HasSubstr("0 examples"));
  EXPECT_THAT(refusal(dataset, {0}, 0, {}), HasSubstr("batch_size"));
  EXPECT_THAT(refusal(ClusterData(), {0}, 1, augmented), HasSubstr("data.augment"));
}

// Returns how `moved` shows `image`, moved by at most 4 pixels, mirrored or not, with zeros from outside; "" when it
// does not.
std::string HowMoved(const uint8_t* image, const uint8_t* moved) {
  for (int flip = 0; flip < 2; ++flip)
    for (int64_t down = -4; down <= 4; ++down)
      for (int64_t right = -4; right <= 4; ++right) {
        bool same = true;
        for (int64_t i = 0; i < kPixels && same; ++i) {
          const int64_t row = i / kColumns % kRows, column = i % kColumns, channel = i / (kRows * kColumns);
          const int64_t from_row = row + down, from = (flip ? kColumns - 1 - column : column) + right;
          const bool inside = from_row >= 0 && from_row < kRows && from >= 0 && from < kColumns;
          same = moved[i] == (inside ? image[(channel * kRows + from_row) * kColumns + from] : 0);
        }
        if (same) return std::to_string(flip) + "," + std::to_string(down) + "," + std::to_string(right);
      }
  return "";
}

TEST(PadCropFlipTest, MovesAllChannelsTogetherToEveryPlaceAndMirrorsHalf) {
  constexpr int64_t kCount = 4000;
  const auto dataset = NumberedImages(1);
  const auto* image = reinterpret_cast<const uint8_t*>(dataset->train.features.data());
  std::vector<uint8_t> images;
  for (int64_t i = 0; i < kCount; ++i) images.insert(images.end(), image, image + kPixels);
  PadCropFlip(Random(3), kCount, kChannels, kRows, kColumns, images.data());
  std::map<std::string, int> seen;
  int mirrored = 0;
  for (int64_t i = 0; i < kCount; ++i) {
    const std::string how = HowMoved(image, images.data() + i * kPixels);
    ASSERT_NE(how, "") << i;
    ++seen[how];
    mirrored += how[0] == '1';
  }
  EXPECT_EQ(seen.size(), 2u * 9 * 9);
  EXPECT_NEAR(mirrored, kCount / 2, 150);
  for (const auto& [how, times] : seen) EXPECT_LT(times, 3 * kCount / 162) << how;
}

std::shared_ptr<const Text> Counting(int64_t count) {
  auto text = std::make_shared<Text>();
  text->symbols.resize(count);
  std::iota(text->symbols.begin(), text->symbols.end(), 0);
  return text;
}

TEST(TextBatchesTest, RowsAreReadSideBySideAndTargetsAreTheNextSymbols) {
  // 46 symbols from 10 on: 2 rows of 23, and 7 windows of 3 of each.
  const auto batches = MakeTextBatches(Counting(100), {10, 56}, 2, 3, c10::kCPU).value();
  EXPECT_EQ(batches->samples(), 46);
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (int64_t window = 0; window < 7; ++window) {
      EXPECT_EQ(batches->position().epoch, epoch);
      EXPECT_EQ(batches->position().offset, window);
      const Batch batch = batches->Next();
      EXPECT_EQ(batch.fresh, window == 0);
      const int64_t first = 10 + 3 * window, second = 33 + 3 * window;
      EXPECT_TRUE(
          batch.x.equal(at::tensor({first, first + 1, first + 2, second, second + 1, second + 2}).view({2, 3})));
      EXPECT_TRUE(batch.target.equal(batch.x + 1));
    }
  }
}

TEST(TextBatchesTest, SeeksToWindows) {
  const auto batches = MakeTextBatches(Counting(100), {0, 100}, 3, 4, c10::kCPU).value();
  ASSERT_TRUE(batches->Seek({5, 2}));
  const Batch batch = batches->Next();
  EXPECT_EQ(batch.x[0][0].item<int64_t>(), 8);
  EXPECT_FALSE(batch.fresh);
  EXPECT_FALSE(batches->Seek({0, 8}));  // 33 symbols a row: 8 windows
  EXPECT_FALSE(batches->Seek({0, -1}));
  EXPECT_FALSE(batches->Seek({-1, 0}));
  EXPECT_EQ(batches->position().offset, 3);
}

TEST(TextBatchesTest, TheShortestTextIsOneWindow) {
  EXPECT_TRUE(MakeTextBatches(Counting(8), {0, 8}, 2, 3, c10::kCPU).ok());
  const absl::Status status = MakeTextBatches(Counting(8), {0, 7}, 2, 3, c10::kCPU).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("train.unroll"));
  EXPECT_FALSE(MakeTextBatches(Counting(8), {0, 8}, 0, 3, c10::kCPU).ok());
  EXPECT_FALSE(MakeTextBatches(Counting(8), {0, 8}, 2, 0, c10::kCPU).ok());
}

}  // namespace
}  // namespace terse
