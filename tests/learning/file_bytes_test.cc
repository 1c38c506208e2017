#include "learning/datasets/file_bytes.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "learning/datasets/inflate.h"
#include "tests/learning/gzip.h"
#include "tests/learning/temp_folder.h"

namespace terse {
namespace {

using ::testing::HasSubstr;

std::string Numbers(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += std::to_string(i);
  return text;
}

TEST(InflateTest, GivesBackWhatWasCompressed) {
  for (const int count : {0, 1, 1000, 200000}) {
    const std::string text = Numbers(count);
    EXPECT_EQ(*Inflate(Gzip(text), Compression::kGzip, 1 << 30).bytes, text);
  }
}

TEST(InflateTest, JoinsMembers) {
  EXPECT_EQ(*Inflate(Gzip("one ") + Gzip("two"), Compression::kGzip, 100).bytes, "one two");
}

TEST(InflateTest, StopsAtTheLimit) {
  const std::string bomb = Gzip(std::string(10 << 20, 'x'));
  ASSERT_LT(bomb.size(), 20000u);
  const Inflated inflated = Inflate(bomb, Compression::kGzip, 1 << 20);
  EXPECT_EQ(inflated.bytes, nullptr);
  EXPECT_THAT(inflated.reason, HasSubstr("more than 1048576 bytes"));
  EXPECT_NE(Inflate(Gzip(std::string(500, 'x')), Compression::kGzip, 500).bytes, nullptr);
  EXPECT_EQ(Inflate(Gzip(std::string(501, 'x')), Compression::kGzip, 500).bytes, nullptr);
}

TEST(InflateTest, RefusesEveryTruncationAndEveryFlippedByte) {
  const std::string whole = Gzip(Numbers(100));
  for (size_t i = 0; i < whole.size(); ++i) {
    EXPECT_EQ(Inflate(whole.substr(0, i), Compression::kGzip, 1 << 20).bytes, nullptr) << i;
    if (i >= 4 && i < 10) continue;  // time, flags and system of the header
    std::string flipped = whole;
    flipped[i] ^= 0x55;
    EXPECT_EQ(Inflate(flipped, Compression::kGzip, 1 << 20).bytes, nullptr) << i;
  }
  EXPECT_EQ(Inflate(whole + "x", Compression::kGzip, 1 << 20).bytes, nullptr);
}

TEST(FileBytesTest, MapsPlainAndDecompressesGzip) {
  const TempFolder folder;
  EXPECT_EQ(FileBytes::Open(folder.Write("plain", "abc")).value().bytes(), "abc");
  EXPECT_EQ(FileBytes::Open(folder.Write("packed", Gzip("abc"))).value().bytes(), "abc");
  EXPECT_EQ(FileBytes::Open(folder.Write("empty", "")).value().bytes(), "");
  EXPECT_EQ(FileBytes::Open(folder.path() + "/none").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(FileBytes::Open(folder.path()).status().code(), absl::StatusCode::kNotFound);
}

TEST(FileBytesTest, CopiesKeepTheContentsAlive) {
  const TempFolder folder;
  absl::string_view bytes;
  std::shared_ptr<const void> owner;
  {
    const FileBytes file = FileBytes::Open(folder.Write("packed", Gzip("abc"))).value();
    bytes = file.bytes();
    owner = file.owner();
  }
  EXPECT_EQ(bytes, "abc");
}

TEST(ByteReaderTest, NamesFileOffsetAndWhatIsMissing) {
  const FileBytes file("data/file", "\1\2\3\4\5\6", nullptr);
  ByteReader reader(file);
  EXPECT_EQ(reader.TakeBigEndian32("a number").value(), 0x01020304u);
  EXPECT_EQ(reader.offset(), 4);
  const absl::Status status = reader.TakeNumber<uint32_t>("the size").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("data/file, offset 4: the file ends where 2 more bytes of the size should follow"));
  EXPECT_EQ(reader.TakeNumber<uint16_t>("two").value(), 0x0605);
}

}  // namespace
}  // namespace terse
