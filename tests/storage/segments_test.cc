// Segment files by themselves: what is appended comes back, damage is found, and what nobody names goes.
#include "storage/segments.h"

#include <fstream>

#include "core/random.h"
#include "tests/storage/storage_testing.h"
#include "tests/storage/system_calls.h"
#include "tests/testing/memory_disk.h"

namespace terse {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kFirst[] = "0000000001.seg", kSecond[] = "0000000002.seg", kThird[] = "0000000003.seg";

class SegmentsTest : public ::testing::Test {
 protected:
  SegmentsTest() { Reopen({}); }
  void Reopen(const SegmentEnds& named) {
    segments_.reset();
    auto segments = Segments::Open(PosixFiles(), path_, named, kSmallLimits);
    ASSERT_OK(segments.status());
    segments_ = *std::move(segments);
  }
  SegmentPlace Append(absl::string_view message) {
    const auto place = segments_->Append(message);
    EXPECT_OK(place.status());
    return place.value_or(SegmentPlace());
  }
  absl::StatusOr<std::string> Read(const SegmentPlace& place) const { return ReadSegment(PosixFiles(), path_, place); }
  std::vector<std::string> Names() const { return PosixFiles().List(path_).value_or(std::vector<std::string>()); }

  const SystemCallWatch watch_{SkipSync};
  const TempDirectory directory_;
  const std::string path_ = directory_.Path("run/segments");
  std::unique_ptr<Segments> segments_;
};

TEST_F(SegmentsTest, WhatWasAppendedComesBack) {
  EXPECT_FALSE(std::filesystem::exists(path_)) << "a run without large messages has no segments";
  std::vector<SegmentPlace> places;
  for (int i = 0; i < 20; ++i) places.push_back(Append(std::string(1 + 7 * i, static_cast<char>('a' + i))));
  ASSERT_OK(segments_->Sync());
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(*Read(places[i]), std::string(1 + 7 * i, static_cast<char>('a' + i)));
  }
  for (const std::string& name : Names()) {
    EXPECT_EQ(std::filesystem::status(path_ + "/" + name).permissions(), std::filesystem::perms(0600));
  }
}

TEST_F(SegmentsTest, AMessageThatDoesNotFitBeginsTheNextSegment) {
  EXPECT_EQ(Append(std::string(60, 'a')).segment, 1);
  const SegmentPlace fits = Append(std::string(40, 'b'));
  EXPECT_EQ(fits.segment, 1);
  EXPECT_EQ(fits.offset, 60);
  EXPECT_EQ(fits.length, 40);
  EXPECT_EQ(Append("c").segment, 2) << "a segment has 100 bytes";
  const SegmentPlace larger = Append(std::string(1000, 'd'));
  EXPECT_EQ(larger.segment, 3) << "a message is never split";
  EXPECT_EQ(larger.offset, 0);
  EXPECT_EQ(Append("e").segment, 4);
}

TEST_F(SegmentsTest, OneSyncIsForAllThatWasAppended) {
  std::vector<std::string> synced;
  const SystemCallWatch watch([&](absl::string_view call, const std::string& path) {
    if (call == "sync") synced.push_back(path.substr(path.find_last_of('/') + 1));
    return call == "sync" ? kSkipCall : 0;
  });
  Append(std::string(20, 'a'));
  Append(std::string(30, 'b'));
  EXPECT_TRUE(segments_->needs_sync());
  synced.clear();  // those of the directory that was made
  ASSERT_OK(segments_->Sync());
  EXPECT_THAT(synced, ElementsAre(kFirst, "segments"));
  EXPECT_FALSE(segments_->needs_sync());
  synced.clear();
  Append(std::string(30, 'c'));
  ASSERT_OK(segments_->Sync());
  EXPECT_THAT(synced, ElementsAre(kFirst)) << "the name is durable already";
  Append(std::string(10, 'd'));
  Append(std::string(90, 'e'));
  synced.clear();
  ASSERT_OK(segments_->Sync());
  EXPECT_THAT(synced, ElementsAre(kFirst, kSecond, "segments"));
}

TEST_F(SegmentsTest, NothingIsAppendedToWhatAnEarlierProcessLeft) {
  const SegmentPlace first = Append(LargeMessage(1));
  std::ofstream(path_ + "/" + kFirst, std::ios::app | std::ios::binary) << "half of a message";
  Reopen({{1, 32}});
  EXPECT_EQ(Append(LargeMessage(2)).segment, 2);
  EXPECT_EQ(*Read(first), LargeMessage(1));
  // The number of a segment that is lost is not given to another.
  std::filesystem::remove_all(path_);
  Reopen({{1, 32}, {5, 32}});
  EXPECT_EQ(Append(LargeMessage(3)).segment, 6);
}

TEST_F(SegmentsTest, DamageIsFoundByName) {
  const SegmentPlace place = Append(LargeMessage(1));
  const SegmentPlace next = Append(LargeMessage(2));
  const std::string path = path_ + "/" + kFirst;
  const std::string whole = PosixFiles().Read(path).value();
  const auto write = [&](const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  };
  const auto expect_damage = [&](const SegmentPlace& at, const std::string& what) {
    const absl::Status status = Read(at).status();
    EXPECT_CODE(status, kDataLoss, path + what);
    EXPECT_CODE(status, kDataLoss, "tersectl restore BACKUP --state DIR");
  };
  for (size_t i = 0; i < whole.size(); ++i) {
    SCOPED_TRACE(i);
    std::string flipped = whole;
    flipped[i] = static_cast<char>(flipped[i] ^ (1 << i % 8));
    write(flipped);
    expect_damage(i < 32 ? place : next, " is damaged: the 32 bytes at ");
    EXPECT_OK(Read(i < 32 ? next : place).status());
    EXPECT_OK(CheckLengths(PosixFiles(), path_, {{1, 64}})) << "it looks at no message";
  }
  for (size_t size = 32; size < whole.size(); ++size) {
    write(whole.substr(0, size));
    expect_damage(next, absl::StrCat(" is damaged: it has ", size, " bytes, and the database names 64"));
    EXPECT_OK(Read(place).status());
    EXPECT_CODE(CheckLengths(PosixFiles(), path_, {{1, 64}}), kDataLoss, path + " is damaged");
    EXPECT_OK(CheckLengths(PosixFiles(), path_, {{1, 32}}));
  }
  std::filesystem::remove(path);
  expect_damage(place, " is missing");
  EXPECT_CODE(CheckLengths(PosixFiles(), path_, {{1, 64}}), kDataLoss, path + " is missing");
}

TEST_F(SegmentsTest, RemovesWhatNobodyNamesButForTheOneThatIsWritten) {
  for (int i = 0; i < 3; ++i) Append(std::string(100, 'a'));
  std::ofstream(path_ + "/a stranger's.seg") << "x";
  std::ofstream(path_ + "/7.seg") << "x";
  ASSERT_OK(segments_->RemoveExcept({{2, 100}}));
  EXPECT_THAT(Names(), ElementsAre(kSecond, kThird, "7.seg", "a stranger's.seg"));
  ASSERT_OK(segments_->RemoveExcept({}));
  EXPECT_THAT(Names(), ElementsAre(kThird, "7.seg", "a stranger's.seg"));
  Reopen({});
  EXPECT_THAT(Names(), ElementsAre("7.seg", "a stranger's.seg"));
}

TEST_F(SegmentsTest, NothingIsRemovedWhileSomebodyReads) {
  Append(std::string(100, 'a'));
  Append(std::string(100, 'b'));
  {
    Segments::Hold first(*segments_);
    const Segments::Hold moved = std::move(first);
    const Segments::Hold second(*segments_);
    ASSERT_OK(segments_->RemoveExcept({}));
    EXPECT_THAT(Names(), ElementsAre(kFirst, kSecond));
  }
  ASSERT_OK(segments_->RemoveExcept({}));
  EXPECT_THAT(Names(), ElementsAre(kSecond));
}

TEST_F(SegmentsTest, AFailedWriteIsFollowedByANewSegment) {
  const SegmentPlace first = Append(LargeMessage(1));
  ASSERT_OK(segments_->Sync());
  const auto fail_append = [&](size_t bytes) {
    const SystemCallWatch watch([](absl::string_view call, const std::string& path) {
      if (call == "sync") return kSkipCall;
      return call == "write" && absl::EndsWith(path, ".seg") ? ENOSPC : 0;
    });
    EXPECT_TRUE(absl::IsResourceExhausted(segments_->Append(std::string(bytes, 'x')).status()));
  };
  fail_append(10);
  EXPECT_FALSE(segments_->needs_sync());
  EXPECT_EQ(Append(LargeMessage(2)).segment, 2);
  EXPECT_EQ(*Read(first), LargeMessage(1));
  fail_append(1000);
  EXPECT_THAT(Names(), ElementsAre(kFirst, kSecond)) << "the half of a large message keeps no room";
  const SegmentPlace last = Append(LargeMessage(3));
  ASSERT_OK(segments_->Sync());
  EXPECT_EQ(*Read(last), LargeMessage(3));
}

TEST_F(SegmentsTest, CopiesWhatIsNamed) {
  const SegmentPlace first = Append(LargeMessage(1));
  Append(LargeMessage(2));
  const std::string large((3 << 20) + 5, 'x');
  const SegmentPlace second = Append(large);
  const std::string to = directory_.Path("copy/segments");
  ASSERT_OK(CopySegments(PosixFiles(), path_, to, {}));
  EXPECT_FALSE(std::filesystem::exists(to));
  ASSERT_OK(CopySegments(PosixFiles(), path_, to, {{1, 32}, {2, second.length}}));
  EXPECT_EQ(*ReadSegment(PosixFiles(), to, first), LargeMessage(1));
  EXPECT_EQ(*ReadSegment(PosixFiles(), to, second), large);
  EXPECT_EQ(std::filesystem::file_size(to + "/" + kFirst), 32);
  EXPECT_CODE(CopySegments(PosixFiles(), path_, to, {{3, 1}}), kDataLoss, kThird);
}

// After a power loss all that was synced is there, whatever happened to the rest.
TEST(SegmentsOnADisk, WhatWasSyncedSurvivesAPowerLoss) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    MemoryDisk disk(seed);
    Random random(seed);
    auto segments = Segments::Open(disk, "/run/segments", {}, kSmallLimits).value();
    std::vector<SegmentPlace> synced;
    for (int64_t i = 0; i < 7; ++i) {
      synced.push_back(segments->Append(LargeMessage(i)).value());
      if (i % 2 == 1) synced.push_back(segments->Append(LargeMessage(i + 100)).value());
      ASSERT_OK(segments->Sync());
    }
    const SegmentPlace unsynced = segments->Append(std::string(1000, 'x')).value();
    disk.LosePower(&random);
    disk.Start();
    for (const SegmentPlace& place : synced) {
      EXPECT_OK(ReadSegment(disk, "/run/segments", place).status()) << seed;
    }
    const auto lost = ReadSegment(disk, "/run/segments", unsynced);
    EXPECT_TRUE(lost.ok() || absl::IsDataLoss(lost.status())) << lost.status();
  }
}

}  // namespace
}  // namespace terse
