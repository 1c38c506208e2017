#include "tests/e2e/free_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace terse {

std::string OwnHost() {
  static std::atomic<int> hosts{0};
  return absl::StrCat("127.", 1 + getpid() / 250 % 250, ".", getpid() % 250, ".", 1 + hosts++ % 250);
}

std::string FreeAddress(const std::string& host) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  EXPECT_EQ(inet_pton(AF_INET, host.c_str(), &address.sin_addr), 1);
  socklen_t size = sizeof address;
  EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  close(fd);
  return absl::StrCat(host, ":", ntohs(address.sin_port));
}

}  // namespace terse
