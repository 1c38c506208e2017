#include "trainer/trainer_source.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace terse {
namespace {

constexpr int kTrainerFd = 3;
constexpr int kExitNotStarted = 127;
constexpr int kAcceptMillis = 100;

std::string Errno() { return std::strerror(errno); }

// After fork only calls that are safe in a signal handler may be made, so that everything is made before.
[[noreturn]] void RunTrainer(int socket, char* const* argv, char* const* environment) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setpgid(0, 0);  // Ctrl-C is for the parent, which then asks the trainer to stop
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  std::signal(SIGPIPE, SIG_DFL);
  const int away = fcntl(socket, F_DUPFD, kTrainerFd + 1);
  if (away >= 0 && dup2(away, kTrainerFd) >= 0 && close_range(kTrainerFd + 1, ~0U, 0) == 0) {
    execve(argv[0], argv, environment);
  }
  _exit(kExitNotStarted);
}

absl::StatusOr<TrainerConnection> StartCommand(const std::string& command) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return absl::UnavailableError(absl::StrCat("no socket for the trainer: ", Errno()));
  }
  TrainerConnection connection = {OwnedFile(ends[0]), nullptr};
  const OwnedFile theirs(ends[1]);
  std::string shell = "/bin/sh", flag = "-c", words = absl::StrCat("exec ", command);
  std::string variable = absl::StrCat(kTrainerFdVariable, "=", kTrainerFd);
  std::vector<char*> argv = {&shell[0], &flag[0], &words[0], nullptr};
  std::vector<char*> environment = {&variable[0]};
  for (char** each = environ; *each != nullptr; ++each) environment.push_back(*each);
  environment.push_back(nullptr);
  const pid_t pid = fork();
  if (pid == 0) RunTrainer(ends[1], argv.data(), environment.data());
  if (pid < 0) return absl::UnavailableError(absl::StrCat("no process for the trainer: ", Errno()));
  setpgid(pid, pid);  // whichever of the two comes first
  connection.process = std::make_unique<ChildProcess>(pid, /*leads_group=*/true);
  return connection;
}

absl::StatusOr<sockaddr_un> AddressOf(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return absl::FailedPreconditionError(absl::StrCat("the path of a socket has 1 to ", sizeof address.sun_path - 1,
                                                      " bytes, and '", path, "' has ", path.size()));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

// A socket that a trainer can connect to; its file goes with it.
class Listener {
 public:
  Listener(OwnedFile socket, std::string path) : socket_(std::move(socket)), path_(std::move(path)) {}
  ~Listener() { unlink(path_.c_str()); }

  static absl::StatusOr<std::shared_ptr<Listener>> At(const std::string& path) {
    TERSE_ASSIGN_OR_RETURN(const sockaddr_un address, AddressOf(path));
    const auto* const where = reinterpret_cast<const sockaddr*>(&address);
    OwnedFile socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    // Nobody answers at a socket that an earlier process has left behind: connecting to it is refused.
    if (connect(socket.fd(), where, sizeof address) == 0) {
      return absl::FailedPreconditionError(absl::StrCat("another process waits for a trainer at ", path));
    }
    if (errno == ECONNREFUSED) unlink(path.c_str());
    socket = OwnedFile(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const mode_t before = umask(0177);
    const bool bound = bind(socket.fd(), where, sizeof address) == 0;
    umask(before);
    if (!bound || listen(socket.fd(), 1) != 0) {
      return absl::FailedPreconditionError(absl::StrCat("cannot listen for a trainer at ", path, ": ", Errno()));
    }
    return std::make_shared<Listener>(std::move(socket), path);
  }

  absl::StatusOr<TrainerConnection> Accept(const std::function<bool()>& stop) {
    while (!stop()) {
      pollfd waited = {socket_.fd(), POLLIN, 0};
      poll(&waited, 1, kAcceptMillis);
      const int fd = accept4(socket_.fd(), nullptr, nullptr, SOCK_CLOEXEC);
      if (fd >= 0) return TrainerConnection{OwnedFile(fd), nullptr};
      if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
        return absl::UnavailableError(absl::StrCat("no connection at ", path_, ": ", Errno()));
      }
    }
    return absl::CancelledError("stopped");
  }
  const std::string& path() const { return path_; }

 private:
  OwnedFile socket_;
  const std::string path_;
};

}  // namespace

TrainerSource TrainerCommand(std::string command) {
  return [command = std::move(command)] { return StartCommand(command); };
}

absl::StatusOr<TrainerSource> TrainerAtSocket(std::string path, std::function<bool()> stop,
                                              std::function<void(const std::string& line)> log) {
  TERSE_ASSIGN_OR_RETURN(std::shared_ptr<Listener> listener, Listener::At(path));
  return TrainerSource([listener, stop = std::move(stop), log = std::move(log)] {
    log(absl::StrCat("waiting for a trainer at ", listener->path()));
    return listener->Accept(stop);
  });
}

TrainerSource InheritedTrainer(int fd) {
  return [fd]() -> absl::StatusOr<TrainerConnection> {
    OwnedFile socket(fcntl(fd, F_DUPFD_CLOEXEC, 0));
    if (socket.fd() < 0) return absl::FailedPreconditionError(absl::StrCat("descriptor ", fd, ": ", Errno()));
    return TrainerConnection{std::move(socket), nullptr};
  };
}

}  // namespace terse
