#include "simulation/spawned_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "absl/cleanup/cleanup.h"
#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

extern char** environ;

namespace terse {
namespace {

// The two ends of a pipe, which no other child inherits.
struct Pipe {
  int read = -1, write = -1;

  bool Open() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    read = ends[0];
    write = ends[1];
    return true;
  }
};

std::vector<char*> Pointers(std::vector<std::string>* texts) {
  std::vector<char*> pointers;
  for (std::string& text : *texts) pointers.push_back(text.data());
  return pointers;
}

}  // namespace

std::string BesideThisProgram(const std::string& name) {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / name).string();
}

absl::StatusOr<std::unique_ptr<SpawnedProcess>> SpawnedProcess::Start(const Options& options) {
  auto child = absl::WrapUnique(new SpawnedProcess());
  std::vector<std::string> arguments = options.arguments, environment = options.environment;
  std::vector<char*> argv = Pointers(&arguments), variables = Pointers(&environment);
  argv.push_back(nullptr);
  for (char** variable = environ; *variable != nullptr; ++variable) variables.push_back(*variable);
  variables.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  const auto forget = absl::MakeCleanup([&actions] { posix_spawn_file_actions_destroy(&actions); });
  Pipe in, out;
  if (options.piped) {
    if (!in.Open() || !out.Open()) return absl::ErrnoToStatus(errno, "pipe");
    posix_spawn_file_actions_adddup2(&actions, in.read, 0);
    posix_spawn_file_actions_adddup2(&actions, out.write, 1);
  } else {
    posix_spawn_file_actions_addopen(&actions, 1, options.log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
  }
  const int error = posix_spawn(&child->pid_, argv[0], &actions, nullptr, argv.data(), variables.data());
  if (options.piped) {
    close(in.read);
    close(out.write);
    child->input_ = in.write;
    child->output_ = out.read;
  }
  if (error == 0) return child;
  child->pid_ = 0;
  return absl::UnavailableError(absl::StrCat("cannot start ", options.arguments[0], ": ", std::strerror(error)));
}

SpawnedProcess::~SpawnedProcess() {
  if (pid_ != 0) {
    Signal(SIGKILL);
    Wait(absl::InfiniteDuration());
  }
  CloseInput();
  if (output_ >= 0) close(output_);
}

void SpawnedProcess::CloseInput() {
  if (input_ >= 0) close(input_);
  input_ = -1;
}

absl::optional<int> SpawnedProcess::Wait(absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  while (!ended_.has_value()) {
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == pid_) {
      ended_ = status;
    } else if (absl::Now() > deadline) {
      break;
    } else {
      absl::SleepFor(absl::Milliseconds(5));
    }
  }
  return ended_;
}

void SpawnedProcess::Signal(int signal) {
  if (!ended_.has_value()) kill(pid_, signal);
}

}  // namespace terse
