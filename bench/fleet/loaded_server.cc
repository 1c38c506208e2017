#include "bench/fleet/loaded_server.h"

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
// A server keeps so many files for others than clients (docs/SECURITY.md, "Budgets").
constexpr int64_t kFilesForOthers = 512;
constexpr size_t kLogEnd = 1500;  // bytes of the log that an error quotes
// These follow the server's name.
constexpr char kSyncFile[] = ".syncs";
constexpr char kReadyFile[] = ".ready.json";
constexpr char kLogFile[] = ".log";

// A server raises its own limit of open files as far as this process could.
absl::Status CheckOpenFilesFor(int64_t clients) {
  TERSE_ASSIGN_OR_RETURN(const int64_t files, RaiseOpenFiles());
  if (files >= clients + kFilesForOthers) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "a server of ", clients, " clients needs ", clients + kFilesForOthers, " open files, and the system allows ",
      files, "; raise the hard limit (ulimit -Hn, as root) or use fewer --clients"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<LoadedServer>> LoadedServer::Start(const Options& options) {
  TERSE_RETURN_IF_ERROR(CheckOpenFilesFor(options.clients));
  auto server = absl::WrapUnique(new LoadedServer(options));
  TERSE_RETURN_IF_ERROR(server->MapSyncCount());
  SpawnedProcess::Options process;
  process.arguments = {BesideThisProgram(options.program),
                       "--state",
                       server->FileOf(""),
                       "--listen",
                       "127.0.0.1:0",
                       "--http",
                       "127.0.0.1:0",
                       "--ready-file",
                       server->FileOf(kReadyFile)};
  if (!options.tls_folder.empty()) process.arguments.insert(process.arguments.end(), {"--tls", options.tls_folder});
  process.arguments.insert(process.arguments.end(), options.arguments.begin(), options.arguments.end());
  process.environment = {absl::StrCat("LD_PRELOAD=", BesideThisProgram(kSyncCounterLibrary)),
                         absl::StrCat(kSyncCountVariable, "=", server->FileOf(kSyncFile))};
  process.log = server->FileOf(kLogFile);
  TERSE_ASSIGN_OR_RETURN(server->process_, SpawnedProcess::Start(process));
  TERSE_RETURN_IF_ERROR(server->AwaitReady());
  return server;
}

LoadedServer::~LoadedServer() {
  if (syncs_ != nullptr) munmap(syncs_, sizeof(SyncCount));
}

std::string LoadedServer::FileOf(absl::string_view suffix) const {
  return FilePath(options_.directory, absl::StrCat(options_.name, suffix));
}

absl::Status LoadedServer::MapSyncCount() {
  const std::string library = BesideThisProgram(kSyncCounterLibrary);
  if (access(library.c_str(), R_OK) != 0) {
    return absl::NotFoundError(absl::StrCat(library, " is not there, which counts syncs; build it with terse-bench"));
  }
  const std::string path = FileOf(kSyncFile);
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0 || ftruncate(fd, sizeof(SyncCount)) != 0) return absl::ErrnoToStatus(errno, path);
  void* const mapped = mmap(nullptr, sizeof(SyncCount), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (mapped == MAP_FAILED) return absl::ErrnoToStatus(errno, path);
  syncs_ = static_cast<SyncCount*>(mapped);
  return absl::OkStatus();
}

absl::Status LoadedServer::AwaitReady() {
  const std::string path = FileOf(kReadyFile);
  const absl::Time deadline = absl::Now() + kStartPatience;
  while (access(path.c_str(), R_OK) != 0) {
    TERSE_RETURN_IF_ERROR(CheckRuns());
    if (absl::Now() > deadline) {
      return absl::UnavailableError(absl::StrCat(options_.name, " does not serve: ", EndOfLog()));
    }
    absl::SleepFor(absl::Milliseconds(5));
  }
  const nlohmann::json ready = nlohmann::json::parse(std::ifstream(path));
  address_ = ready.at("listen");
  admin_ = ready.at("admin");
  http_ = ready.at("http");
  return absl::OkStatus();
}

std::string LoadedServer::EndOfLog() const {
  const absl::StatusOr<std::string> log = PosixFiles().Read(FileOf(kLogFile));
  if (!log.ok()) return std::string(log.status().message());
  return log->substr(log->size() - std::min(log->size(), kLogEnd));
}

absl::Status LoadedServer::CheckRuns() {
  if (!process_->Wait(absl::ZeroDuration()).has_value()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(options_.name, " ended: ", EndOfLog()));
}

absl::StatusOr<LoadedServer::Sample> LoadedServer::Take() {
  TERSE_RETURN_IF_ERROR(CheckRuns());
  Sample sample;
  TERSE_ASSIGN_OR_RETURN(sample.processor, ReadProcessorTime(process_->pid()));
  TERSE_ASSIGN_OR_RETURN(sample.memory, ReadProcessMemory(absl::StrCat(process_->pid())));
  sample.syncs = syncs_->load();
  return sample;
}

absl::optional<absl::Duration> LoadedServer::EventTime() const {
  if (!options_.tls_folder.empty()) return absl::nullopt;
  const absl::StatusOr<std::string> page = FetchPage(http_, "/metrics");
  if (!page.ok()) return absl::nullopt;
  const absl::optional<double> seconds = MedianOfHistogram(*page, kEventHistogram);
  return seconds.has_value() ? absl::make_optional(absl::Seconds(*seconds)) : absl::nullopt;
}

absl::Status LoadedServer::Stop() {
  process_->Signal(SIGTERM);
  const absl::optional<int> ended = process_->Wait(kStopPatience);
  if (ended.has_value() && *ended == 0) return absl::OkStatus();
  return absl::UnknownError(absl::StrCat(options_.name, " did not end in order: ", EndOfLog()));
}

}  // namespace terse
