#include "compression/grouped_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/compression/updates.h"

namespace terse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

CodecSpec Grouped(const std::string& name, const std::string& grouping, double density) {
  CodecSpec spec = SparseSpec(name, density);
  spec.grouping = grouping;
  spec.merge_below = 4;
  return spec;
}

// Tensors of 3, 5 and 2 elements; the first and the last are small.
TEST(GroupedCodec, MergesSmallTensorsAndLeavesTheOthersAlone) {
  const Layout layout = MakeLayout({3, 5, 2});
  const auto codec = *MakeCodec(Grouped("top_k", "merge_small", 0.4), layout);
  // Two of the five small elements, wherever they are, and two of the other five.
  const std::string message = *codec->Encode({1, 9, 0, 1, 2, 3, 4, 5, 8, -7});
  EXPECT_THAT(Decode(*codec, message), ElementsAre(0, 9, 0, 0, 0, 0, 4, 5, 8, 0));
  const auto sent = *codec->SentPositions(message);
  ASSERT_TRUE(sent.has_value());
  EXPECT_THAT(*sent, ElementsAre(1, 6, 7, 8));
}

TEST(GroupedCodec, GlobalChoosesAcrossTensors) {
  const auto codec = *MakeCodec(Grouped("top_k", "global", 0.2), MakeLayout({3, 5, 2}));
  EXPECT_THAT(Decode(*codec, *codec->Encode({1, 9, 0, 1, 2, 3, 4, 5, 8, -7})),
              ElementsAre(0, 9, 0, 0, 0, 0, 0, 0, 8, 0));
}

TEST(GroupedCodec, IsThePlainCodecWhereThereIsNothingToMerge) {
  const std::vector<float> update = {1, 9, 0, 1, 2, 3, 4, 5, 8, -7};
  const Layout layout = MakeLayout({3, 7});
  EXPECT_EQ(*(*MakeCodec(Grouped("sbc", "merge_small", 0.4), layout))->Encode(update),
            *(*MakeCodec(Grouped("sbc", "per_tensor", 0.4), layout))->Encode(update));
}

TEST(GroupedCodec, SavesTheScalesOfSmallTensors) {
  const std::vector<int64_t> sizes(50, 20);
  const Layout layout = MakeLayout(sizes);
  Random random(1);
  const std::vector<float> update = RandomUpdate(layout.size(), &random);
  CodecSpec spec = SparseSpec("sbc", 0.05);
  const size_t each = (*MakeCodec(spec, layout))->Encode(update)->size();
  spec.grouping = "merge_small";
  EXPECT_LT((*MakeCodec(spec, layout))->Encode(update)->size(), each / 4);
}

TEST(GroupedCodec, WeighsRatesBySize) {
  const Layout layout = MakeLayout({3, 5, 1});
  const auto codec = *MakeCodec(Grouped("dgc", "merge_small", 0.01), layout);
  EncodeOptions options;
  // The merged group of four: (3 * 0.5 + 1 * 0.5) / 4 of it, two elements; of the other tensor one in five.
  const double rates[] = {0.5, 0.2, 0.5};
  options.rates = rates;
  const std::vector<float> update = {1, 9, 0, 1, 2, 3, 4, 5, 8};
  EXPECT_THAT(Decode(*codec, *codec->Encode(update, options)), ElementsAre(0, 9, 0, 0, 0, 0, 0, 5, 8));
  options.rates = absl::MakeSpan(rates, 2);
  EXPECT_THAT(codec->Encode(update, options).status().ToString(), HasSubstr("2 rates for 3 tensors"));
  EXPECT_THAT(codec->CostBits(update, options).status().ToString(), HasSubstr("2 rates for 3 tensors"));
}

TEST(GroupedCodec, NeverTakesTheNameOfATensorForAGroup) {
  const auto layout = Layout::Create({{"merged", {2}}, {"b", {3}}, {"c", {9}}});
  const auto codec = MakeCodec(Grouped("sbc", "merge_small", 0.5), *layout);
  ASSERT_TRUE(codec.ok()) << codec.status();
}

}  // namespace
}  // namespace terse
