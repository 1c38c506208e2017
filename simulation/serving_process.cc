#include "simulation/serving_process.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/file_system.h"
#include "core/status.h"

namespace terse {
namespace {

constexpr absl::Duration kStartPatience = absl::Minutes(1);
constexpr absl::Duration kBetweenLooks = absl::Milliseconds(5);
constexpr size_t kLogEnd = 1500;  // bytes of the log that an error quotes

}  // namespace

absl::StatusOr<std::unique_ptr<ServingProcess>> ServingProcess::Start(const Options& options,
                                                                      const std::function<bool()>& go_on) {
  const std::string program = BesideThisProgram(options.program), ready = absl::StrCat(options.files, ".ready.json");
  if (access(program.c_str(), X_OK) != 0) {
    return absl::NotFoundError(absl::StrCat(program, " is not there; install or build ", options.program));
  }
  // One of an earlier process, which served somewhere else.
  TERSE_RETURN_IF_ERROR(PosixFiles().Remove(ready));
  auto serving = absl::WrapUnique(new ServingProcess(options));
  SpawnedProcess::Options process;
  process.arguments = {program};
  process.arguments.insert(process.arguments.end(), options.arguments.begin(), options.arguments.end());
  process.arguments.insert(process.arguments.end(), {"--ready-file", ready});
  process.environment = options.environment;
  process.log = absl::StrCat(options.files, ".log");
  TERSE_ASSIGN_OR_RETURN(serving->process_, SpawnedProcess::Start(process));
  TERSE_RETURN_IF_ERROR(serving->AwaitReady(ready, go_on));
  return serving;
}

absl::Status ServingProcess::AwaitReady(const std::string& path, const std::function<bool()>& go_on) {
  const absl::Time deadline = absl::Now() + kStartPatience;
  while (access(path.c_str(), R_OK) != 0) {
    TERSE_RETURN_IF_ERROR(Check());
    if (!go_on()) return absl::CancelledError("stopped");
    if (absl::Now() > deadline) {
      return absl::UnavailableError(absl::StrCat(options_.name, " does not serve: ", EndOfLog()));
    }
    absl::SleepFor(kBetweenLooks);
  }
  return ReadAddresses(path);
}

absl::Status ServingProcess::ReadAddresses(const std::string& path) {
  constexpr int64_t kMostBytes = 1 << 16;
  TERSE_ASSIGN_OR_RETURN(const std::string text, PosixFiles().Read(path, kMostBytes));
  const nlohmann::json ready = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto address = [&ready](const char* key) {
    const bool there = ready.is_object() && ready.contains(key) && ready[key].is_string();
    return there ? ready[key].get<std::string>() : std::string();
  };
  listen_ = address("listen");
  admin_ = address("admin");
  http_ = address("http");
  if (!listen_.empty() && !admin_.empty()) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(path, " does not say where ", options_.name, " serves"));
}

absl::Status ServingProcess::Check() const {
  if (!process_->Wait(absl::ZeroDuration()).has_value()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(options_.name, " ended: ", EndOfLog()));
}

std::string ServingProcess::EndOfLog() const {
  const absl::StatusOr<std::string> log = PosixFiles().Read(absl::StrCat(options_.files, ".log"));
  if (!log.ok()) return std::string(log.status().message());
  return log->substr(log->size() - std::min(log->size(), kLogEnd));
}

absl::optional<int> ServingProcess::End(absl::Duration patience) {
  process_->Signal(SIGTERM);
  return process_->Wait(patience);
}

}  // namespace terse
