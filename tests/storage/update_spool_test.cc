// Updates that wait: in memory up to a limit, and beyond it in files that have no name.
#include "storage/update_spool.h"

#include <thread>

#include "core/random.h"
#include "tests/storage/storage_testing.h"
#include "tests/storage/system_calls.h"

namespace terse {
namespace {

std::string Bytes(size_t size, uint64_t seed) {
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
      count += absl::StartsWith(target, directory_.Path("spool.")) ? 1 : 0;
    }
    return count;
  }

  TempDirectory directory_;
  UpdateSpool spool_{directory_.Path(), kLimits};
};

TEST_F(UpdateSpoolTest, KeepsFewInMemory) {
  auto first = *spool_.Keep(Bytes(600, 1));
  const auto second = *spool_.Keep(Bytes(400, 2));
  EXPECT_EQ(spool_.in_memory(), 1000);
  EXPECT_EQ(OpenFiles(), 0);
  EXPECT_EQ(first->bytes(), Bytes(600, 1));
  const auto third = *spool_.Keep(Bytes(1, 3));
  EXPECT_EQ(spool_.in_memory(), 1000);
  EXPECT_EQ(OpenFiles(), 1);
  first.reset();
  EXPECT_EQ(spool_.in_memory(), 400);
  const auto fourth = *spool_.Keep(Bytes(600, 4));
  EXPECT_EQ(spool_.in_memory(), 1000);
  EXPECT_EQ(second->bytes(), Bytes(400, 2));
  EXPECT_EQ(third->bytes(), Bytes(1, 3));
  EXPECT_EQ(fourth->bytes(), Bytes(600, 4));
}

TEST_F(UpdateSpoolTest, KeepsAnyNumberOfAnySizeInFilesWithoutANameAndUsesThemAgain) {
  for (int round = 0; round < 3; ++round) {
    std::vector<std::shared_ptr<const HeldBytes>> held;
    std::vector<size_t> sizes;
    for (size_t i = 0; i < 60; ++i) sizes.push_back(i == 30 ? 25000 : 1 + 13 * i);
    for (size_t i = 0; i < sizes.size(); ++i) held.push_back(*spool_.Keep(Bytes(sizes[i], i)));
    for (size_t i = 0; i < sizes.size(); ++i) EXPECT_EQ(held[i]->bytes(), Bytes(sizes[i], i)) << i;
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
    in_memory = *spool.Keep(Bytes(900, 1));
    in_file = *spool.Keep(Bytes(901, 2));
  }
  EXPECT_EQ(in_memory->bytes(), Bytes(900, 1));
  EXPECT_EQ(in_file->bytes(), Bytes(901, 2));
}

TEST_F(UpdateSpoolTest, SaysWhatTheDiskRefuses) {
  const SystemCallWatch watch(
      [](absl::string_view call, const std::string& path) { return call == "write" ? ENOSPC : 0; });
  EXPECT_OK(spool_.Keep(Bytes(10, 1)).status()) << "in memory";
  const absl::Status status = spool_.Keep(Bytes(2000, 1)).status();
  EXPECT_CODE(status, kResourceExhausted, directory_.Path());
  EXPECT_CODE(status, kResourceExhausted, "make room");
  UpdateSpool nowhere(directory_.Path("missing"), kLimits);
  EXPECT_CODE(nowhere.Keep(Bytes(2000, 1)).status(), kNotFound, "missing");
}

TEST_F(UpdateSpoolTest, TakesUpdatesOfManyThreads) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (uint64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([this, thread, &wrong] {
      std::vector<std::shared_ptr<const HeldBytes>> held;
      for (uint64_t i = 0; i < 100; ++i) held.push_back(*spool_.Keep(Bytes(300, 1000 * thread + i)));
      for (uint64_t i = 0; i < 100; ++i) wrong += held[i]->bytes() != Bytes(300, 1000 * thread + i) ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(spool_.in_memory(), 0);
}

}  // namespace
}  // namespace terse
