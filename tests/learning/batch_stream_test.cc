#include "learning/batch_stream.h"

#include <algorithm>
#include <numeric>

#include "gtest/gtest.h"

namespace terse {
namespace {

std::vector<uint32_t> Take(BatchStream* stream, int batches) {
  std::vector<uint32_t> taken;
  for (int i = 0; i < batches; ++i) {
    const absl::Span<const uint32_t> batch = stream->Next();
    taken.insert(taken.end(), batch.begin(), batch.end());
  }
  return taken;
}

std::vector<uint32_t> Some(int count) {
  std::vector<uint32_t> examples(count);
  for (int i = 0; i < count; ++i) examples[i] = 100 + 3 * i;
  return examples;
}

TEST(BatchStreamTest, EveryEpochShowsEachExampleOnceInAFreshOrder) {
  // 4 batches of 7 are 28 examples: 2 epochs of 14, with batches across the border.
  BatchStream stream(Some(14), 7, 1, 0);
  const std::vector<uint32_t> taken = Take(&stream, 4);
  std::vector<uint32_t> first(taken.begin(), taken.begin() + 14), second(taken.begin() + 14, taken.end());
  EXPECT_NE(first, second);
  std::sort(first.begin(), first.end());
  std::sort(second.begin(), second.end());
  EXPECT_EQ(first, Some(14));
  EXPECT_EQ(second, Some(14));
}

TEST(BatchStreamTest, BatchesRunAcrossEpochsAtFullSize) {
  BatchStream stream(Some(5), 4, 1, 0);
  std::vector<uint32_t> taken = Take(&stream, 5);  // 20 examples, 4 epochs
  for (int epoch = 0; epoch < 4; ++epoch) {
    std::sort(taken.begin() + 5 * epoch, taken.begin() + 5 * epoch + 5);
    EXPECT_TRUE(std::equal(taken.begin() + 5 * epoch, taken.begin() + 5 * epoch + 5, Some(5).begin()));
  }
  EXPECT_EQ(stream.position().epoch, 4);
  EXPECT_EQ(stream.position().offset, 0);
}

TEST(BatchStreamTest, ABatchMayBeLargerThanTheShard) {
  BatchStream stream(Some(3), 10, 1, 0);
  EXPECT_EQ(stream.Next().size(), 10u);
  EXPECT_EQ(stream.position().epoch, 3);
  EXPECT_EQ(stream.position().offset, 1);
}

TEST(BatchStreamTest, SeeksToAnyPosition) {
  BatchStream stream(Some(10), 4, 9, 2);
  Take(&stream, 4);
  const BatchStream::Position position = stream.position();
  const std::vector<uint32_t> rest = Take(&stream, 6);
  BatchStream other(Some(10), 4, 9, 2);
  ASSERT_TRUE(other.Seek(position));
  EXPECT_EQ(Take(&other, 6), rest);
}

TEST(BatchStreamTest, RefusesPositionsOutsideAnEpoch) {
  BatchStream stream(Some(10), 4, 9, 2);
  EXPECT_FALSE(stream.Seek({0, 10}));
  EXPECT_FALSE(stream.Seek({0, -1}));
  EXPECT_FALSE(stream.Seek({-1, 0}));
  EXPECT_EQ(stream.position().epoch, 0);
  EXPECT_EQ(stream.position().offset, 0);
}

TEST(BatchStreamTest, SeedAndShardChangeTheOrder) {
  BatchStream a(Some(50), 50, 1, 0), b(Some(50), 50, 2, 0), c(Some(50), 50, 1, 1);
  const std::vector<uint32_t> first = Take(&a, 1);
  EXPECT_NE(first, Take(&b, 1));
  EXPECT_NE(first, Take(&c, 1));
}

}  // namespace
}  // namespace terse
