#include "sandbox/confinement.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <new>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "sandbox/system_call_filter.h"

namespace terse {
namespace {

constexpr rlim_t kOpenFiles = 256;
constexpr rlim_t kThreads = 512;

// The files that a program and its libraries read after they have started: code that is loaded late, the clock's zone,
// facts about the machine. A path that does not exist here is skipped.
constexpr const char* kSystemPaths[] = {"/usr",
                                        "/lib",
                                        "/lib64",
                                        "/etc/ld.so.cache",
                                        "/etc/localtime",
                                        "/proc/self",
                                        "/proc/cpuinfo",
                                        "/proc/meminfo",
                                        "/proc/stat",
                                        "/sys/devices/system/cpu",
                                        "/sys/devices/system/node",
                                        "/dev/null",
                                        "/dev/zero",
                                        "/dev/random",
                                        "/dev/urandom"};

// All rights of Landlock's first version: later ones are about what the filter of system calls denies.
constexpr uint64_t kFirstRights = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;

absl::Status CheckOneThread() {
  std::error_code error;
  const std::filesystem::directory_iterator tasks("/proc/self/task", error);
  if (error) return absl::FailedPreconditionError(absl::StrCat("/proc cannot be read: ", error.message()));
  const auto threads = std::distance(begin(tasks), end(tasks));
  if (threads == 1) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the program has ", threads,
                   " threads before its options are read, and the sandbox could not hold them; a library that starts "
                   "them when it is loaded cannot be used with --sandbox"));
}

absl::Status Limit(__rlimit_resource resource, const char* name, rlim_t value) {
  const rlimit limit = {value, value};
  if (setrlimit(resource, &limit) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the limit ", name, " cannot be set: ", std::system_category().message(errno)));
}

absl::StatusOr<rlim_t> MappedBytes() {
  uint64_t pages = 0;
  if (!(std::ifstream("/proc/self/statm") >> pages)) {
    return absl::FailedPreconditionError("/proc/self/statm cannot be read, so memory cannot be limited");
  }
  return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

absl::Status LimitResources(int64_t memory_mb, bool own_user_namespace) {
  TERSE_ASSIGN_OR_RETURN(const rlim_t mapped, MappedBytes());
  TERSE_RETURN_IF_ERROR(Limit(RLIMIT_AS, "on memory (RLIMIT_AS)", mapped + (static_cast<rlim_t>(memory_mb) << 20)));
  TERSE_RETURN_IF_ERROR(Limit(RLIMIT_NOFILE, "on open files (RLIMIT_NOFILE)", kOpenFiles));
  TERSE_RETURN_IF_ERROR(Limit(RLIMIT_CORE, "on core files (RLIMIT_CORE)", 0));
  TERSE_RETURN_IF_ERROR(Limit(RLIMIT_FSIZE, "on written files (RLIMIT_FSIZE)", 0));
  TERSE_RETURN_IF_ERROR(Limit(RLIMIT_MEMLOCK, "on locked memory (RLIMIT_MEMLOCK)", 0));
  // Elsewhere it would count what the user's other processes have.
  if (own_user_namespace) TERSE_RETURN_IF_ERROR(Limit(RLIMIT_NPROC, "on threads (RLIMIT_NPROC)", kThreads));
  // Memory that is refused ends the process, and the client knows why.
  std::set_new_handler([] { _exit(kExitOutOfMemory); });
  return absl::OkStatus();
}

// The rights that this program handles, as the kernel's landlock_ruleset_attr has them since Linux 6.12. Older headers
// end before the scopes, and an older kernel wants them to be zero.
struct RulesetAttributes {
  uint64_t files;
  uint64_t network;
  uint64_t scopes;
};
constexpr uint64_t kSignalScope = 1 << 1;  // LANDLOCK_SCOPE_SIGNAL
constexpr long kFirstVersionWithScopes = 6;

// A descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

// Lets the files below `path`, or the file, be read.
absl::Status AllowReading(int ruleset, const std::string& path) {
  const Descriptor place(open(path.c_str(), O_PATH | O_CLOEXEC));
  struct stat what;
  if (place.get() < 0 || fstat(place.get(), &what) != 0) return absl::ErrnoToStatus(errno, path);
  landlock_path_beneath_attr rule = {};
  rule.allowed_access = LANDLOCK_ACCESS_FS_READ_FILE | (S_ISDIR(what.st_mode) ? LANDLOCK_ACCESS_FS_READ_DIR : 0);
  rule.parent_fd = place.get();
  if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat("Landlock, ", path));
}

}  // namespace

absl::StatusOr<LandlockParts> ConfineByLandlock(const std::vector<std::string>& readable) {
  const long version = syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  const bool has_scopes = version >= kFirstVersionWithScopes;
  const RulesetAttributes attributes = {kFirstRights, 0, has_scopes ? kSignalScope : 0};
  const Descriptor ruleset(syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0));
  if (ruleset.get() < 0) return LandlockParts();
  for (const char* path : kSystemPaths) {
    const absl::Status allowed = AllowReading(ruleset.get(), path);
    if (!allowed.ok() && !absl::IsNotFound(allowed)) return allowed;
  }
  for (const std::string& path : readable) TERSE_RETURN_IF_ERROR(AllowReading(ruleset.get(), path));
  if (syscall(SYS_landlock_restrict_self, ruleset.get(), 0) == 0) return LandlockParts{true, has_scopes};
  return absl::ErrnoToStatus(errno, "Landlock");
}

absl::StatusOr<Confinement> Confine(const std::vector<std::string>& readable, int64_t memory_mb, bool own_network) {
  TERSE_RETURN_IF_ERROR(CheckOneThread());
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    return absl::FailedPreconditionError("this kernel lets programs gain rights (no PR_SET_NO_NEW_PRIVS)");
  }
  TERSE_RETURN_IF_ERROR(LimitResources(memory_mb, own_network));
  TERSE_ASSIGN_OR_RETURN(const LandlockParts landlock, ConfineByLandlock(readable));
  TERSE_RETURN_IF_ERROR(DenySystemCalls());
  return Confinement{own_network, landlock.files, landlock.signals};
}

}  // namespace terse
