#include "core/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace terse {
namespace {

using ::testing::HasSubstr;

TEST(Layout, FlattensTensorsInOrder) {
  const auto layout = Layout::Create({{"conv.weight", {20, 1, 5, 5}}, {"conv.bias", {20}}, {"scale", {}}});
  ASSERT_TRUE(layout.ok()) << layout.status();
  EXPECT_EQ(layout->size(), 521);
  ASSERT_EQ(layout->tensors().size(), 3);
  EXPECT_EQ(layout->tensors()[0].offset, 0);
  EXPECT_EQ(layout->tensors()[0].size, 500);
  EXPECT_EQ(layout->tensors()[1].offset, 500);
  EXPECT_EQ(layout->tensors()[1].size, 20);
  EXPECT_EQ(layout->tensors()[2].offset, 520);
  EXPECT_EQ(layout->tensors()[2].size, 1);
}

constexpr TensorKind kBuffer = TensorKind::kBuffer;

TEST(Layout, PutsBuffersBehindTheParameters) {
  const auto layout = Layout::Create({{"w", {3, 2}}, {"b", {4}}, {"bn.mean", {5}, kBuffer}, {"bn.var", {5}, kBuffer}});
  ASSERT_TRUE(layout.ok()) << layout.status();
  EXPECT_EQ(layout->size(), 20);
  EXPECT_EQ(layout->parameters(), 10);
  EXPECT_EQ(layout->tensors()[1].kind, TensorKind::kParameter);
  EXPECT_EQ(layout->tensors()[2].kind, kBuffer);
  EXPECT_EQ(layout->tensors()[2].offset, 10);
  const Layout parameters = layout->WithoutBuffers();
  EXPECT_EQ(parameters.size(), 10);
  EXPECT_EQ(parameters.parameters(), 10);
  EXPECT_EQ(parameters.tensors().size(), 2);
  EXPECT_EQ(parameters.Hash(), Layout::Create({{"w", {3, 2}}, {"b", {4}}})->Hash());
  EXPECT_EQ(parameters.WithoutBuffers().Hash(), parameters.Hash());
}

TEST(Layout, RefusesWhatCannotBeAModel) {
  const struct {
    std::vector<Layout::Entry> entries;
    const char* reason;
  } cases[] = {
      {{}, "at least one"},
      {{{"mean", {2}, kBuffer}}, "at least one"},
      {{{"a", {2}}, {"mean", {2}, kBuffer}, {"b", {2}}}, "parameter 'b' stands behind a buffer"},
      {{{"mean", {2}, kBuffer}, {"a", {2}}}, "parameter 'a' stands behind a buffer"},
      {{{"a", {2}}, {"a", {3}}}, "'a' appears twice"},
      {{{"a", {2, 0}}}, "[2, 0]"},
      {{{"a", {-1}}}, "[-1]"},
      {{{"a", {int64_t{1} << 31}}}, "unusable shape"},
      {{{"a", {int64_t{1} << 62, 4}}}, "unusable shape"},
  };
  for (const auto& test : cases) {
    const absl::Status status = Layout::Create(test.entries).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << test.reason;
    EXPECT_THAT(std::string(status.message()), HasSubstr(test.reason));
  }
  EXPECT_TRUE(Layout::Create({{"a", {Layout::kMostTensorElements}}}).ok());
}

TEST(Layout, HasAsManyElementsAsSixtyFourBitsTellApart) {
  std::vector<Layout::Entry> entries;
  for (int64_t left = Layout::kMostElements; left > 0;) {
    const int64_t size = std::min(left, Layout::kMostTensorElements);
    entries.push_back({absl::StrCat("t", entries.size()), {size}});
    left -= size;
  }
  const absl::StatusOr<Layout> layout = Layout::Create(entries);
  ASSERT_TRUE(layout.ok()) << layout.status();
  EXPECT_EQ(layout->size(), Layout::kMostElements);
  EXPECT_EQ(layout->tensors().back().offset + layout->tensors().back().size, Layout::kMostElements);
  entries.push_back({"one", {1}});
  EXPECT_THAT(std::string(Layout::Create(entries).status().message()), HasSubstr("more than 1099511627776 elements"));
}

TEST(Layout, WeightsHaveTwoDimensionsOrMore) {
  const Layout layout = *Layout::Create(
      {{"a", {2, 3}}, {"b", {4, 1}}, {"bias", {4}}, {"c", {1, 1, 2}}, {"running", {2, 2}, TensorKind::kBuffer}});
  std::vector<std::pair<int64_t, int64_t>> ranges;
  for (const Layout::Range& range : layout.WeightRanges()) ranges.emplace_back(range.begin, range.size);
  EXPECT_EQ(ranges, (std::vector<std::pair<int64_t, int64_t>>{{0, 10}, {14, 2}}));
  EXPECT_TRUE(Layout::Create({{"bias", {4}}})->WeightRanges().empty());
}

// Stored runs and clients' states hold this hash.
TEST(Layout, HashOfParametersNeverChanges) {
  EXPECT_EQ(Layout::Create({{"a", {2, 3}}, {"b", {4}}})->Hash(), HashBytes("a[2,3]\nb[4]\n"));
}

TEST(Layout, HashCoversNamesShapesKindsAndOrder) {
  const std::vector<std::vector<Layout::Entry>> layouts = {
      {{"a", {2, 3}}, {"b", {4}}}, {{"a", {3, 2}}, {"b", {4}}}, {{"a", {6}}, {"b", {4}}},
      {{"b", {4}}, {"a", {2, 3}}}, {{"c", {2, 3}}, {"b", {4}}}, {{"a", {2, 3}}, {"b", {4}, kBuffer}},
  };
  for (size_t i = 0; i < layouts.size(); ++i) {
    for (size_t j = 0; j < layouts.size(); ++j) {
      EXPECT_EQ(Layout::Create(layouts[i])->Hash() == Layout::Create(layouts[j])->Hash(), i == j) << i << " " << j;
    }
  }
}

}  // namespace
}  // namespace terse
