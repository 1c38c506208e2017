// Bundles are refused unless they are whole and possible; golden_test.cc has their bytes.
#include "compression/bundle.h"

#include <string>
#include <vector>

#include "compression/varint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace terse {
namespace {

using ::testing::HasSubstr;

// A bundle of one update with these numbers.
std::string BundleOf(uint64_t count, uint64_t clients, uint64_t samples, const std::string& message) {
  std::string bundle = "\x1c";
  PutVarint(count, &bundle);
  PutVarint(clients, &bundle);
  PutVarint(samples, &bundle);
  PutVarint(message.size(), &bundle);
  return bundle + message;
}

TEST(Bundle, ComesBackWhole) {
  const std::vector<BundledUpdate> updates = {{"one", {1, 30}}, {"another", {3, 60}}};
  const std::string bundle = BuildBundle(updates).value();
  EXPECT_TRUE(IsBundle(bundle));
  EXPECT_FALSE(IsBundle("one"));
  EXPECT_FALSE(IsBundle(""));
  const std::vector<BundledUpdate> parsed = ParseBundle(bundle).value();
  ASSERT_EQ(parsed.size(), 2u);
  EXPECT_EQ(parsed[1].message, "another");
  EXPECT_EQ(CohortOf(parsed).clients, 4);
  EXPECT_EQ(CohortOf(parsed).samples, 90);
}

TEST(Bundle, EveryOtherLengthIsRefused) {
  const std::string bundle = BuildBundle({{"one", {1, 30}}, {"another", {300, 60000}}}).value();
  for (size_t size = 0; size < bundle.size(); ++size) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseBundle(bundle.substr(0, size)).status())) << size;
  }
  EXPECT_THAT(ParseBundle(bundle + "x").status().message(), HasSubstr("1 bytes too many"));
}

TEST(Bundle, ImpossibleNumbersAreRefused) {
  ASSERT_TRUE(ParseBundle(BundleOf(1, 1, 1, "m")).ok());
  const std::vector<std::string> bad = {
      BundleOf(0, 1, 1, "m"),
      BundleOf(2, 1, 1, "m"),
      BundleOf(kMostBundled + 1, 1, 1, "m"),
      BundleOf(1, 0, 1, "m"),
      BundleOf(1, 0, 0, "m"),
      BundleOf(1, 1, 0, "m"),
      BundleOf(1, CohortFacts::kMostClients + 1, 1, "m"),
      BundleOf(1, 1, CohortFacts::kMostSamples + 1, "m"),
      BundleOf(1, 1, 1, ""),
      BundleOf(1, 1, 1, BundleOf(1, 1, 1, "m")),
  };
  for (size_t i = 0; i < bad.size(); ++i) EXPECT_TRUE(absl::IsInvalidArgument(ParseBundle(bad[i]).status())) << i;
}

TEST(Bundle, HasItsLimits) {
  EXPECT_TRUE(absl::IsInvalidArgument(BuildBundle({}).status()));
  std::vector<BundledUpdate> many(kMostBundled, {"m", {CohortFacts::kMostClients, CohortFacts::kMostSamples}});
  const std::string most = BuildBundle(many).value();
  EXPECT_EQ(CohortOf(ParseBundle(most).value()).samples, kMostBundled * CohortFacts::kMostSamples);
  many.push_back(many[0]);
  EXPECT_THAT(BuildBundle(many).status().message(), HasSubstr("1025 updates, and a relay forwards at most 1024"));
  const std::string large(kMostBundleBytes / 2, 'm');
  EXPECT_TRUE(BuildBundle({{large, {1, 1}}}).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(BuildBundle({{large, {1, 1}}, {large, {1, 1}}}).status()));
}

}  // namespace
}  // namespace terse
