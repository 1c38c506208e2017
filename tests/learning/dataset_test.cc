#include "learning/datasets/dataset.h"

#include "gtest/gtest.h"
#include "tests/learning/contents.h"

namespace terse {
namespace {

TEST(ColumnTest, KnowsItsShape) {
  const Column column = Column::FromFloats({2, 3}, std::vector<float>(24, 1.5f));
  EXPECT_EQ(column.count(), 4);
  EXPECT_EQ(column.elements_each(), 6);
  EXPECT_EQ(column.bytes_each(), 24);
  EXPECT_EQ(Column().count(), 0);
  EXPECT_EQ(Column::FromBytes({}, {7, 8, 9}).count(), 3);
  EXPECT_EQ(Column::FromBytes({0}, {}).count(), 0);
}

TEST(ColumnTest, GathersExamplesInTheOrderAsked) {
  const Column column = Column::FromInt64s({2}, {0, 1, 10, 11, 20, 21});
  std::vector<int64_t> out(6);
  column.Gather({2, 0, 2}, reinterpret_cast<char*>(out.data()));
  EXPECT_EQ(out, (std::vector<int64_t>{20, 21, 0, 1, 20, 21}));
}

TEST(ColumnTest, NumbersAreTheSameWhateverTheType) {
  const int32_t ints[] = {-3, 70000};
  const std::vector<Column> columns = {Column::FromBytes({}, {5, 200}), Column::FromFloats({}, {-0.5f, 2}),
                                       Column::FromInt64s({}, {-1, int64_t{1} << 40}),
                                       Column::Shared(Element::kInt32, {}, 2, ints, nullptr)};
  const std::vector<std::vector<double>> expected = {{5, 200}, {-0.5, 2}, {-1, 1099511627776.0}, {-3, 70000}};
  for (size_t i = 0; i < columns.size(); ++i) EXPECT_EQ(Numbers(columns[i]), expected[i]) << i;
}

TEST(ColumnTest, SliceAndReshapedShareTheValues) {
  const Column column = Column::FromFloats({2, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  const Column slice = column.Slice(1, 2).Reshaped({4});
  EXPECT_EQ(slice.count(), 2);
  EXPECT_EQ(slice.shape(), std::vector<int64_t>{4});
  EXPECT_EQ(Floats(slice), (std::vector<float>{4, 5, 6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(slice.data(), column.data() + 16);
}

TEST(ColumnTest, ViewsOutliveTheColumn) {
  auto owner = std::make_shared<std::vector<float>>(std::vector<float>{1, 2, 3});
  const std::weak_ptr<std::vector<float>> watch = owner;
  Column column = Column::Shared(Element::kFloat, {}, 3, owner->data(), owner);
  owner.reset();
  Column slice = column.Slice(2, 1);
  column = Column();
  EXPECT_EQ(slice.Number(0), 3);
  slice = Column();
  EXPECT_TRUE(watch.expired());
}

TEST(ExamplesTest, PlacesAreCountedInTheirFile) {
  Examples examples;
  EXPECT_EQ(examples.Place(3), "example 3");
  examples.files = {{"/a.csv", 0}, {"/empty.csv", 2}, {"/b.csv", 2}};
  EXPECT_EQ(examples.Place(0), "/a.csv, example 0");
  EXPECT_EQ(examples.Place(1), "/a.csv, example 1");
  EXPECT_EQ(examples.Place(2), "/b.csv, example 0");
  EXPECT_EQ(examples.Place(9), "/b.csv, example 7");
}

TEST(ColumnTest, HashesTypeShapeAndValues) {
  const Column column = Column::FromBytes({2}, {1, 2, 3, 4});
  EXPECT_EQ(column.Hash(), Column::FromBytes({2}, {1, 2, 3, 4}).Hash());
  EXPECT_NE(column.Hash(), Column::FromBytes({2}, {1, 2, 3, 5}).Hash());
  EXPECT_NE(column.Hash(), Column::FromBytes({4}, {1, 2, 3, 4}).Hash());
  EXPECT_NE(column.Hash(), column.Slice(0, 1).Hash());
  const int32_t same_bytes = 0x04030201;
  EXPECT_NE(Column::FromBytes({}, {1, 2, 3, 4}).Hash(),
            Column::Shared(Element::kInt32, {}, 1, &same_bytes, nullptr).Hash());
}

}  // namespace
}  // namespace terse
