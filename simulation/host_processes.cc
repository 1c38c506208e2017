#include "simulation/host_processes.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/types/optional.h"
#include "core/status.h"
#include "simulation/host_process.h"

namespace terse {
namespace {

constexpr absl::Duration kBetweenReads = absl::Milliseconds(200);
constexpr absl::Duration kEndPatience = absl::Seconds(20);

}  // namespace

absl::StatusOr<std::unique_ptr<HostProcesses>> HostProcesses::Start(const Options& options) {
  auto all = std::make_unique<HostProcesses>();
  const int64_t processes = std::min(options.processes, options.clients);
  int64_t first = 0;
  for (int64_t i = 0; i < processes; ++i) {
    const int64_t count = (options.clients - first) / (processes - i);
    SpawnedProcess::Options child;
    child.arguments = {"/proc/self/exe", kHostCommand};
    child.arguments.insert(child.arguments.end(), options.arguments.begin(), options.arguments.end());
    child.arguments.insert(child.arguments.end(), {"--first", absl::StrCat(first), "--count", absl::StrCat(count)});
    if (!options.trainer_sockets.empty()) {
      child.arguments.insert(child.arguments.end(), {"--trainer-fd", absl::StrCat(options.trainer_sockets.at(i))});
    }
    child.piped = true;
    Process process;
    process.first = first;
    process.count = count;
    TERSE_ASSIGN_OR_RETURN(process.child, SpawnedProcess::Start(child));
    all->processes_.push_back(std::move(process));
    first += count;
  }
  return all;
}

HostProcesses::~HostProcesses() {
  for (Process& process : processes_) {
    process.child->CloseInput();
    process.child->Signal(SIGTERM);
  }
  for (Process& process : processes_) process.child->Wait(kEndPatience);
}

absl::Status HostProcesses::Join(const std::function<bool()>& go_on,
                                 const std::function<void(int64_t joined)>& on_joined) {
  int64_t before = 0;
  for (Process& process : processes_) {
    if (write(process.child->input(), "join\n", 5) != 5) return Ended(&process);
    int64_t said = 0;
    while (process.joined < process.count) {
      if (!go_on()) return absl::CancelledError("stopped");
      TERSE_RETURN_IF_ERROR(Listen(kBetweenReads));
      if (process.joined != said) on_joined(before + process.joined);
      said = process.joined;
    }
    before += process.count;
  }
  return absl::OkStatus();
}

absl::Status HostProcesses::Listen(absl::Duration timeout) {
  std::vector<pollfd> ends;
  std::vector<Process*> speakers;
  for (Process& process : processes_) {
    if (process.done) continue;
    ends.push_back({process.child->output(), POLLIN, 0});
    speakers.push_back(&process);
  }
  const int heard = poll(ends.data(), ends.size(), static_cast<int>(absl::ToInt64Milliseconds(timeout)));
  if (heard < 0) return errno == EINTR ? absl::OkStatus() : absl::ErrnoToStatus(errno, "poll");
  for (size_t i = 0; i < ends.size(); ++i) {
    if (ends[i].revents == 0) continue;
    char bytes[4096];
    const ssize_t got = read(ends[i].fd, bytes, sizeof(bytes));
    Process* const process = speakers[i];
    if (got <= 0) return Ended(process);
    process->unread.append(bytes, got);
    for (size_t end = 0; (end = process->unread.find('\n')) != std::string::npos;) {
      const std::string line = process->unread.substr(0, end);
      process->unread.erase(0, end + 1);
      TERSE_RETURN_IF_ERROR(Hear(process, line));
    }
  }
  return absl::OkStatus();
}

absl::Status HostProcesses::Hear(Process* process, const std::string& line) const {
  absl::string_view rest = line;
  if (absl::ConsumePrefix(&rest, "error ")) return absl::UnavailableError(rest);
  if (absl::ConsumePrefix(&rest, "joined ") && absl::SimpleAtoi(rest, &process->joined)) return absl::OkStatus();
  if (absl::ConsumePrefix(&rest, "done ") && absl::SimpleAtoi(rest, &process->peak_kib)) {
    process->done = true;
    return absl::OkStatus();
  }
  return absl::InternalError(absl::StrCat("a process of clients said '", line, "', which is nothing it may say"));
}

absl::Status HostProcesses::Ended(Process* process) {
  const absl::optional<int> status = process->child->Wait(kEndPatience);
  const std::string how = !status.has_value()    ? "closed its output"
                          : WIFSIGNALED(*status) ? absl::StrCat("was killed by signal ", WTERMSIG(*status))
                                                 : absl::StrCat("ended with exit code ", WEXITSTATUS(*status));
  return absl::UnavailableError(
      absl::StrCat("the process of clients ", process->first, " to ", process->first + process->count - 1, " ", how));
}

bool HostProcesses::done() const {
  return absl::c_all_of(processes_, [](const Process& one) { return one.done; });
}

std::vector<int64_t> HostProcesses::peak_kib() const {
  std::vector<int64_t> peaks;
  for (const Process& process : processes_) peaks.push_back(process.peak_kib);
  return peaks;
}

}  // namespace terse
