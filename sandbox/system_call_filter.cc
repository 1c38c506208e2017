#include "sandbox/system_call_filter.h"

#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace terse {
namespace {

// Names, because the headers of one kernel do not have all calls of the next, nor one architecture those of another.
constexpr const char* kDenied[] = {
    // Sockets, and what passes descriptors or acts without a call of its own.
    "socket", "socketpair", "connect", "bind", "listen", "accept", "accept4", "sendmsg", "sendmmsg", "recvmsg",
    "recvmmsg", "io_uring_setup", "io_uring_enter", "io_uring_register",
    // Programs and processes.
    "execve", "execveat", "fork", "vfork", "ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "kcmp",
    "pidfd_open", "pidfd_getfd", "pidfd_send_signal", "kill", "tkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "setns",
    "unshare", "setpgid", "setsid",
    // Priorities and places of others.
    "setpriority", "ioprio_set", "sched_setscheduler", "sched_setparam", "sched_setattr", "migrate_pages", "move_pages",
    // Names, owners and modes of files; watching them.
    "creat", "truncate", "ftruncate", "fallocate", "unlink", "unlinkat", "rename", "renameat", "renameat2", "link",
    "linkat", "symlink", "symlinkat", "mkdir", "mkdirat", "rmdir", "mknod", "mknodat", "chmod", "fchmod", "fchmodat",
    "fchmodat2", "chown", "fchown", "fchownat", "lchown", "utime", "utimes", "utimensat", "futimesat", "setxattr",
    "lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr", "name_to_handle_at", "open_by_handle_at",
    "inotify_init", "inotify_init1", "inotify_add_watch", "fanotify_init", "fanotify_mark",
    // Memory that no limit counts, and what others see.
    "memfd_create", "memfd_secret", "shmget", "shmat", "shmctl", "semget", "semop", "semctl", "semtimedop", "msgget",
    "msgsnd", "msgrcv", "msgctl", "mq_open", "mq_unlink", "userfaultfd",
    // The machine.
    "mount", "umount2", "open_tree", "move_mount", "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr",
    "pivot_root", "chroot", "swapon", "swapoff", "bpf", "perf_event_open", "keyctl", "add_key", "request_key",
    "init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot", "acct", "quotactl",
    "quotactl_fd", "settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "sethostname", "setdomainname",
    "syslog", "iopl", "ioperm", "modify_ldt", "personality", "vhangup", "ioctl"};

// Calls whose arguments are in memory, where a filter cannot look; glibc does without those that are not there.
constexpr const char* kMissing[] = {"clone3", "openat2"};

class Filter {
 public:
  Filter() : context_(seccomp_init(SCMP_ACT_ALLOW), seccomp_release) {}

  void Deny(const char* name, const std::vector<scmp_arg_cmp>& when = {}) { Add(SCMP_ACT_ERRNO(EPERM), name, when); }
  void Miss(const char* name) { Add(SCMP_ACT_ERRNO(ENOSYS), name, {}); }
  // 0 or an error of libseccomp.
  int Load() {
    if (context_ == nullptr) return -ENOMEM;
    return error_ == 0 ? seccomp_load(context_.get()) : error_;
  }

 private:
  void Add(uint32_t action, const char* name, const std::vector<scmp_arg_cmp>& when) {
    const int call = seccomp_syscall_resolve_name(name);
    // A call that neither libseccomp nor this architecture knows; negative numbers below are other architectures'.
    if (call == __NR_SCMP_ERROR || context_ == nullptr || error_ != 0) return;
    error_ = seccomp_rule_add_array(context_.get(), action, call, when.size(), when.data());
  }

  const std::unique_ptr<void, void (*)(scmp_filter_ctx)> context_;
  int error_ = 0;
};

// Holds when those bits of the argument that `mask` names are `value`.
scmp_arg_cmp Bits(unsigned argument, uint64_t mask, uint64_t value) {
  return SCMP_CMP64(argument, SCMP_CMP_MASKED_EQ, mask, value);
}

// Holds for an argument that the kernel takes for an int. It looks at the lower half of the register only, so that a
// comparison of all 64 bits would miss the same call with something in the upper half.
scmp_arg_cmp Int(unsigned argument, uint32_t value) { return Bits(argument, UINT32_MAX, value); }

// Holds for every int but `value`, and also for `value` with something in the upper half: nobody needs to write it so.
scmp_arg_cmp NotInt(unsigned argument, uint32_t value) {
  return SCMP_CMP64(argument, SCMP_CMP_NE, static_cast<uint64_t>(value), 0);  // one datum is compared, the other unused
}

void DenyByArguments(Filter* filter) {
  // A thread, not a process.
  filter->Deny("clone", {Bits(0, CLONE_THREAD, 0)});
  for (const uint64_t writes : {O_WRONLY, O_RDWR, O_CREAT, O_TRUNC}) {
    filter->Deny("open", {Bits(1, writes, writes)});
    filter->Deny("openat", {Bits(2, writes, writes)});
  }
  // abort() signals itself; nobody else may be signalled, nor by way of who owns a descriptor.
  filter->Deny("tgkill", {NotInt(0, getpid())});
  for (const uint32_t command : {F_SETOWN, F_SETOWN_EX, F_SETSIG}) filter->Deny("fcntl", {Int(1, command)});
  // Other processes of the same user: their limits and their processors. A thread that moves itself says 0; the numbers
  // of threads that are yet to start are not known here.
  for (const char* name : {"prlimit64", "sched_setaffinity"}) filter->Deny(name, {NotInt(0, 0)});
  // That it dies with the client is not its to change, nor with whom others share a core.
  for (const uint32_t option : {PR_SET_PDEATHSIG, PR_SCHED_CORE}) filter->Deny("prctl", {Int(0, option)});
}

}  // namespace

absl::Status DenySystemCalls() {
  Filter filter;
  for (const char* name : kDenied) filter.Deny(name);
  for (const char* name : kMissing) filter.Miss(name);
  DenyByArguments(&filter);
  if (const int error = filter.Load(); error != 0) {
    return absl::FailedPreconditionError(absl::StrCat("this kernel does not filter system calls (seccomp): ",
                                                      std::strerror(-error), "; without that there is no sandbox"));
  }
  return absl::OkStatus();
}

}  // namespace terse
