#include "bench/fleet/loaded_server.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "bench/fleet/metrics_page.h"
#include "core/file_system.h"
#include "core/status.h"
#include "net/open_files.h"

namespace terse {
namespace {

constexpr char kEventHistogram[] = "terse_event_seconds";
constexpr absl::Duration kStopPatience = absl::Seconds(120);
// A server keeps so many files for others than clients (docs/SECURITY.md, "Budgets").
constexpr int64_t kFilesForOthers = 512;
constexpr char kSyncFile[] = ".syncs";  // follows the server's name

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
  ServingProcess::Options process;
  process.name = options.name;
  process.program = options.program;
  process.files = server->FileOf("");
  process.arguments = {"--state", server->FileOf(""), "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"};
  if (!options.tls_folder.empty()) process.arguments.insert(process.arguments.end(), {"--tls", options.tls_folder});
  process.arguments.insert(process.arguments.end(), options.arguments.begin(), options.arguments.end());
  process.environment = {absl::StrCat("LD_PRELOAD=", BesideThisProgram(kSyncCounterLibrary)),
                         absl::StrCat(kSyncCountVariable, "=", server->FileOf(kSyncFile))};
  TERSE_ASSIGN_OR_RETURN(server->process_, ServingProcess::Start(process, [] { return true; }));
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
  const absl::StatusOr<std::string> page = FetchPage(process_->http(), "/metrics");
  if (!page.ok()) return absl::nullopt;
  const absl::optional<double> seconds = MedianOfHistogram(*page, kEventHistogram);
  return seconds.has_value() ? absl::make_optional(absl::Seconds(*seconds)) : absl::nullopt;
}

absl::Status LoadedServer::Stop() {
  const absl::optional<int> ended = process_->End(kStopPatience);
  if (ended.has_value() && *ended == 0) return absl::OkStatus();
  return absl::UnknownError(absl::StrCat(options_.name, " did not end in order: ", process_->EndOfLog()));
}

}  // namespace terse
