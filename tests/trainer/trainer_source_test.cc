// Where trainers come from.
#include "trainer/trainer_source.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/temp_directory.h"

namespace terse {
namespace {

using ::testing::HasSubstr;

// Everything that the other end writes until it closes.
std::string ReadAll(int fd) {
  std::string all;
  char buffer[256];
  ssize_t got = 0;
  while ((got = recv(fd, buffer, sizeof buffer, 0)) > 0) all.append(buffer, static_cast<size_t>(got));
  return all;
}

OwnedFile ConnectTo(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  OwnedFile socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return connect(socket.fd(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 ? std::move(socket)
                                                                                          : OwnedFile();
}

TEST(TrainerSource, ACommandFindsItsSocketAndNothingElse) {
  const auto connection =
      TrainerCommand("sh -c 'echo $TERSE_TRAINER_FD >&3; ls /proc/self/fd | tr \"\\n\" \" \" >&3'")();
  ASSERT_TRUE(connection.ok()) << connection.status();
  // ls opens the folder as 4.
  EXPECT_EQ(ReadAll(connection->socket.fd()), "3\n0 1 2 3 4 ");
  EXPECT_EQ(HowItEnded(connection->process->End(absl::Seconds(10))), "exited with code 0");
}

TEST(TrainerSource, ACommandThatDoesNotExistEndsAtOnce) {
  const auto connection = TrainerCommand("/nonexistent/trainer")();
  ASSERT_TRUE(connection.ok()) << connection.status();
  EXPECT_EQ(ReadAll(connection->socket.fd()), "");
  EXPECT_EQ(HowItEnded(connection->process->End(absl::Seconds(10))), "exited with code 127");
}

TEST(TrainerSource, WhatACommandStartedEndsWithIt) {
  auto connection = TrainerCommand("sh -c 'sleep 600 & echo $! >&3; sleep 600'")();
  ASSERT_TRUE(connection.ok()) << connection.status();
  char buffer[32] = {};
  ASSERT_GT(recv(connection->socket.fd(), buffer, sizeof buffer - 1, 0), 0);
  const std::string child = absl::StrCat("/proc/", atoi(buffer));
  struct stat there;
  ASSERT_EQ(stat(child.c_str(), &there), 0);
  EXPECT_EQ(HowItEnded(connection->process->End(absl::ZeroDuration())), "was ended by signal 9");
  const absl::Time until = absl::Now() + absl::Seconds(10);
  const auto runs = [&] {
    char state[512] = {};
    const OwnedFile file(open((child + "/stat").c_str(), O_RDONLY | O_CLOEXEC));
    return file.fd() >= 0 && read(file.fd(), state, sizeof state - 1) > 0 && std::strstr(state, ") Z") == nullptr;
  };
  while (runs() && absl::Now() < until) absl::SleepFor(absl::Milliseconds(10));
  EXPECT_FALSE(runs());
}

TEST(TrainerSource, ASocketIsTheUsersAloneAndGoesWithItsSource) {
  const TempDirectory directory;
  const std::string path = directory.path() + "/trainer.sock";
  std::vector<std::string> lines;
  {
    const auto source = TrainerAtSocket(
        path, [] { return false; }, [&](const std::string& line) { lines.push_back(line); });
    ASSERT_TRUE(source.ok()) << source.status();
    struct stat file;
    ASSERT_EQ(stat(path.c_str(), &file), 0);
    EXPECT_EQ(file.st_mode & 0777, 0600);
    const OwnedFile theirs = ConnectTo(path);
    ASSERT_GE(theirs.fd(), 0);
    const auto connection = (*source)();
    ASSERT_TRUE(connection.ok()) << connection.status();
    EXPECT_EQ(send(theirs.fd(), "hi", 2, 0), 2);
    char buffer[2];
    EXPECT_EQ(recv(connection->socket.fd(), buffer, 2, 0), 2);
    EXPECT_THAT(TrainerAtSocket(path, nullptr, nullptr).status().message(), HasSubstr("another process waits"));
  }
  struct stat file;
  EXPECT_NE(stat(path.c_str(), &file), 0);
  EXPECT_THAT(lines, testing::ElementsAre("waiting for a trainer at " + path));
}

TEST(TrainerSource, ASocketThatWasLeftBehindIsTakenOver) {
  const TempDirectory directory;
  const std::string path = directory.path() + "/trainer.sock";
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  {
    const OwnedFile dead(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(bind(dead.fd(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  EXPECT_TRUE(TrainerAtSocket(
                  path, [] { return true; }, [](const std::string&) {})
                  .ok());
}

TEST(TrainerSource, WaitingEndsWhenTheProcessShould) {
  const TempDirectory directory;
  std::atomic<bool> stop{false};
  const auto source = TrainerAtSocket(
      directory.path() + "/trainer.sock", [&] { return stop.load(); }, [](const std::string&) {});
  ASSERT_TRUE(source.ok()) << source.status();
  std::thread stopper([&] {
    absl::SleepFor(absl::Milliseconds(100));
    stop.store(true);
  });
  EXPECT_EQ((*source)().status().code(), absl::StatusCode::kCancelled);
  stopper.join();
}

TEST(TrainerSource, APathThatCannotBeIsRefused) {
  const auto status = [](const std::string& path) { return TrainerAtSocket(path, nullptr, nullptr).status(); };
  EXPECT_THAT(status(std::string(200, 'x')).message(), HasSubstr("has 200"));
  EXPECT_THAT(status("/nonexistent/folder/trainer.sock").message(), HasSubstr("cannot listen for a trainer"));
}

}  // namespace
}  // namespace terse
