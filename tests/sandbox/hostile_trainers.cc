#include "tests/sandbox/hostile_trainers.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tests/testing/grid_trainer.h"

namespace terse {
namespace {

// A deed: true when it was done, errno otherwise.
using Deed = bool (*)(const std::string& target);

bool Connects(const std::string& port) {
  int number = 0;
  if (!absl::SimpleAtoi(port, &number)) return false;
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(number);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return fd >= 0 && connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
}

bool Opens(const std::string& path, int flags) {
  const int fd = open(path.c_str(), flags, 0600);
  if (fd >= 0) close(fd);
  return fd >= 0;
}

bool Executes(const std::string& path) {
  char* const argv[] = {const_cast<char*>(path.c_str()), nullptr};
  return execv(path.c_str(), argv) == 0;
}

bool Forks(const std::string&) {
  const pid_t pid = fork();
  if (pid == 0) _exit(0);
  return pid > 0;
}

// As glibc's fork does not: with the calls that a filter might have forgotten.
bool Clones(const std::string&) {
  const long pid = syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, 0);
  if (pid == 0) _exit(0);
  return pid > 0;
}

int Parent() { return getppid(); }

bool RingsOfIo(const std::string&) {
  char parameters[256] = {};
  return syscall(SYS_io_uring_setup, 4, parameters) >= 0;
}

bool OwnsSignals(const std::string&) { return fcntl(3, F_SETOWN, Parent()) == 0; }

// The kernel reads the lower half of an int's register; something in the upper half changes nothing for it.
constexpr long kUpperHalf = 1L << 32;

bool OwnsSignalsWide(const std::string&) { return syscall(SYS_fcntl, 3, kUpperHalf | F_SETOWN, Parent()) == 0; }

bool OutlivesParentWide(const std::string&) {
  return syscall(SYS_prctl, kUpperHalf | PR_SET_PDEATHSIG, 0, 0, 0, 0) == 0;
}

// Where the parent may run is not changed by it, but set.
bool SetsProcessors(long pid) {
  cpu_set_t processors;
  return sched_getaffinity(0, sizeof processors, &processors) == 0 &&
         syscall(SYS_sched_setaffinity, pid, sizeof processors, &processors) == 0;
}

bool LimitsParent(const std::string&) {
  rlimit now;
  return prlimit(Parent(), RLIMIT_NOFILE, nullptr, &now) == 0;
}

bool TakesMemoryFile(const std::string&) { return syscall(SYS_memfd_create, "more", 0) >= 0; }

bool FindsVariable(const std::string& name) { return std::getenv(name.c_str()) != nullptr; }

// Other descriptors than the standard ones, the socket and the shared memory.
bool FindsDescriptors(const std::string&) {
  for (int fd = 5; fd < 1024; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0) return true;
  }
  return false;
}

bool SharesNetwork(const std::string& network) {
  char link[64] = {};
  return readlink("/proc/self/ns/net", link, sizeof link - 1) > 0 && network == link;
}

struct DeedRow {
  const char* name;
  Deed deed;
};

constexpr DeedRow kDeeds[] = {
    {"connect", Connects},
    {"unix socket", [](const std::string&) { return socket(AF_UNIX, SOCK_STREAM, 0) >= 0; }},
    {"read", [](const std::string& path) { return Opens(path, O_RDONLY); }},
    {"write", [](const std::string& path) { return Opens(path, O_WRONLY); }},
    {"create", [](const std::string& path) { return Opens(path + "/new", O_CREAT | O_RDONLY); }},
    {"remove", [](const std::string& path) { return unlink(path.c_str()) == 0; }},
    {"chmod", [](const std::string& path) { return chmod(path.c_str(), 0777) == 0; }},
    {"exec", Executes},
    {"fork", Forks},
    {"clone", Clones},
    {"ptrace", [](const std::string&) { return ptrace(PTRACE_ATTACH, Parent(), nullptr, nullptr) == 0; }},
    {"kill", [](const std::string&) { return kill(Parent(), 0) == 0; }},
    {"tgkill", [](const std::string&) { return syscall(SYS_tgkill, Parent(), Parent(), 0) == 0; }},
    {"own signals", OwnsSignals},
    {"own signals, wide", OwnsSignalsWide},
    {"limit parent", LimitsParent},
    {"move parent", [](const std::string&) { return SetsProcessors(Parent()); }},
    {"move parent, wide", [](const std::string&) { return SetsProcessors(kUpperHalf | Parent()); }},
    {"move itself", [](const std::string&) { return SetsProcessors(0); }},
    {"share cores", [](const std::string&) { return prctl(PR_SCHED_CORE, 0, 0, 0, 0) == 0; }},
    {"outlive parent", [](const std::string&) { return prctl(PR_SET_PDEATHSIG, 0) == 0; }},
    {"outlive parent, wide", OutlivesParentWide},
    {"io_uring", RingsOfIo},
    {"memory file", TakesMemoryFile},
    {"shared memory", [](const std::string&) { return shmget(IPC_PRIVATE, 4096, 0600) >= 0; }},
    {"shrink", [](const std::string&) { return ftruncate(4, 0) == 0; }},
    {"variable", FindsVariable},
    {"descriptors", FindsDescriptors},
    {"share network", SharesNetwork},
    {"thread", [](const std::string&) { return std::thread([] {}).join(), true; }},
};

// A frame as Channel sends it, with whatever header.
void SendRaw(uint32_t kind, uint64_t size, const std::string& body) {
  std::string bytes(16, '\0');
  std::memcpy(&bytes[0], &kind, sizeof kind);
  std::memcpy(&bytes[8], &size, sizeof size);
  bytes += body;
  if (write(3, bytes.data(), bytes.size()) < 0) _exit(9);
}

[[noreturn]] void Loop() {
  while (true) pause();
}

class HostileTrainer : public GridTrainer {
 public:
  HostileTrainer(const RunConfig& config, const Shard& shard)
      : GridTrainer(shard.index, GridLayout(), /*starts=*/true), what_(config.name), target_(config.data.name) {}

  int64_t samples() const override { return what_ == "no samples" ? 0 : GridTrainer::samples(); }

  absl::StatusOr<TrainResult> Train(absl::Span<const float> weights, const LocalPlan& plan,
                                    const std::function<bool()>& keep_going, absl::Span<float> delta) override {
    for (const DeedRow& row : kDeeds) {
      if (what_ == row.name) return Try(row.deed);
    }
    if (what_ == "exit") _exit(3);
    if (what_ == "abort") std::abort();
    if (what_ == "loop") Loop();
    if (what_ == "deaf") Deaf(keep_going);
    if (what_ == "steps") {
      while (keep_going()) {
      }
      return absl::CancelledError("stopped");
    }
    if (what_ == "memory") Allocate();
    if (what_ == "shared mapping") MapShared();
    if (what_ == "frame") Raw();
    if (what_ == "status") return Fail();
    absl::StatusOr<TrainResult> result = GridTrainer::Train(weights, plan, keep_going, delta);
    if (what_ == "lie") delta[7] = std::numeric_limits<float>::quiet_NaN();
    if (what_ == "nan loss") result->mean_loss = std::numeric_limits<float>::quiet_NaN();
    if (what_ == "negative samples") result->samples = -1;
    return result;
  }

  absl::StatusOr<std::string> SaveState() override {
    return what_ == "large state" ? std::string(100 << 20, 's') : GridTrainer::SaveState();
  }

 private:
  absl::StatusOr<TrainResult> Try(Deed deed) const {
    errno = 0;
    if (deed(target_)) return TrainResult{0, 1};
    return absl::FailedPreconditionError(std::strerror(errno));
  }
  absl::Status Fail() const {
    int code = 0;
    if (!absl::SimpleAtoi(target_, &code)) return absl::DataLossError("no code");
    return absl::Status(static_cast<absl::StatusCode>(code), "its\nown \033[31mwords");
  }
  // Stops asking, and never ends.
  static void Deaf(const std::function<bool()>& keep_going) {
    while (keep_going()) {
    }
    Loop();
  }
  static void Allocate() {
    while (true) std::memset(new char[32 << 20], 1, 32 << 20);
  }
  static void MapShared() {
    for (int i = 0; i < 64; ++i) {
      if (mmap(nullptr, 32 << 20, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0) == MAP_FAILED) _exit(11);
    }
    _exit(12);
  }
  // "KIND SIZE BYTES": a header that announces SIZE, and that many bytes; then nothing more.
  void Raw() const {
    unsigned kind = 0;
    unsigned long long size = 0, bytes = 0;
    if (std::sscanf(target_.c_str(), "%u %llu %llu", &kind, &size, &bytes) != 3) _exit(10);
    SendRaw(kind, size, std::string(bytes, '\xff'));
    _exit(0);
  }

  const std::string what_;
  const std::string target_;
};

}  // namespace

TrainerFactory HostileTrainerFactory() {
  return [](const RunConfig& config, const Shard& shard,
            absl::string_view module) -> absl::StatusOr<std::unique_ptr<LocalTrainer>> {
    if (config.name == "no trainer") return absl::NotFoundError(absl::StrCat("no data, but ", module));
    if (config.name == "grid") return std::unique_ptr<LocalTrainer>(new GridTrainer(shard.index, GridLayout(), true));
    return std::unique_ptr<LocalTrainer>(new HostileTrainer(config, shard));
  };
}

}  // namespace terse
