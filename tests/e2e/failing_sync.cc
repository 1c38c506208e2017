// Preloaded into a process: while the file that TERSE_FAIL_SYNC names is there, every sync fails as on a broken disk.
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace {

int SyncUnlessBroken(long call, int fd) {
  const char* const broken = std::getenv("TERSE_FAIL_SYNC");
  if (broken != nullptr && access(broken, F_OK) == 0) {
    errno = EIO;
    return -1;
  }
  return static_cast<int>(syscall(call, fd));
}

}  // namespace

extern "C" int fsync(int fd) { return SyncUnlessBroken(SYS_fsync, fd); }
extern "C" int fdatasync(int fd) { return SyncUnlessBroken(SYS_fdatasync, fd); }
