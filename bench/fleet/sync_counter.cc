// Preloaded into a process: counts its calls of fsync and fdatasync in the file that TERSE_COUNT_SYNCS names.
#include "bench/fleet/sync_counter.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>

namespace {

// Null when there is no such file: then nothing is counted.
terse::SyncCount* MapCount() {
  const char* const path = std::getenv(terse::kSyncCountVariable);
  const int fd = path == nullptr ? -1 : open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return nullptr;
  void* const mapped = mmap(nullptr, sizeof(terse::SyncCount), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  return mapped == MAP_FAILED ? nullptr : static_cast<terse::SyncCount*>(mapped);
}

int CountedSync(long call, int fd) {
  static terse::SyncCount* const count = MapCount();
  if (count != nullptr) count->fetch_add(1);
  return static_cast<int>(syscall(call, fd));
}

}  // namespace

extern "C" int fsync(int fd) { return CountedSync(SYS_fsync, fd); }
extern "C" int fdatasync(int fd) { return CountedSync(SYS_fdatasync, fd); }
