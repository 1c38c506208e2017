#include "simulation/relay_processes.h"

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "core/file_system.h"
#include "core/status.h"
#include "simulation/process_facts.h"
#include "simulation/simulation_run.h"
#include "tersectl/admin_client.h"

namespace terse {
namespace {

constexpr absl::Duration kBetweenRunLooks = absl::Milliseconds(20);
constexpr absl::Duration kAnswerPatience = absl::Seconds(60);
constexpr absl::Duration kRelayEndPatience = absl::Seconds(20);

std::string RelayName(size_t relay) { return absl::StrFormat("relay-%03d", relay); }

}  // namespace

absl::StatusOr<std::unique_ptr<RelayProcesses>> RelayProcesses::Start(const Options& options,
                                                                      const std::function<bool()>& go_on) {
  auto all = absl::WrapUnique(new RelayProcesses(options));
  TERSE_RETURN_IF_ERROR(PosixFiles().MakeDirectory(options.directory));
  for (int64_t relay = 0; relay < options.relays; ++relay) TERSE_RETURN_IF_ERROR(all->StartNext(go_on));
  return all;
}

RelayProcesses::~RelayProcesses() {
  for (const auto& process : processes_) process->End(absl::ZeroDuration());
  for (const auto& process : processes_) process->End(kRelayEndPatience);
}

absl::Status RelayProcesses::StartNext(const std::function<bool()>& go_on) {
  const std::string name = RelayName(processes_.size()), folder = FilePath(options_.directory, name);
  const std::string each = absl::StrCat(options_.clients_each);
  ServingProcess::Options process;
  process.name = name;
  process.program = "terse-relay";
  process.files = folder;
  // All clients have the same address, and one more is left for the connection that looks in.
  process.arguments = {"--upstream",
                       options_.coordinator,
                       "--run",
                       options_.run,
                       "--name",
                       name,
                       "--state",
                       folder,
                       "--listen",
                       "127.0.0.1:0",
                       "--quorum",
                       each,
                       "--clients",
                       each,
                       "--mode",
                       options_.mode,
                       "--deadline",
                       absl::StrCat(kSimulatedDeadlineSeconds),
                       "--max-connections-per-address",
                       absl::StrCat(options_.clients_each + 1)};
  TERSE_ASSIGN_OR_RETURN(std::unique_ptr<ServingProcess> started, ServingProcess::Start(process, go_on));
  processes_.push_back(std::move(started));
  return AwaitRun(*processes_.back(), go_on);
}

absl::Status RelayProcesses::AwaitRun(const ServingProcess& relay, const std::function<bool()>& go_on) {
  TERSE_ASSIGN_OR_RETURN(AdminClient admin, AdminClient::Make({relay.admin(), {}}, kAnswerPatience));
  while (true) {
    TERSE_ASSIGN_OR_RETURN(const v1::RunsReply runs, admin.ListRuns());
    if (runs.runs_size() > 0) return absl::OkStatus();
    TERSE_RETURN_IF_ERROR(relay.Check());
    if (!go_on()) return absl::CancelledError("stopped");
    absl::SleepFor(kBetweenRunLooks);
  }
}

std::vector<std::string> RelayProcesses::addresses() const {
  std::vector<std::string> addresses;
  for (const auto& process : processes_) addresses.push_back(process->listen());
  return addresses;
}

absl::Status RelayProcesses::Check() const {
  for (const auto& process : processes_) TERSE_RETURN_IF_ERROR(process->Check());
  return absl::OkStatus();
}

absl::StatusOr<std::vector<RelayFigures>> RelayProcesses::Figures() const {
  std::vector<RelayFigures> all;
  for (const auto& process : processes_) {
    RelayFigures figures;
    figures.name = RelayName(all.size());
    TERSE_ASSIGN_OR_RETURN(AdminClient admin, AdminClient::Make({process->admin(), {}}, kAnswerPatience));
    TERSE_ASSIGN_OR_RETURN(const v1::Status status, admin.GetStatus());
    TERSE_ASSIGN_OR_RETURN(const std::vector<v1::Round> rounds, admin.ListRounds(0, 0));
    figures.below = Summarize(status, rounds);
    TERSE_ASSIGN_OR_RETURN(const ProcessMemory memory, ReadProcessMemory(absl::StrCat(process->pid())));
    figures.peak_kib = memory.peak_kib;
    all.push_back(std::move(figures));
  }
  return all;
}

}  // namespace terse
