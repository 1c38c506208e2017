#include "simulation/simulation.h"

#include <google/protobuf/util/message_differencer.h>

#include <memory>
#include <numeric>
#include <thread>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "coordinator/rpc/coordinator_thread.h"
#include "core/file_system.h"
#include "core/median.h"
#include "core/status.h"
#include "proto/run_config_convert.h"
#include "simulation/host_processes.h"
#include "simulation/process_facts.h"
#include "tersectl/admin_client.h"

namespace terse {
namespace {

constexpr absl::Duration kBetweenLooks = absl::Milliseconds(100);
constexpr char kPaused[] = "paused";  // the phase of a run that opens no round
constexpr char kPauseReason[] = "the simulation is not running";

bool IsOver(absl::string_view state) { return state == "finished" || state == "stopped"; }

double MedianRoundSeconds(const std::vector<v1::Round>& rounds) {
  std::vector<double> seconds;
  for (const v1::Round& round : rounds) {
    if (round.state() != "committed") continue;
    seconds.push_back(static_cast<double>(round.committed_us() - round.opened_us()) * 1e-6);
  }
  return seconds.empty() ? 0 : MedianOf(absl::MakeSpan(seconds));
}

class Simulation {
 public:
  Simulation(const SimulationOptions& options, const RunConfig& run, const SimulationEvents& events)
      : options_(options), run_(run), events_(events) {}
  ~Simulation() { EndProcesses(); }

  absl::StatusOr<SimulationResult> Run(const RunLearningFactory& make_learning) {
    const absl::Status ran = RunToEnd(make_learning);
    EndProcesses();
    if (coordinator_ == nullptr) return ran;
    absl::StatusOr<SimulationResult> result = ran.ok() ? Result() : ran;
    const absl::Status stopped = coordinator_->Stop();
    return result.ok() && !stopped.ok() ? stopped : result;
  }

 private:
  absl::Status RunToEnd(const RunLearningFactory& make_learning) {
    TERSE_RETURN_IF_ERROR(StartCoordinator(make_learning));
    TERSE_RETURN_IF_ERROR(PrepareRun());
    if (over_) return absl::OkStatus();
    const absl::Time start = absl::Now();
    TERSE_RETURN_IF_ERROR(StartRelays());
    TERSE_RETURN_IF_ERROR(StartProcesses());
    join_seconds_ = absl::ToDoubleSeconds(absl::Now() - start);
    TERSE_RETURN_IF_ERROR(admin_->Resume().status());
    TERSE_RETURN_IF_ERROR(AwaitEnd());
    if (relays_ == nullptr) return absl::OkStatus();
    TERSE_ASSIGN_OR_RETURN(relay_figures_, relays_->Figures());
    return absl::OkStatus();
  }

  absl::Status StartCoordinator(const RunLearningFactory& make_learning) {
    TERSE_RETURN_IF_ERROR(PosixFiles().MakeDirectory(options_.directory));
    CoordinatorOptions serving;
    serving.state_directory = FilePath(options_.directory, "coordinator");
    serving.data_directory = options_.data;
    serving.listen = "127.0.0.1:0";
    serving.max_connections_per_address = options_.run.clients + 1;
    coordinator_ = std::make_unique<CoordinatorThread>(serving, make_learning);
    if (coordinator_->addresses().fleet.empty()) return coordinator_->Stop();
    TERSE_ASSIGN_OR_RETURN(AdminClient admin, AdminClient::Make({coordinator_->addresses().admin, {}},
                                                                absl::Seconds(60), options_.run.config.name()));
    admin_ = std::make_unique<AdminClient>(std::move(admin));
    return absl::OkStatus();
  }

  // The run is there and opens no round: the clients join first, and all may be drawn for the next one.
  absl::Status PrepareRun() {
    TERSE_ASSIGN_OR_RETURN(const v1::RunsReply held, admin_->ListRuns());
    const auto is_ours = [this](const v1::Run& run) { return run.name() == options_.run.config.name(); };
    if (held.runs_size() > 0 && absl::c_none_of(held.runs(), is_ours)) {
      return absl::FailedPreconditionError(absl::StrCat(options_.directory, " has run '", held.runs(0).name(),
                                                        "', not '", options_.run.config.name(),
                                                        "'; give another --state"));
    }
    if (held.runs_size() == 0)
      return admin_->CreateRun(options_.run.config, options_.run.model_file, /*paused=*/true).status();
    TERSE_ASSIGN_OR_RETURN(const v1::Status status, admin_->GetStatus());
    if (!google::protobuf::util::MessageDifferencer::Equals(status.config(), options_.run.config)) {
      return absl::FailedPreconditionError(
          absl::StrCat(options_.directory, " has run '", options_.run.config.name(),
                       "' with other settings than this one's; give another --state, or the same run file, --clients, "
                       "--cohort, --relays and --rounds"));
    }
    over_ = IsOver(status.state());
    if (over_) return absl::OkStatus();
    if (status.state() == "active") TERSE_RETURN_IF_ERROR(admin_->Pause(kPauseReason).status());
    const absl::Status aborted = admin_->AbortRound("the simulation ended in it").status();
    return absl::IsFailedPrecondition(aborted) ? absl::OkStatus() : aborted;  // no round is open
  }

  absl::Status StartRelays() {
    const SimulatedRun& run = options_.run;
    if (run.relays == 0) return absl::OkStatus();
    RelayProcesses::Options relays;
    relays.coordinator = coordinator_->addresses().fleet;
    relays.run = run.config.name();
    relays.directory = FilePath(options_.directory, "relays");
    relays.relays = run.relays;
    relays.clients_each = run.clients / run.relays;
    relays.mode = run.relay_mode;
    TERSE_ASSIGN_OR_RETURN(relays_, RelayProcesses::Start(relays, [this] { return Stops() == 0; }));
    return absl::OkStatus();
  }

  // Whom the clients connect to: the coordinator or the relays.
  std::string AddressesForClients() const {
    return relays_ == nullptr ? coordinator_->addresses().fleet : absl::StrJoin(relays_->addresses(), ",");
  }

  absl::Status StartProcesses() {
    HostProcesses::Options hosts;
    hosts.clients = options_.run.clients;
    hosts.processes = options_.processes;
    hosts.arguments = {"--coordinators", AddressesForClients(),
                       "--fleet",        absl::StrCat(options_.run.clients),
                       "--run",          options_.run.config.name(),
                       "--state",        FilePath(options_.directory, "clients"),
                       "--device",       options_.device,
                       "--threads",      absl::StrCat(options_.threads)};
    if (!options_.data.empty()) hosts.arguments.insert(hosts.arguments.end(), {"--data", options_.data});
    if (!options_.trainer.empty()) hosts.arguments.insert(hosts.arguments.end(), {"--trainer", options_.trainer});
    hosts.arguments.insert(hosts.arguments.end(), {"--trainer-seconds", absl::StrCat(options_.trainer_seconds)});
    hosts.trainer_sockets = options_.trainer_sockets;
    TERSE_ASSIGN_OR_RETURN(processes_, HostProcesses::Start(hosts));
    return processes_->Join([this] { return Stops() == 0; }, events_.on_joined);
  }

  absl::Status AwaitEnd() {
    TERSE_ASSIGN_OR_RETURN(const v1::Status start, admin_->GetStatus());
    absl::Status watched;
    absl::Notification ended;
    std::thread watch([&, newest = uint64_t{0}]() mutable {
      watched = admin_->Watch(1, [&](const v1::Round& round) {
        // A round is told again once it is evaluated, and an aborted one is none of the run's.
        if (round.id() <= newest || round.state() != "committed") return;
        newest = round.id();
        events_.on_round(round, newest <= start.version());
      });
      ended.Notify();
    });
    absl::Status listened;
    while (listened.ok() && !(ended.HasBeenNotified() && processes_->done())) {
      listened = processes_->Listen(kBetweenLooks);
      if (listened.ok() && relays_ != nullptr) listened = relays_->Check();
      if (ended.HasBeenNotified() && !watched.ok()) break;
      if (listened.ok() && Stops() > 0) listened = Pause();
    }
    if (!listened.ok()) admin_->Cancel();
    watch.join();
    return listened.ok() ? watched : listened;
  }

  // Lets the open round end. CANCELLED once it has, or the caller waits no longer.
  absl::Status Pause() {
    const absl::Status stopped =
        absl::CancelledError(absl::StrCat("stopped; the same command goes on from ", options_.directory));
    const absl::StatusOr<std::string> paused = admin_->Pause(kPauseReason);
    while (paused.ok() && Stops() < 2) {
      TERSE_ASSIGN_OR_RETURN(const v1::Status status, admin_->GetStatus());
      if (status.phase() == kPaused || IsOver(status.state())) break;
      TERSE_RETURN_IF_ERROR(processes_->Listen(kBetweenLooks));
    }
    return stopped;
  }

  absl::StatusOr<SimulationResult> Result() {
    SimulationResult result;
    AdminClient& admin = *admin_;
    TERSE_ASSIGN_OR_RETURN(const v1::Status status, admin.GetStatus());
    TERSE_ASSIGN_OR_RETURN(result.rounds, admin.ListRounds(0, 0));
    result.summary = Summarize(status, result.rounds);
    result.model_hash = absl::BytesToHexString(status.model_hash());
    result.clients = options_.run.clients;
    result.cohort = run_.rounds.cohort;
    result.join_seconds = join_seconds_;
    result.round_seconds = MedianRoundSeconds(result.rounds);
    result.host_kib = peaks_;
    result.relays = relay_figures_;
    TERSE_ASSIGN_OR_RETURN(const ProcessMemory memory, ReadProcessMemory("self"));
    result.coordinator_kib = memory.peak_kib;
    return result;
  }

  int Stops() const { return events_.stops == nullptr ? 0 : events_.stops->load(); }

  // They go before the coordinator: their clients leave whole states.
  void EndProcesses() {
    if (processes_ != nullptr) peaks_ = processes_->peak_kib();
    processes_ = nullptr;
    relays_ = nullptr;
  }

  const SimulationOptions& options_;
  const RunConfig& run_;
  const SimulationEvents& events_;
  std::unique_ptr<CoordinatorThread> coordinator_;
  std::unique_ptr<AdminClient> admin_;
  std::unique_ptr<RelayProcesses> relays_;  // nullptr: there are none
  std::unique_ptr<HostProcesses> processes_;
  std::vector<int64_t> peaks_;
  std::vector<RelayFigures> relay_figures_;
  double join_seconds_ = 0;
  bool over_ = false;  // the run is finished already
};

}  // namespace

int64_t SimulationResult::peak_kib() const {
  const int64_t hosts = std::accumulate(host_kib.begin(), host_kib.end(), coordinator_kib);
  return std::accumulate(relays.begin(), relays.end(), hosts,
                         [](int64_t sum, const RelayFigures& relay) { return sum + relay.peak_kib; });
}

absl::StatusOr<SimulationResult> RunSimulation(const SimulationOptions& options,
                                               const RunLearningFactory& make_learning,
                                               const SimulationEvents& events) {
  TERSE_ASSIGN_OR_RETURN(const RunConfig run, ToCore(options.run.config));
  return Simulation(options, run, events).Run(make_learning);
}

}  // namespace terse
