#include "tests/storage/system_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"

namespace terse {
namespace {

std::mutex mutex;
const SystemCallHook* hook = nullptr;  // null: nobody listens

int Ask(absl::string_view call, const std::string& path) {
  const std::lock_guard<std::mutex> lock(mutex);
  return hook == nullptr ? 0 : (*hook)(call, path);
}

// Asks `next` from now on; returns whom it asked before.
const SystemCallHook* Listen(const SystemCallHook* next) {
  const std::lock_guard<std::mutex> lock(mutex);
  return std::exchange(hook, next);
}

std::string PathOf(int fd) {
  char path[PATH_MAX];
  const ssize_t size = readlink(absl::StrCat("/proc/self/fd/", fd).c_str(), path, sizeof path);
  return size < 0 ? "?" : std::string(path, static_cast<size_t>(size));
}

// `skipped`: what the call returns when it is skipped.
template <typename Call>
long Through(absl::string_view name, const std::string& path, long skipped, Call call) {
  const int answer = Ask(name, path);
  if (answer == 0) return call();
  if (answer == kSkipCall) return skipped;
  errno = answer;
  return -1;
}

}  // namespace

SystemCallWatch::SystemCallWatch(SystemCallHook own) : hook_(std::move(own)), outer_(Listen(&hook_)) {}

SystemCallWatch::~SystemCallWatch() { Listen(outer_); }

}  // namespace terse

extern "C" {

int fsync(int fd) {
  return static_cast<int>(terse::Through("sync", terse::PathOf(fd), 0, [&] { return syscall(SYS_fsync, fd); }));
}

int fdatasync(int fd) {
  return static_cast<int>(terse::Through("sync", terse::PathOf(fd), 0, [&] { return syscall(SYS_fdatasync, fd); }));
}

// Machines of some kinds have no other call for it.
int rename(const char* from, const char* to) noexcept {
  return static_cast<int>(terse::Through(
      "rename", to, 0, [&] { return syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, /*flags=*/0); }));
}

int ftruncate64(int fd, off64_t size) noexcept {
  return static_cast<int>(
      terse::Through("truncate", terse::PathOf(fd), 0, [&] { return syscall(SYS_ftruncate, fd, size); }));
}

ssize_t pwrite64(int fd, const void* data, size_t size, off64_t offset) {
  return terse::Through("write", terse::PathOf(fd), static_cast<long>(size),
                        [&] { return syscall(SYS_pwrite64, fd, data, size, offset); });
}

ssize_t pwrite(int fd, const void* data, size_t size, off_t offset) {
  return terse::Through("write", terse::PathOf(fd), static_cast<long>(size),
                        [&] { return syscall(SYS_pwrite64, fd, data, size, offset); });
}

ssize_t write(int fd, const void* data, size_t size) {
  return terse::Through("write", terse::PathOf(fd), static_cast<long>(size),
                        [&] { return syscall(SYS_write, fd, data, size); });
}

}  // extern "C"
