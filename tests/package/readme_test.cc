// compression/README.md says what is there: every row of every table, and the example as it is built.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "compression/codec_table.h"
#include "compression/feedback_table.h"
#include "compression/position_coder_table.h"
#include "tests/testing/paths.h"

namespace terse {
namespace {

using ::testing::HasSubstr;

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

class ReadmeTest : public ::testing::Test {
 protected:
  // A table's row begins with its name.
  void ExpectRows(const std::vector<std::string>& names) const {
    for (const std::string& name : names) EXPECT_THAT(readme_, HasSubstr(absl::StrCat("\n| `", name, "` |")));
  }

  const std::string readme_ = ReadAll(InSource("compression/README.md"));
};

TEST_F(ReadmeTest, DescribesEveryCodec) { ExpectRows(CodecNames()); }

TEST_F(ReadmeTest, DescribesEveryPositionCoder) { ExpectRows(PositionCoderNames()); }

TEST_F(ReadmeTest, DescribesEveryFeedback) { ExpectRows(FeedbackNames()); }

TEST_F(ReadmeTest, SaysWhichFeedbackIsACodecsOwn) {
  for (const std::string& name : CodecNames()) {
    CodecSpec spec;
    spec.name = name;
    const size_t begin = readme_.find(absl::StrCat("\n| `", name, "` |"));
    ASSERT_NE(begin, std::string::npos) << name;
    const std::string row = readme_.substr(begin + 1, readme_.find('\n', begin + 1) - begin - 1);
    EXPECT_THAT(row, HasSubstr(absl::StrCat("`", *DefaultFeedback(spec), "`")));
  }
}

TEST_F(ReadmeTest, ShowsTheExampleThatIsTested) {
  const std::string folder = InSource("tests/package/example");
  EXPECT_THAT(readme_, HasSubstr(absl::StrCat("```cpp\n", ReadAll(folder + "/main.cc"), "```\n")));
  EXPECT_THAT(readme_, HasSubstr(absl::StrCat("```cmake\n", ReadAll(folder + "/CMakeLists.txt"), "```\n")));
}

}  // namespace
}  // namespace terse
