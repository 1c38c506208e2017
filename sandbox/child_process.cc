#include "sandbox/child_process.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "sandbox/confinement.h"
#include "sandbox/sandbox.h"

namespace terse {
namespace {

constexpr int kExitNotStarted = 127;

// All but these may hold secrets, and are none of a model's business.
constexpr const char* kKeptVariables[] = {
    "OMP_", "GOMP_",  "KMP_",   "MKL_", "OPENBLAS_CORETYPE=", "LD_LIBRARY_PATH=", "LC_", "LANG=",
    "TZ=",  "TERSE_", "TORCH_", "ATEN_"};

// With these an OpenMP ties each thread that it starts to a processor, by the thread's number, which the filter of
// system calls cannot tell from another process's: it would end the trainer.
constexpr const char* kDroppedVariables[] = {"OMP_PROC_BIND=", "OMP_PLACES=", "GOMP_CPU_AFFINITY=", "KMP_AFFINITY="};

// An OpenBLAS with threads of its own starts them when it is loaded, before the process can be confined; what it then
// has is set by those who train (learning/runtime.h).
char no_early_threads[] = "OPENBLAS_NUM_THREADS=1";

std::vector<char*> KeptEnvironment() {
  std::vector<char*> kept = {no_early_threads};
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const auto begins = [&](const char* prefix) { return absl::StartsWith(*variable, prefix); };
    if (absl::c_any_of(kKeptVariables, begins) && absl::c_none_of(kDroppedVariables, begins)) kept.push_back(*variable);
  }
  kept.push_back(nullptr);
  return kept;
}

// The arguments of exec, made before fork: after it, only calls that are safe in a signal handler may be made.
struct Launch {
  int socket;
  int memory;
  std::vector<char*> own_network;  // argv
  std::vector<char*> shared_network;
  std::vector<char*> environment;
};

[[noreturn]] void RunChild(const Launch& launch) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setsid();  // Ctrl-C is for the parent, which then asks the child to stop
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const bool own_network = unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWIPC) == 0;
  // First out of the way of the numbers that they get.
  const int nothing = open("/dev/null", O_RDWR);
  const int socket = fcntl(launch.socket, F_DUPFD, 10);
  const int memory = fcntl(launch.memory, F_DUPFD, 10);
  for (const int standard : {0, 1, 2}) dup2(nothing, standard);
  const bool ready = dup2(socket, kSandboxSocket) >= 0 && dup2(memory, kSandboxMemory) >= 0 &&
                     close_range(kSandboxMemory + 1, ~0U, 0) == 0;
  const std::vector<char*>& argv = own_network ? launch.own_network : launch.shared_network;
  if (ready) execve("/proc/self/exe", argv.data(), launch.environment.data());
  _exit(kExitNotStarted);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ChildProcess>> StartSandboxed(const std::vector<std::string>& command_line, int socket,
                                                             int memory) {
  std::vector<std::string> words = command_line;
  std::string flag = kSandboxFlag, own = kOwnNetwork, shared = kSharedNetwork;
  Launch launch = {socket, memory, {}, {}, KeptEnvironment()};
  for (std::string& word : words) launch.own_network.push_back(&word[0]);
  launch.own_network.push_back(&flag[0]);
  launch.shared_network = launch.own_network;
  launch.own_network.insert(launch.own_network.end(), {&own[0], nullptr});
  launch.shared_network.insert(launch.shared_network.end(), {&shared[0], nullptr});
  const pid_t pid = fork();
  if (pid == 0) RunChild(launch);
  if (pid < 0) return absl::UnavailableError(absl::StrCat("no process for the sandbox: ", std::strerror(errno)));
  return std::make_unique<ChildProcess>(pid);
}

std::string HowSandboxedEnded(int status, absl::string_view memory_option) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == kExitOutOfMemory) {
    return absl::StrCat("needed more memory than ", memory_option, " allows");
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == kExitNotStarted) return "could not be started";
  return HowItEnded(status);
}

}  // namespace terse
