#include "bench/fleet/loaded_coordinator.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "bench/fleet/metrics_page.h"
#include "core/file_system.h"
#include "core/status.h"
#include "net/open_files.h"

namespace terse {
namespace {

constexpr char kEventHistogram[] = "terse_event_seconds";
constexpr absl::Duration kStartPatience = absl::Seconds(60);
constexpr absl::Duration kStopPatience = absl::Seconds(120);
// The coordinator keeps so many files for others than clients (docs/SECURITY.md, "Budgets").
constexpr int64_t kFilesForOthers = 512;
constexpr size_t kLogEnd = 1500;  // bytes of the log that an error quotes

// The coordinator raises its own limit of open files as far as this process could.
absl::Status CheckOpenFilesFor(int64_t clients) {
  TERSE_ASSIGN_OR_RETURN(const int64_t files, RaiseOpenFiles());
  if (files >= clients + kFilesForOthers) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "a coordinator of ", clients, " clients needs ", clients + kFilesForOthers, " open files, and the system allows ",
      files, "; raise the hard limit (ulimit -Hn, as root) or use fewer --clients"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<LoadedCoordinator>> LoadedCoordinator::Start(const Options& options) {
  TERSE_RETURN_IF_ERROR(CheckOpenFilesFor(options.clients));
  auto coordinator = absl::WrapUnique(new LoadedCoordinator(options));
  TERSE_RETURN_IF_ERROR(coordinator->MapSyncCount());
  SpawnedProcess::Options process;
  process.arguments = {BesideThisProgram("terse-coordinator"),
                       "--run-file",
                       options.run_file,
                       "--state",
                       FilePath(options.directory, "coordinator"),
                       "--listen",
                       "127.0.0.1:0",
                       "--http",
                       "127.0.0.1:0",
                       "--ready-file",
                       FilePath(options.directory, "ready.json")};
  if (!options.data.empty()) process.arguments.insert(process.arguments.end(), {"--data", options.data});
  if (!options.tls_folder.empty()) process.arguments.insert(process.arguments.end(), {"--tls", options.tls_folder});
  process.environment = {absl::StrCat("LD_PRELOAD=", BesideThisProgram(kSyncCounterLibrary)),
                         absl::StrCat(kSyncCountVariable, "=", FilePath(options.directory, "syncs"))};
  process.log = FilePath(options.directory, "coordinator.log");
  TERSE_ASSIGN_OR_RETURN(coordinator->process_, SpawnedProcess::Start(process));
  TERSE_RETURN_IF_ERROR(coordinator->AwaitReady());
  return coordinator;
}

LoadedCoordinator::~LoadedCoordinator() {
  if (syncs_ != nullptr) munmap(syncs_, sizeof(SyncCount));
}

absl::Status LoadedCoordinator::MapSyncCount() {
  const std::string library = BesideThisProgram(kSyncCounterLibrary);
  if (access(library.c_str(), R_OK) != 0) {
    return absl::NotFoundError(absl::StrCat(library, " is not there, which counts syncs; build it with terse-bench"));
  }
  const std::string path = FilePath(options_.directory, "syncs");
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0 || ftruncate(fd, sizeof(SyncCount)) != 0) return absl::ErrnoToStatus(errno, path);
  void* const mapped = mmap(nullptr, sizeof(SyncCount), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (mapped == MAP_FAILED) return absl::ErrnoToStatus(errno, path);
  syncs_ = static_cast<SyncCount*>(mapped);
  return absl::OkStatus();
}

absl::Status LoadedCoordinator::AwaitReady() {
  const std::string path = FilePath(options_.directory, "ready.json");
  const absl::Time deadline = absl::Now() + kStartPatience;
  while (access(path.c_str(), R_OK) != 0) {
    TERSE_RETURN_IF_ERROR(CheckRuns());
    if (absl::Now() > deadline) {
      return absl::UnavailableError(absl::StrCat("the coordinator does not serve: ", EndOfLog()));
    }
    absl::SleepFor(absl::Milliseconds(5));
  }
  const nlohmann::json ready = nlohmann::json::parse(std::ifstream(path));
  address_ = ready.at("listen");
  admin_ = ready.at("admin");
  http_ = ready.at("http");
  return absl::OkStatus();
}

std::string LoadedCoordinator::EndOfLog() const {
  const absl::StatusOr<std::string> log = PosixFiles().Read(FilePath(options_.directory, "coordinator.log"));
  if (!log.ok()) return std::string(log.status().message());
  return log->substr(log->size() - std::min(log->size(), kLogEnd));
}

absl::Status LoadedCoordinator::CheckRuns() {
  if (!process_->Wait(absl::ZeroDuration()).has_value()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("the coordinator ended: ", EndOfLog()));
}

absl::StatusOr<LoadedCoordinator::Sample> LoadedCoordinator::Take() {
  TERSE_RETURN_IF_ERROR(CheckRuns());
  Sample sample;
  TERSE_ASSIGN_OR_RETURN(sample.processor, ReadProcessorTime(process_->pid()));
  TERSE_ASSIGN_OR_RETURN(sample.memory, ReadProcessMemory(absl::StrCat(process_->pid())));
  sample.syncs = syncs_->load();
  return sample;
}

absl::optional<absl::Duration> LoadedCoordinator::EventTime() const {
  if (!options_.tls_folder.empty()) return absl::nullopt;
  const absl::StatusOr<std::string> page = FetchPage(http_, "/metrics");
  if (!page.ok()) return absl::nullopt;
  const absl::optional<double> seconds = MedianOfHistogram(*page, kEventHistogram);
  return seconds.has_value() ? absl::make_optional(absl::Seconds(*seconds)) : absl::nullopt;
}

absl::Status LoadedCoordinator::Stop() {
  process_->Signal(SIGTERM);
  const absl::optional<int> ended = process_->Wait(kStopPatience);
  if (ended.has_value() && *ended == 0) return absl::OkStatus();
  return absl::UnknownError(absl::StrCat("the coordinator did not end in order: ", EndOfLog()));
}

}  // namespace terse
