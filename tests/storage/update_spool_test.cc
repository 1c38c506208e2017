// Updates that wait: in memory up to a limit, and beyond it in files that have no name.
#include "storage/update_spool.h"

#include <thread>

#include "core/random.h"
#include "tests/storage/storage_testing.h"
#include "tests/storage/system_calls.h"

namespace terse {
namespace {

std::string RandomBytes(size_t size, uint64_t seed) {
  Random random(seed);
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random.Below(256));
  return bytes;
}

class UpdateSpoolTest : public ::testing::Test {
 protected:
  static constexpr SpoolLimits kLimits{/*memory_bytes=*/1000, /*file_bytes=*/10000};

  // Files of the directory that this process has open.
  int OpenFiles() const {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code gone;
      const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
      count += absl::StartsWith(target, directory_.Path() + "/") ? 1 : 0;
    }
    return count;
  }

  TempDirectory directory_;
  UpdateSpool spool_{directory_.Path(), kLimits};
};

TEST_F(UpdateSpoolTest, KeepsFewInMemory) {
  auto first = *spool_.Keep(RandomBytes(600, 1));
  const auto second = *spool_.Keep(RandomBytes(400, 2));
  EXPECT_EQ(spool_.in_memory(), 1000);
  EXPECT_EQ(OpenFiles(), 0);
  EXPECT_EQ(first->bytes(), RandomBytes(600, 1));
  const auto third = *spool_.Keep(RandomBytes(1, 3));
  EXPECT_EQ(spool_.in_memory(), 1000);
  EXPECT_EQ(OpenFiles(), 1);
  first.reset();
  EXPECT_EQ(spool_.in_memory(), 400);
  const auto fourth = *spool_.Keep(RandomBytes(600, 4));
  EXPECT_EQ(spool_.in_memory(), 1000);
  EXPECT_EQ(second->bytes(), RandomBytes(400, 2));
  EXPECT_EQ(third->bytes(), RandomBytes(1, 3));
  EXPECT_EQ(fourth->bytes(), RandomBytes(600, 4));
}

TEST_F(UpdateSpoolTest, KeepsAnyNumberOfAnySizeInFilesWithoutANameAndUsesThemAgain) {
  for (int round = 0; round < 3; ++round) {
    std::vector<std::shared_ptr<const HeldBytes>> held;
    std::vector<size_t> sizes;
    for (size_t i = 0; i < 60; ++i) sizes.push_back(i == 30 ? 25000 : 1 + 13 * i);
    for (size_t i = 0; i < sizes.size(); ++i) held.push_back(*spool_.Keep(RandomBytes(sizes[i], i)));
    for (size_t i = 0; i < sizes.size(); ++i) EXPECT_EQ(held[i]->bytes(), RandomBytes(sizes[i], i)) << i;
    EXPECT_LE(spool_.in_memory(), kLimits.memory_bytes);
    EXPECT_GE(OpenFiles(), 3);
    EXPECT_LE(OpenFiles(), 6);
    EXPECT_TRUE(std::filesystem::is_empty(directory_.Path())) << "no name is left";
  }
  EXPECT_EQ(spool_.in_memory(), 0);
  EXPECT_EQ(OpenFiles(), 1) << "the next round begins in the newest one";
}

TEST_F(UpdateSpoolTest, WhatItReturnedOutlivesIt) {
  std::shared_ptr<const HeldBytes> in_memory, in_file;
  {
    UpdateSpool spool(directory_.Path(), kLimits);
    in_memory = *spool.Keep(RandomBytes(900, 1));
    in_file = *spool.Keep(RandomBytes(901, 2));
  }
  EXPECT_EQ(in_memory->bytes(), RandomBytes(900, 1));
  EXPECT_EQ(in_file->bytes(), RandomBytes(901, 2));
}

TEST_F(UpdateSpoolTest, SaysWhatTheDiskRefuses) {
  const SystemCallWatch watch(
      [](absl::string_view call, const std::string& path) { return call == "write" ? ENOSPC : 0; });
  EXPECT_OK(spool_.Keep(RandomBytes(10, 1)).status()) << "in memory";
  const absl::Status status = spool_.Keep(RandomBytes(2000, 1)).status();
  EXPECT_CODE(status, kResourceExhausted, directory_.Path());
  EXPECT_CODE(status, kResourceExhausted, "make room");
  UpdateSpool nowhere(directory_.Path("missing"), kLimits);
  EXPECT_CODE(nowhere.Keep(RandomBytes(2000, 1)).status(), kUnavailable, "missing");
}

TEST_F(UpdateSpoolTest, TakesUpdatesOfManyThreads) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (uint64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([this, thread, &wrong] {
      for (uint64_t round = 0; round < 100; ++round) {
        std::vector<std::shared_ptr<const HeldBytes>> held;
        for (uint64_t i = 0; i < 5; ++i) held.push_back(*spool_.Keep(RandomBytes(900, 10 * thread + i)));
        for (uint64_t i = 0; i < 5; ++i) wrong += held[i]->bytes() != RandomBytes(900, 10 * thread + i) ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(spool_.in_memory(), 0);
}

}  // namespace
}  // namespace terse
