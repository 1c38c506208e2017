#include "learning/partition.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

#include "absl/strings/str_cat.h"
#include "core/id128.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace terse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// 1000 examples in ten classes of different sizes, in seven files.
Dataset Labelled() {
  Dataset dataset;
  dataset.classes = 10;
  std::vector<uint8_t> labels;
  for (int i = 0; i < 1000; ++i) labels.push_back(i * i % 10);
  dataset.train.features = Column::FromBytes({}, std::vector<uint8_t>(1000));
  dataset.train.targets = Column::FromBytes({}, labels);
  dataset.file_starts = {0, 10, 200, 310, 600, 800, 999};
  return dataset;
}

Dataset Values() {
  Dataset dataset = Labelled();
  dataset.task = Task::kValues;
  dataset.train.targets = Column::FromFloats({}, std::vector<float>(1000));
  return dataset;
}

Dataset Words() {
  Dataset dataset;
  dataset.task = Task::kText;
  dataset.train_text.symbols.resize(1000);
  dataset.file_starts = {0, 10, 200, 310, 600, 800, 998};
  return dataset;
}

DataSpec Spec(const std::string& partition) {
  DataSpec spec;
  spec.partition = partition;
  return spec;
}

std::string Refusal(const DataSpec& spec, const Dataset& dataset, int64_t clients) {
  const absl::Status status = MakePartition(spec, dataset, clients, 5).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  return std::string(status.message());
}

std::vector<int64_t> Sizes(const Partition& partition) {
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < partition.clients.size(); ++i) sizes.push_back(partition.SizeOf(i));
  return sizes;
}

std::vector<uint32_t> Everything() {
  std::vector<uint32_t> all(1000);
  std::iota(all.begin(), all.end(), 0u);
  return all;
}

std::set<double> LabelsOf(const Dataset& dataset, const std::vector<uint32_t>& examples) {
  std::set<double> labels;
  for (const uint32_t example : examples) labels.insert(dataset.train.targets.Number(example));
  return labels;
}

// Tests what holds for every partition that divides, whatever the data and the number of clients.
class DividingPartitionTest : public ::testing::TestWithParam<std::string> {};
std::vector<std::string> DividingPartitions() {
  std::vector<std::string> names = PartitionNames();
  names.erase(std::remove(names.begin(), names.end(), "all"), names.end());
  return names;
}
INSTANTIATE_TEST_SUITE_P(Table, DividingPartitionTest, ::testing::ValuesIn(DividingPartitions()),
                         [](const auto& info) { return info.param; });

TEST_P(DividingPartitionTest, IsDisjointCompleteAndTheSameForEveryShard) {
  const Dataset dataset = Labelled();
  for (const int64_t clients : {1, 2, 3, 7, 100, 500}) {
    if (clients > 7 && GetParam() == "by_file") continue;
    for (const uint64_t seed : {1, 2}) {
      const Partition partition = MakePartition(Spec(GetParam()), dataset, clients, seed).value();
      ASSERT_EQ(static_cast<int64_t>(partition.clients.size()), clients);
      std::vector<uint32_t> all;
      for (int64_t i = 0; i < clients; ++i) {
        const std::vector<uint32_t> part = PartitionExamples(Spec(GetParam()), dataset, {i, clients}, seed).value();
        EXPECT_FALSE(part.empty());
        EXPECT_EQ(part, partition.ExamplesOf(i));
        EXPECT_EQ(static_cast<int64_t>(part.size()), partition.SizeOf(i));
        all.insert(all.end(), part.begin(), part.end());
      }
      std::sort(all.begin(), all.end());
      EXPECT_EQ(all, Everything()) << clients;
    }
  }
}

TEST_P(DividingPartitionTest, TheSeedDecides) {
  const auto first = [&](uint64_t seed) {
    return PartitionExamples(Spec(GetParam()), Labelled(), {1, 4}, seed).value();
  };
  EXPECT_EQ(first(5), first(5));
  EXPECT_EQ(first(5) == first(6), GetParam() == "by_file");
}

TEST_P(DividingPartitionTest, TextsAreCutIntoRangesOrRefused) {
  const Dataset dataset = Words();
  for (const int64_t clients : {1, 3, 7}) {
    const absl::StatusOr<Partition> partition = MakePartition(Spec(GetParam()), dataset, clients, 5);
    if (!partition.ok()) {
      EXPECT_THAT(Refusal(Spec(GetParam()), dataset, clients), HasSubstr("class labels, which a data set of text"));
      continue;
    }
    EXPECT_TRUE(partition->order.empty());
    std::vector<bool> taken(1000);
    for (int64_t i = 0; i < clients; ++i) {
      EXPECT_EQ(PartitionText(Spec(GetParam()), dataset, {i, clients}, 5).value(), partition->clients[i]);
      for (const DataRange& range : partition->clients[i]) {
        for (int64_t k = range.begin; k < range.end; ++k) {
          EXPECT_FALSE(taken[k]);
          taken[k] = true;
        }
      }
    }
    EXPECT_EQ(std::count(taken.begin(), taken.end(), true), 1000);
  }
}

TEST_P(DividingPartitionTest, RefusesShardsThatDoNotExist) {
  for (const Shard& shard : {Shard{-1, 4}, Shard{4, 4}, Shard{0, 0}, Shard{0, 1001}}) {
    EXPECT_EQ(PartitionExamples(Spec(GetParam()), Labelled(), shard, 5).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

// The parts are computed by each client for itself, so these hashes must be the same everywhere.
TEST(PartitionTest, IsTheSameOnEveryMachine) {
  const auto hash = [](const std::string& name) {
    std::string bytes;
    const Partition partition = MakePartition(Spec(name), Labelled(), 5, 9).value();
    for (int64_t i = 0; i < 5; ++i) {
      const std::vector<uint32_t> part = partition.ExamplesOf(i);
      absl::StrAppend(&bytes, part.size(), ":");
      bytes.append(reinterpret_cast<const char*>(part.data()), part.size() * sizeof(uint32_t));
    }
    return HashBytes(bytes).ToHex();
  };
  EXPECT_EQ(hash("iid"), "152a4e377a96c9f26fc811dc43ab5665");
  EXPECT_EQ(hash("label_shards"), "287ef0f90372ed2a164e77dab5ce1768");
  EXPECT_EQ(hash("dirichlet"), "60222e99bedd1d5c9b8c7ea18d31b09b");
  EXPECT_EQ(hash("power_law"), "4a833e720243cd1789d8496fb6403d44");
}

TEST(PartitionTest, IidIsAShuffleInEqualPieces) {
  for (const int64_t clients : {1, 3, 7, 100}) {
    const std::vector<int64_t> sizes = Sizes(MakePartition(Spec("iid"), Labelled(), clients, 5).value());
    EXPECT_EQ(*std::min_element(sizes.begin(), sizes.end()), 1000 / clients);
    EXPECT_EQ(*std::max_element(sizes.begin(), sizes.end()), (1000 + clients - 1) / clients);
  }
  const std::vector<uint32_t> shard = PartitionExamples(Spec("iid"), Labelled(), {1, 4}, 5).value();
  EXPECT_FALSE(std::is_sorted(shard.begin(), shard.end()));
  // Uniform draws of 250 from 0..999 have a mean of 499.5 with a standard deviation of about 16.
  EXPECT_NEAR(std::accumulate(shard.begin(), shard.end(), 0.0) / shard.size(), 499.5, 65);
}

TEST(PartitionTest, ExamplesAreDrawnAndTheOthersLeftOut) {
  DataSpec spec;
  for (const char* name : {"iid", "label_shards", "dirichlet", "power_law"}) {
    spec.partition = name;
    spec.examples = 100;
    const Partition some = *MakePartition(spec, Labelled(), 4, 3);
    std::set<uint32_t> seen;
    for (int64_t client = 0; client < 4; ++client) {
      for (const uint32_t example : some.ExamplesOf(client)) EXPECT_TRUE(seen.insert(example).second) << name;
    }
    EXPECT_EQ(seen.size(), 100) << name;
    EXPECT_GT(*seen.rbegin(), 500) << name << ": drawn from all of them";
    spec.examples = 5000;
    EXPECT_EQ(MakePartition(spec, Labelled(), 4, 3)->order.size(), 1000) << name;
  }
  spec.examples = 100;
  for (const char* name : {"all", "by_file"}) {
    spec.partition = name;
    EXPECT_TRUE(absl::IsInvalidArgument(MakePartition(spec, Labelled(), 4, 3).status())) << name;
  }
}

TEST(PartitionTest, IidTextsAreContiguousPiecesInOrder) {
  const Partition partition = MakePartition(Spec("iid"), Words(), 3, 5).value();
  EXPECT_THAT(partition.clients[0], ElementsAre(DataRange{0, 334}));
  EXPECT_THAT(partition.clients[1], ElementsAre(DataRange{334, 667}));
  EXPECT_THAT(partition.clients[2], ElementsAre(DataRange{667, 1000}));
}

TEST(PartitionTest, AllIsEverythingForEveryShard) {
  EXPECT_EQ(PartitionExamples(Spec("all"), Labelled(), {2, 4}, 5).value(), Everything());
  EXPECT_THAT(PartitionText(Spec("all"), Words(), {2, 4}, 5).value(), ElementsAre(DataRange{0, 1000}));
}

TEST(PartitionTest, LabelShardsHoldFewLabels) {
  // Balanced: 600 examples of each of 10 classes; 20 pieces of 300 have one label each.
  Dataset dataset = Labelled();
  std::vector<uint8_t> labels(6000);
  for (size_t i = 0; i < labels.size(); ++i) labels[i] = i % 10;
  dataset.train.features = Column::FromBytes({}, labels);
  dataset.train.targets = dataset.train.features;
  DataSpec spec = Spec("label_shards");
  std::set<std::set<double>> seen;
  for (int64_t i = 0; i < 10; ++i) {
    const std::vector<uint32_t> part = PartitionExamples(spec, dataset, {i, 10}, 5).value();
    EXPECT_EQ(part.size(), 600u);
    seen.insert(LabelsOf(dataset, part));
    EXPECT_LE(seen.rbegin()->size(), 2u);
  }
  EXPECT_GT(seen.size(), 5u);
  spec.labels_each = 1;
  for (int64_t i = 0; i < 10; ++i) {
    EXPECT_EQ(LabelsOf(dataset, PartitionExamples(spec, dataset, {i, 10}, 5).value()).size(), 1u);
  }
}

TEST(PartitionTest, DirichletConcentratesWithAlpha) {
  const Dataset dataset = Labelled();
  // How far the clients' sizes and labels are from an equal share, for 10 clients.
  const auto spread = [&](double alpha) {
    DataSpec spec = Spec("dirichlet");
    spec.alpha = alpha;
    double labels = 0;
    for (int64_t i = 0; i < 10; ++i) {
      labels += LabelsOf(dataset, PartitionExamples(spec, dataset, {i, 10}, 5).value()).size();
    }
    return labels / 10;
  };
  EXPECT_LT(spread(0.01), 2);
  EXPECT_GT(spread(100), 5.9);  // squares end with six digits
  DataSpec spec = Spec("dirichlet");
  spec.alpha = 1e6;
  for (const int64_t size : Sizes(MakePartition(spec, dataset, 10, 5).value())) EXPECT_NEAR(size, 100, 6);
}

TEST(PartitionTest, DirichletLeavesNobodyEmpty) {
  DataSpec spec = Spec("dirichlet");
  spec.alpha = 0.001;
  const std::vector<int64_t> sizes = Sizes(MakePartition(spec, Labelled(), 300, 5).value());
  EXPECT_EQ(*std::min_element(sizes.begin(), sizes.end()), 1);
  EXPECT_EQ(std::accumulate(sizes.begin(), sizes.end(), int64_t{0}), 1000);
  EXPECT_EQ(Sizes(MakePartition(spec, Labelled(), 1000, 5).value()), std::vector<int64_t>(1000, 1));
}

TEST(PartitionTest, ByFileDealsFilesInTurn) {
  const Partition partition = MakePartition(Spec("by_file"), Labelled(), 3, 5).value();
  EXPECT_THAT(partition.clients[0], ElementsAre(DataRange{0, 10}, DataRange{310, 600}, DataRange{999, 1000}));
  EXPECT_THAT(partition.clients[1], ElementsAre(DataRange{10, 200}, DataRange{600, 800}));
  EXPECT_THAT(Refusal(Spec("by_file"), Labelled(), 8), HasSubstr("comes in 7 files for 8 clients"));
  Dataset empty_file = Labelled();
  empty_file.file_starts = {0, 500, 500};
  EXPECT_THAT(Refusal(Spec("by_file"), empty_file, 3), HasSubstr("leaves client 1 without data"));
  empty_file.file_starts.clear();
  EXPECT_THAT(Refusal(Spec("by_file"), empty_file, 3), HasSubstr("comes in 1 files"));
}

TEST(PartitionTest, PowerLawFollowsItsExponent) {
  DataSpec spec = Spec("power_law");
  spec.exponent = 1;
  // Harmonic number of 4: 25/12. Each has one and a share of 996: 478.08, 239.04, 159.36, 119.52, rounded down; the one
  // that is left is the first client's.
  EXPECT_THAT(Sizes(MakePartition(spec, Labelled(), 4, 5).value()), ElementsAre(480, 240, 160, 120));
  spec.exponent = 0;
  EXPECT_THAT(Sizes(MakePartition(spec, Labelled(), 4, 5).value()), ElementsAre(250, 250, 250, 250));
  spec.exponent = 10;
  const std::vector<int64_t> sizes = Sizes(MakePartition(spec, Words(), 100, 5).value());
  EXPECT_GT(sizes[0], 790);
  EXPECT_GE(sizes[99], 2);
}

TEST(PartitionTest, RefusesSettingsThatDoNotFit) {
  EXPECT_THAT(Refusal(Spec("random"), Labelled(), 1),
              HasSubstr("all, iid, label_shards, dirichlet, by_file, power_law"));
  EXPECT_THAT(Refusal(Spec("iid"), Labelled(), 1001), HasSubstr("1000 training examples cannot be cut"));
  EXPECT_THAT(Refusal(Spec("iid"), Words(), 501), HasSubstr("1000 symbols cannot be cut"));
  EXPECT_THAT(Refusal(Spec("all"), Dataset(), 1), HasSubstr("0 training examples"));
  EXPECT_THAT(Refusal(Spec("dirichlet"), Values(), 2), HasSubstr("a data set of values"));
  DataSpec spec = Spec("dirichlet");
  for (const double alpha : {0.0, -1.0, 1e7, std::numeric_limits<double>::quiet_NaN()}) {
    spec.alpha = alpha;
    EXPECT_THAT(Refusal(spec, Labelled(), 2), HasSubstr("data.alpha is"));
  }
  spec = Spec("power_law");
  for (const double exponent : {-0.1, 11.0, std::numeric_limits<double>::quiet_NaN()}) {
    spec.exponent = exponent;
    EXPECT_THAT(Refusal(spec, Labelled(), 2), HasSubstr("data.exponent is"));
  }
  spec = Spec("label_shards");
  for (const int64_t each : {int64_t{0}, int64_t{-5}, int64_t{501}, std::numeric_limits<int64_t>::max()}) {
    spec.labels_each = each;
    EXPECT_THAT(Refusal(spec, Labelled(), 2), HasSubstr("data.labels_each is"));
  }
}

TEST(PartitionTest, IsDescribedInNumbers) {
  DataSpec spec = Spec("power_law");
  EXPECT_EQ(DescribePartition(MakePartition(spec, Labelled(), 4, 5).value(), Labelled()),
            "4 clients, examples of each: 120 to 480, median 240; labels of each: 6 to 6, median 6");
  EXPECT_EQ(DescribePartition(MakePartition(spec, Words(), 1, 5).value(), Words()),
            "1 clients, symbols of each: 1000 to 1000, median 1000");
}

}  // namespace
}  // namespace terse
