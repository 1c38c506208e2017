#include "tersectl/doctor_state.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "core/file_system.h"
#include "core/status.h"
#include "security/tls_directory.h"
#include "storage/audit_log.h"
#include "storage/client_files.h"
#include "storage/module_file.h"
#include "storage/state_directory.h"
#include "storage/temporary_directory.h"
#include "tersectl/backup.h"
#include "tersectl/text_table.h"

namespace terse {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kSilence = absl::Seconds(2);

// Says how far a long examination is.
class Pace {
 public:
  Pace(int64_t total, const Terminal& terminal) : total_(total), terminal_(terminal) {}

  void Add(int64_t bytes) {
    done_ = std::min(done_ + bytes, total_);
    const absl::Duration spent = absl::Now() - begin_;
    if (spent < kSilence || absl::Now() - last_ < absl::Seconds(1) || done_ == 0 || done_ == total_) return;
    last_ = absl::Now();
    const double left = absl::ToDoubleSeconds(spent) * static_cast<double>(total_ - done_) / static_cast<double>(done_);
    *terminal_.err << "tersectl: " << BytesText(done_) << " of " << BytesText(total_) << " examined, about "
                   << DurationText(left) << " left\n"
                   << std::flush;
  }

 private:
  const int64_t total_;
  const Terminal& terminal_;
  const absl::Time begin_ = absl::Now();
  absl::Time last_ = begin_;
  int64_t done_ = 0;
};

// All below the directory, itself included, as lstat has them.
struct Entry {
  std::string path;
  struct stat info = {};
};

std::vector<Entry> EntriesBelow(const std::string& directory) {
  std::vector<Entry> entries;
  const auto add = [&](const std::string& path) {
    Entry entry{path};
    if (lstat(path.c_str(), &entry.info) == 0) entries.push_back(std::move(entry));
  };
  add(directory);
  std::error_code error;
  for (fs::recursive_directory_iterator it(directory, fs::directory_options::skip_permission_denied, error), end;
       !error && it != end; it.increment(error)) {
    add(it->path().string());
  }
  return entries;
}

int64_t BytesBelow(const std::vector<Entry>& entries, const std::string& folder) {
  int64_t bytes = 0;
  for (const Entry& entry : entries) {
    if (absl::StartsWith(entry.path, absl::StrCat(folder, "/")) && S_ISREG(entry.info.st_mode)) {
      bytes += entry.info.st_size;
    }
  }
  return bytes;
}

// Checks who may read or change the files. A start as root leaves files of several users to a service.
void CheckOwners(const std::string& directory, const std::vector<Entry>& entries, std::vector<Finding>* findings) {
  if (entries.empty()) return;
  const unsigned mode = entries.front().info.st_mode & 0777;
  const std::string detail = absl::StrFormat("%s has mode %04o", directory, mode);
  findings->push_back((mode & 077) == 0 ? Finding{"mode", Health::kOk, detail, ""}
                                        : Finding{"mode", Health::kWarning, detail,
                                                  absl::StrCat("others can look into it: chmod 700 ", directory)});
  std::set<uid_t> owners;
  for (const Entry& entry : entries) {
    if (entry.path != directory) owners.insert(entry.info.st_uid);
  }
  if (owners.size() < 2) {
    findings->push_back({"owner", Health::kOk, "all is one user's", ""});
    return;
  }
  const uid_t owner = entries.front().info.st_uid;
  const auto other =
      std::find_if(entries.begin(), entries.end(), [&](const Entry& entry) { return entry.info.st_uid != owner; });
  findings->push_back(
      {"owner", Health::kWarning,
       absl::StrCat("files of ", owners.size(), " users: ", other->path, " is of user ", other->info.st_uid),
       absl::StrCat("chown -R USER ", directory, ", with the user as whom its daemon runs")});
}

// Folders with a certificate: DIR itself, and those in it.
void ExamineCertificates(const std::vector<Entry>& entries, std::vector<Finding>* findings) {
  for (const Entry& entry : entries) {
    const fs::path path = entry.path;
    if (path.filename() == kKeyFile) ExamineTls(path.parent_path().string(), findings);
  }
}

void ExamineDisk(const std::string& directory, int64_t next, const std::string& what, std::vector<Finding>* findings) {
  std::error_code error;
  const fs::space_info disk = fs::space(directory, error);
  if (error) {
    findings->push_back({"disk", Health::kWarning, absl::StrCat(directory, ": ", error.message()), "check the disk"});
    return;
  }
  findings->push_back(CheckRoom(disk.available, disk.capacity, static_cast<uint64_t>(next), what, directory));
}

// A place for copies of databases, with as many bytes as the largest needs.
absl::StatusOr<std::string> ScratchFolder(int64_t bytes) {
  TERSE_ASSIGN_OR_RETURN(std::string scratch, NewTemporaryName("terse-doctor"));
  const fs::path folder = fs::path(scratch).parent_path();
  std::error_code error;
  const fs::space_info disk = fs::space(folder, error);
  if (error || disk.available < static_cast<uint64_t>(bytes)) {
    return absl::ResourceExhaustedError(absl::StrCat(folder.string(), " has ", BytesText(error ? 0 : disk.available),
                                                     " free, and copies of the databases need ", BytesText(bytes),
                                                     "; name a larger folder with TMPDIR"));
  }
  return scratch;
}

// Names come sorted.
bool Holds(const std::vector<std::string>& names, const std::string& name) {
  return std::binary_search(names.begin(), names.end(), name);
}

bool HasAudit(const std::vector<std::string>& names) { return Holds(names, kAuditFile); }

bool IsCoordinators(const std::vector<std::string>& names) {
  return Holds(names, kRunFile) || Holds(names, "runs") || Holds(names, "checkpoints") || HasAudit(names);
}

// A run's directory. The name of the one that an earlier release kept in the state directory itself is in its database.
struct RunFolder {
  std::string name;
  std::string path;
};

std::vector<RunFolder> FindRuns(const std::string& directory, const std::vector<std::string>& names,
                                std::vector<Finding>* findings) {
  std::vector<RunFolder> runs;
  if (Holds(names, kRunFile) || Holds(names, "checkpoints")) runs.push_back({"", directory});
  const std::string folder = absl::StrCat(directory, "/runs");
  const absl::StatusOr<std::vector<std::string>> served = PosixFiles().List(folder);
  if (!served.ok()) {
    if (!absl::IsNotFound(served.status())) findings->push_back(FindingOf("runs", served.status(), Health::kFailure));
    return runs;
  }
  for (const std::string& name : *served) {
    if (!IsNotServed(name)) runs.push_back({name, RunDirectory(directory, name)});
  }
  return runs;
}

// Returns the bytes that the run's next checkpoint takes.
int64_t NextCheckpoint(const RunExamination& run) {
  if (!run.checkpoints.empty()) return run.checkpoints.front().bytes;
  return run.run.has_value() ? run.run->parameters * static_cast<int64_t>(sizeof(float)) : 0;
}

void ExamineModule(const std::string& directory, const RunRecord& run, std::vector<Finding>* findings) {
  const std::string check = absl::StrCat("run ", run.name, ": module");
  if (const absl::Status status = CheckModule(directory, run); !status.ok()) {
    findings->push_back(FindingOf(check, status, Health::kFailure));
    return;
  }
  const std::vector<std::string> names = PosixFiles().List(directory).value_or(std::vector<std::string>());
  for (const char* const file : {kModuleFile, kStartFile}) {
    if (Holds(names, file)) findings->push_back({check, Health::kOk, absl::StrCat(file, " is the run's"), ""});
  }
}

void ExamineCoordinator(const std::string& directory, const std::vector<std::string>& names,
                        const std::vector<Entry>& entries, const Terminal& terminal, std::vector<Finding>* findings) {
  const std::vector<RunFolder> runs = FindRuns(directory, names, findings);
  int64_t copy = HasAudit(names) ? CopyBytes(directory, kAuditFile) : 0, total = 0;
  for (const RunFolder& run : runs) {
    const int64_t bytes = CopyBytes(run.path, kRunFile);
    copy = std::max(copy, bytes);
    total += bytes + BytesBelow(entries, FilePath(run.path, "checkpoints")) +
             BytesBelow(entries, FilePath(run.path, "segments"));
  }
  const absl::StatusOr<std::string> folder = ScratchFolder(copy);
  if (!folder.ok()) {
    findings->push_back(FindingOf("databases", folder.status(), Health::kWarning));
    return;
  }
  const TemporaryDirectory scratch(*folder);
  if (HasAudit(names)) {
    const absl::Status audit = ExamineAudit(directory, scratch.path());
    findings->push_back(audit.ok() ? Finding{"audit log", Health::kOk, "whole", ""}
                                   : FindingOf("audit log", audit, Health::kFailure));
  }
  if (runs.empty()) findings->push_back({"runs", Health::kOk, "none yet", ""});
  Pace pace(total, terminal);
  int64_t next = 0;
  for (const RunFolder& folder : runs) {
    const RunExamination run = ExamineRun(folder.path, scratch.path(), [&pace](int64_t bytes) { pace.Add(bytes); });
    next += NextCheckpoint(run);
    const std::string name = folder.name.empty() && run.run.has_value() ? run.run->name : folder.name;
    for (Finding& finding : CheckRunFiles(name, run)) findings->push_back(std::move(finding));
    if (run.run.has_value()) ExamineModule(folder.path, *run.run, findings);
  }
  ExamineDisk(directory, next, "checkpoint of all runs", findings);
}

void ExamineClientDirectory(const std::string& directory, bool held, const std::vector<Entry>& entries,
                            const Terminal& terminal, std::vector<Finding>* findings) {
  Pace pace(BytesBelow(entries, directory), terminal);
  const ClientExamination client = ExamineClient(directory, [&pace](int64_t bytes) { pace.Add(bytes); });
  for (Finding& finding : CheckClientFiles(client, held)) findings->push_back(std::move(finding));
  ExamineDisk(directory, client.seal_bytes, "seal", findings);
}

}  // namespace

std::vector<Finding> ExamineState(const std::string& directory, const Terminal& terminal) {
  std::vector<Finding> findings;
  const absl::StatusOr<std::vector<std::string>> names = PosixFiles().List(directory);
  if (!names.ok()) {
    findings.push_back({"state", Health::kFailure, std::string(names.status().message()),
                        "name the directory that the daemon has as --state, as a user who may read it"});
    return findings;
  }
  const bool is_coordinator = IsCoordinators(*names);
  if (!is_coordinator && std::none_of(names->begin(), names->end(), IsClientFile)) {
    findings.push_back({"state", Health::kFailure,
                        absl::StrCat(directory, " holds neither a coordinator's nor a client's files"),
                        "name the directory that the daemon has as --state; one that joined no run yet is empty"});
    return findings;
  }
  findings.push_back(
      {"state", Health::kOk, absl::StrCat(directory, ": a ", is_coordinator ? "coordinator's" : "client's"), ""});
  const absl::StatusOr<bool> held = IsLocked(directory);
  if (held.ok()) {
    findings.push_back({"in use", Health::kOk, *held ? "yes, by a process that runs" : "no", ""});
  } else {
    findings.push_back(FindingOf("in use", held.status(), Health::kFailure));
  }
  const std::vector<Entry> entries = EntriesBelow(directory);
  CheckOwners(directory, entries, &findings);
  ExamineCertificates(entries, &findings);
  if (is_coordinator) {
    ExamineCoordinator(directory, *names, entries, terminal, &findings);
  } else {
    ExamineClientDirectory(directory, held.ok() && *held, entries, terminal, &findings);
  }
  return findings;
}

}  // namespace terse
