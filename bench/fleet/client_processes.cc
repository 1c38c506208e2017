#include "bench/fleet/client_processes.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "bench/fleet/load_process.h"
#include "bench/stop_request.h"
#include "core/status.h"

namespace terse {
namespace {

constexpr absl::Duration kPreparePatience = absl::Minutes(30);

void Add(const nlohmann::json& counts, LoadCounts* sum) {
  sum->applied += counts.at("applied").get<int64_t>();
  sum->not_applied += counts.at("not_applied").get<int64_t>();
  sum->resets += counts.at("resets").get<int64_t>();
  sum->connections += counts.at("connections").get<int64_t>();
  sum->refusals += counts.at("refusals").get<int64_t>();
  sum->downloads += counts.at("downloads").get<int64_t>();
  sum->models_checked += counts.at("models_checked").get<int64_t>();
  sum->memory_kib += counts.at("memory_kib").get<int64_t>();
}

}  // namespace

absl::StatusOr<std::unique_ptr<ClientProcesses>> ClientProcesses::Start(const Options& options) {
  StopOnSignals();
  auto all = std::make_unique<ClientProcesses>();
  int64_t first = 0;
  const int64_t processes = std::min(options.processes, options.clients);
  for (int64_t i = 0; i < processes; ++i) {
    const int64_t count = (options.clients - first) / (processes - i);
    SpawnedProcess::Options child;
    child.arguments = {"/proc/self/exe", kLoadProcessCommand, "--servers", absl::StrJoin(options.servers, ","),
                       "--run-file",     options.run_file,    "--first",   absl::StrCat(first),
                       "--count",        absl::StrCat(count)};
    if (!options.certificates.empty()) {
      child.arguments.insert(child.arguments.end(), {"--certificates", options.certificates});
    }
    child.piped = true;
    Process process;
    TERSE_ASSIGN_OR_RETURN(process.child, SpawnedProcess::Start(child));
    all->processes_.push_back(std::move(process));
    first += count;
  }
  const absl::Time deadline = absl::Now() + kPreparePatience;
  while (!all->All(&Process::ready)) {
    if (absl::Now() > deadline) return absl::DeadlineExceededError("the updates are not prepared within half an hour");
    TERSE_RETURN_IF_ERROR(all->Listen(absl::Seconds(1)));
  }
  return all;
}

bool ClientProcesses::All(bool Process::*said) const {
  return absl::c_all_of(processes_, [said](const Process& process) { return process.*said; });
}

absl::Status ClientProcesses::Go() {
  for (const Process& process : processes_) {
    if (write(process.child->input(), "\n", 1) != 1) return absl::UnavailableError("a process of clients has ended");
  }
  return absl::OkStatus();
}

absl::Status ClientProcesses::Listen(absl::Duration timeout) {
  std::vector<pollfd> ends;
  std::vector<Process*> speakers;
  for (Process& process : processes_) {
    if (process.done) continue;
    ends.push_back({process.child->output(), POLLIN, 0});
    speakers.push_back(&process);
  }
  const int heard = poll(ends.data(), ends.size(), static_cast<int>(absl::ToInt64Milliseconds(timeout)));
  if (StopRequested().load()) return absl::CancelledError("stopped");
  if (heard < 0) return absl::ErrnoToStatus(errno, "poll");
  for (size_t i = 0; i < ends.size(); ++i) {
    if (ends[i].revents == 0) continue;
    char bytes[4096];
    const ssize_t got = read(ends[i].fd, bytes, sizeof(bytes));
    if (got <= 0) return absl::UnavailableError("a process of clients ended without a word");
    Process* const process = speakers[i];
    process->unread.append(bytes, got);
    for (size_t end = 0; (end = process->unread.find('\n')) != std::string::npos;) {
      const std::string line = process->unread.substr(0, end);
      process->unread.erase(0, end + 1);
      TERSE_RETURN_IF_ERROR(Hear(process, line));
    }
  }
  return absl::OkStatus();
}

absl::Status ClientProcesses::Hear(Process* process, const std::string& line) {
  absl::string_view rest = line;
  int64_t version = 0;
  if (absl::ConsumePrefix(&rest, "error ")) return absl::UnavailableError(absl::StrCat("the clients ended: ", rest));
  if (absl::ConsumePrefix(&rest, "version ") && absl::SimpleAtoi(rest, &version)) {
    newest_ = std::max(newest_, version);
  } else if (absl::ConsumePrefix(&rest, "done ")) {
    Add(nlohmann::json::parse(std::string(rest)), &counts_);
    process->done = true;
  } else if (rest == "ready") {
    process->ready = true;
  } else {
    return absl::InternalError(absl::StrCat("a process of clients said '", line, "', which is nothing it may say"));
  }
  return absl::OkStatus();
}

absl::StatusOr<absl::optional<int64_t>> ClientProcesses::AwaitVersion(absl::Duration timeout) {
  TERSE_RETURN_IF_ERROR(Listen(newest_ == returned_ ? timeout : absl::ZeroDuration()));
  if (newest_ == returned_) return absl::optional<int64_t>();
  return absl::optional<int64_t>(returned_ = newest_);
}

absl::StatusOr<LoadCounts> ClientProcesses::Finish(absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  while (!All(&Process::done)) {
    if (absl::Now() > deadline) return absl::DeadlineExceededError("the run is over, and not for all of its clients");
    TERSE_RETURN_IF_ERROR(Listen(absl::Seconds(1)));
  }
  return counts_;
}

}  // namespace terse
