// The bytes of tests/golden/packed_messages.txt: messages, the packed ones, and the history behind them, which a Python
// encoder made from compression/FORMAT.md.
#include <gtest/gtest.h>

#include <sstream>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/types/optional.h"
#include "compression/choice_codec.h"
#include "compression/update_history.h"
#include "tests/compression/golden_files.h"
#include "tests/testing/paths.h"

namespace terse {
namespace {

// Goes through the file line by line, with one history for what each case sends.
class PackedGolden : public ::testing::Test {
 protected:
  void Read(const std::string& line) {
    std::vector<std::string> fields = absl::StrSplit(line, ' ');
    const std::string key = fields[0];
    fields.erase(fields.begin());
    if (key == "case") {
      specs_.clear();
      entries_.clear();
    } else if (key == "codec") {
      specs_.emplace_back();
      for (const std::string& setting : fields) ReadSetting(setting, &specs_.back());
    } else if (key == "layout") {
      for (const std::string& shape : fields) AddTensor(shape);
    } else if (key == "buffers") {
      if (fields[0] != "0") entries_.push_back({"buffer", {std::stoll(fields[0])}, TensorKind::kBuffer});
      codec_ = *ChoiceCodec::Create(specs_, *Layout::Create(entries_));
      history_.emplace(*codec_->PackedLayout());
    } else if (key == "message") {
      message_ = absl::HexStringToBytes(fields[0]);
    } else if (key == "packed") {
      CheckPacked(absl::HexStringToBytes(fields[0]));
    } else {
      ASSERT_EQ(key, "state");
      CheckState(absl::HexStringToBytes(fields[0]));
    }
  }

  int messages_ = 0, shorter_ = 0, states_ = 0;

 private:
  void AddTensor(const std::string& shape) {
    std::vector<int64_t> sizes;
    if (shape != "scalar") {
      for (const absl::string_view size : absl::StrSplit(shape, 'x')) sizes.push_back(std::stoll(std::string(size)));
    }
    entries_.push_back({absl::StrCat("t", entries_.size()), sizes});
  }

  void CheckPacked(const std::string& packed) {
    const auto made = codec_->Pack(message_, *history_);
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_EQ(absl::BytesToHexString(*made), absl::BytesToHexString(packed));
    const auto read = codec_->Unpack(packed, *history_);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(absl::BytesToHexString(*read), absl::BytesToHexString(message_));
    ASSERT_EQ(codec_->AddToHistory(message_, &*history_), absl::OkStatus());
    shorter_ += packed.size() < message_.size();
    ++messages_;
  }

  // Goes on with what was read.
  void CheckState(const std::string& state) {
    ASSERT_TRUE(history_->Serialize() == state);
    auto read = UpdateHistory::Parse(*codec_->PackedLayout(), state);
    ASSERT_TRUE(read.ok()) << read.status();
    history_ = *std::move(read);
    ++states_;
  }

  std::vector<CodecSpec> specs_;
  std::vector<Layout::Entry> entries_;
  std::unique_ptr<const Codec> codec_;
  absl::optional<UpdateHistory> history_;
  std::string message_;
};

TEST_F(PackedGolden, MessagesAndHistoriesAreTheirBytes) {
  std::istringstream text(ReadAll(InSource("tests/golden/packed_messages.txt")));
  int number = 0;
  for (std::string line; std::getline(text, line);) {
    SCOPED_TRACE(absl::StrCat("line ", ++number));
    if (line[0] == '#') continue;
    Read(line);
    if (HasFailure()) return;
  }
  EXPECT_EQ(messages_, 23);
  EXPECT_EQ(states_, 8);
  EXPECT_GE(shorter_, 10);
}

}  // namespace
}  // namespace terse
