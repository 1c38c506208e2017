#include "coordinator/rpc/server.h"

#include <sys/eventfd.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <functional>
#include <iostream>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "coordinator/log_components.h"
#include "coordinator/rpc/audited_admin_service.h"
#include "coordinator/rpc/evaluator_setup.h"
#include "coordinator/rpc/fleet_service.h"
#include "coordinator/rpc/lease_keeper.h"
#include "coordinator/rpc/listener.h"
#include "coordinator/rpc/model_policy.h"
#include "coordinator/rpc/model_sandbox.h"
#include "coordinator/rpc/relay_half.h"
#include "coordinator/rpc/run_check.h"
#include "coordinator/rpc/run_registry.h"
#include "coordinator/rpc/sandboxed_learning.h"
#include "coordinator/rpc/standby.h"
#include "coordinator/rpc/web_server.h"
#include "coordinator/web/command_api.h"
#include "core/cli/log_options.h"
#include "core/file_system.h"
#include "core/log/recent_lines.h"
#include "core/status.h"
#include "core/version.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/health_check_service_interface.h"
#include "security/connection_failure.h"
#include "security/transport.h"
#include "storage/postgres_run_stores.h"
#include "storage/state_directory.h"

namespace terse {
namespace {

// Operators are few, and their files are among kFilesForOthers.
constexpr Acceptor::Bounds kAdminBounds = {64, 32};

// An eventfd that the handler of SIGINT and SIGTERM writes to.
int stop_asked = -1;

void OnSignal(int) {
  const int saved = errno;
  eventfd_write(stop_asked, 1);
  errno = saved;
}

// Signals are heard by a handler and answered by a thread, which may lock and log. A handler, because a library may
// have threads that take signals before main begins, as OpenBLAS has: blocking signals here would not keep them from
// ending the process there. One at a time.
class SignalWaiter {
 public:
  explicit SignalWaiter(std::function<void()> on_signal) {
    stop_asked = eventfd(0, EFD_CLOEXEC);
    for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, OnSignal);
    thread_ = std::thread([this, on_signal = std::move(on_signal)] {
      eventfd_t times = 0;
      while (eventfd_read(stop_asked, &times) != 0 && errno == EINTR) {
      }
      if (!ending_.load()) on_signal();
    });
  }
  ~SignalWaiter() {
    ending_.store(true);
    OnSignal(0);
    thread_.join();
    for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_DFL);
    close(stop_asked);
  }

 private:
  std::atomic<bool> ending_{false};
  std::thread thread_;
};

absl::Status WriteReadyFile(const std::string& path, const CoordinatorAddresses& addresses) {
  if (path.empty()) return absl::OkStatus();
  const std::string json = absl::StrCat("{\"listen\": \"", addresses.fleet, "\", \"admin\": \"", addresses.admin,
                                        "\", \"http\": \"", addresses.http, "\"}\n");
  return ReplaceFile(PosixFiles(), path, {json});
}

// Turns the runs' conditions into the process's health, and ends the process when no run can go on.
class Watchman {
 public:
  explicit Watchman(CoordinatorEnding* ending) : ending_(ending) {}

  // Once, before the runs start; they and the health service must outlive the last change.
  void Watch(const RunRegistry* runs, grpc::HealthCheckServiceInterface* health) {
    absl::MutexLock lock(&mutex_);
    runs_ = runs;
    health_ = health;
    Update();
  }
  void OnChange() {
    absl::MutexLock lock(&mutex_);
    Update();
  }

 private:
  void Update() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const std::vector<RunHost*> runs = runs_->runs();
    std::set<std::string> gone = std::move(told_);
    told_.clear();
    size_t serving = 0, down = 0;
    std::string trouble;
    for (const RunHost* run : runs) {
      const RunHost::Condition condition = run->condition();
      serving += condition == RunHost::Condition::kServing;
      down += condition == RunHost::Condition::kDown;
      if (condition == RunHost::Condition::kDown) trouble = absl::StrCat("run '", run->name(), "' is ", run->Trouble());
      const std::string service = absl::StrCat(kFleetService, "/", run->name());
      Tell(service, condition == RunHost::Condition::kServing);
      told_.insert(service);
      gone.erase(service);
    }
    for (const std::string& service : gone) Tell(service, false);
    Tell("", serving == runs.size());
    Tell(kFleetService, serving == runs.size());
    if (down > 0 && down == runs.size()) ending_->Decide(absl::DataLossError(trouble));
  }
  void Tell(const std::string& service, bool serving) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    health_->SetServingStatus(service, serving);
  }

  static constexpr char kFleetService[] = "terse.v1.Fleet";
  CoordinatorEnding* const ending_;
  absl::Mutex mutex_;
  const RunRegistry* runs_ ABSL_GUARDED_BY(mutex_) = nullptr;
  grpc::HealthCheckServiceInterface* health_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::set<std::string> told_ ABSL_GUARDED_BY(mutex_);  // the runs' services, of which the health service knows
};

// Whatever is done after a failed sync may take what the kernel dropped for written, so nothing is.
[[noreturn]] void EndAtOnce(const absl::Status& status) {
  Log(LogLevel::kError, kServerLog, {},
      absl::StrCat(status.message(), "; the process ends, and its next start reads what the disk holds"));
  std::_Exit(EXIT_FAILURE);
}

// The lock on the state directory, unless the run in it has it.
absl::StatusOr<std::unique_ptr<DirectoryLock>> LockState(const std::string& directory) {
  TERSE_RETURN_IF_ERROR(PosixFiles().MakeDirectory(directory));
  if (HoldsRun(PosixFiles(), directory)) return std::unique_ptr<DirectoryLock>();
  return PosixFiles().Lock(directory);
}

absl::StatusOr<std::shared_ptr<RunStores>> OpenStores(const CoordinatorOptions& options) {
  if (options.store.empty()) return std::shared_ptr<RunStores>(RunsInDirectories(options.state_directory));
  TERSE_ASSIGN_OR_RETURN(std::shared_ptr<RunStores> stores,
                         RunsInPostgres(options.store, options.state_directory, absl::Seconds(options.lease_seconds),
                                        options.relay == nullptr ? "" : options.relay->name()));
  Log(LogLevel::kInfo, kServerLog, {}, absl::StrCat("the runs are in ", stores->place()));
  return stores;
}

void LogRuns(const RunRegistry& runs, const CoordinatorAddresses& addresses, const CoordinatorOptions& options) {
  const bool is_relay = options.relay != nullptr;
  Log(LogLevel::kInfo, kServerLog, {},
      absl::StrCat(is_relay ? "terse-relay " : "terse-coordinator ", kVersion, "; clients: ", addresses.fleet,
                   ", operators: ", addresses.admin));
  if (!addresses.http.empty()) LogDashboard(addresses.http, options.state_directory);
  if (runs.runs().empty() && is_relay) {
    Log(LogLevel::kInfo, kServerLog, {}, "no run yet: it comes from the coordinator above");
  } else if (runs.runs().empty()) {
    Log(LogLevel::kWarn, kServerLog, {}, "no run yet: create one with `tersectl run create --run-file FILE`");
  }
  for (const RunHost* run : runs.runs()) {
    Log(LogLevel::kInfo, kServerLog, {run->name()},
        absl::StrCat("serving ", run->codec().layout().parameters(), " parameters, codec ", run->config().codec.name,
                     ", at version ", run->View().head.version));
  }
}

absl::StatusOr<std::shared_ptr<Gatekeeper>> OpenGate(const CoordinatorOptions& options, Clock* clock,
                                                     AuditTrail* audit) {
  if (options.transport.tls_directory.empty()) return std::shared_ptr<Gatekeeper>();
  const RefusalSink on_refusal = [audit](const CertificateFacts* peer, absl::string_view method,
                                         const std::string& host, const absl::Status& why) {
    if (audit != nullptr) audit->Refused(peer, method, host, why);
  };
  const HandshakeSink on_failed_handshake = [audit](const std::string& host, const std::string& reason) {
    if (audit != nullptr) audit->HandshakeFailed(host, reason);
  };
  return Gatekeeper::Open({options.transport.tls_directory, clock, options.budgets, on_refusal, on_failed_handshake,
                           RoleWith(options.transport, Role::kCoordinator)});
}

std::string AdminAddress(const CoordinatorOptions& options) {
  if (!options.admin.empty()) return options.admin;
  return UnixSocketAddress(absl::StrCat(options.state_directory, "/", kAdminSocket));
}

// Everything between a locked state directory and the end of the process, in the order in which it must go away again.
absl::Status ServeLocked(const CoordinatorOptions& options, const std::shared_ptr<RunStores>& stores,
                         const RunLearningFactory& make_learning, CoordinatorEnding* ending,
                         const CoordinatorReady& on_ready) {
  // First, because it raises the number of files that everything after it may open.
  TERSE_ASSIGN_OR_RETURN(const Acceptor::Bounds bounds,
                         ConnectionBounds(options.max_connections, options.max_connections_per_address));
  SystemClock clock;
  const auto end_in_order = [ending] {
    Log(LogLevel::kInfo, kServerLog, {}, "stopping: an operator asked for it");
    ending->Decide(absl::OkStatus());
  };
  TERSE_ASSIGN_OR_RETURN(ModelPolicy models, ModelPolicy::Parse(options.models.allow));
  TERSE_ASSIGN_OR_RETURN(const EvaluatorFactory evaluators,
                         SetUpEvaluators(options, [ending] { return ending->decided(); }));
  if (options.relay != nullptr) TERSE_RETURN_IF_ERROR(options.relay->ReadState(*stores));
  Watchman watchman(ending);
  Metrics metrics;
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<AuditTrail> audit,
                         AuditTrail::Open({options.state_directory, options.audit_file, &clock, EndAtOnce}));
  TERSE_ASSIGN_OR_RETURN(
      const std::unique_ptr<RunRegistry> runs,
      RunRegistry::Open({options.state_directory, stores, options.data_directory, make_learning,
                         SandboxedModuleLearning(options, [ending] { return ending->decided(); }), evaluators, &clock,
                         [&watchman] { watchman.OnChange(); }, EndAtOnce,
                         [&metrics](const std::string& run, std::unique_ptr<RunStore> store) {
                           return metrics.Meter(run, std::move(store));
                         },
                         options.trace_rounds, options.relay == nullptr ? RelayHosting() : options.relay->hosting()},
                        options.run_files));
  TERSE_ASSIGN_OR_RETURN(const std::shared_ptr<Gatekeeper> gatekeeper, OpenGate(options, &clock, audit.get()));
  // gRPC lets go of it when it likes, and the clock and the audit log are ours.
  const absl::Cleanup close_gate = [&gatekeeper] {
    if (gatekeeper != nullptr) gatekeeper->Close();
  };
  const auto accepted = std::make_shared<AcceptedSockets>();
  WriteBudget writes;
  FleetService fleet_service(
      {runs.get(), gatekeeper, accepted.get(), absl::Seconds(options.unread_timeout_seconds), &writes});
  AuditedAdminService admin_service(
      runs.get(), {options.state_directory, &clock, gatekeeper == nullptr ? nullptr : gatekeeper->files()},
      end_in_order, std::move(models), audit.get());
  TERSE_ASSIGN_OR_RETURN(Listener fleet,
                         Listen({options.listen, "--listen", bounds, "--max-connections", options.keepalive_seconds,
                                 options.transport.insecure, gatekeeper, accepted},
                                &fleet_service));
  TERSE_ASSIGN_OR_RETURN(Listener admin, Listen({AdminAddress(options), "--admin", kAdminBounds, "",
                                                 options.keepalive_seconds, options.transport.insecure, gatekeeper},
                                                &admin_service));
  TERSE_ASSIGN_OR_RETURN(std::unique_ptr<HttpServer> web,
                         StartWebServer({options.http, options.transport.insecure, gatekeeper, options.state_directory,
                                         audit.get(), &admin_service, runs.get(), &metrics, &clock}));
  const CoordinatorAddresses addresses = {fleet.address, admin.address, web == nullptr ? "" : web->url()};
  watchman.Watch(runs.get(), fleet.server->GetHealthCheckService());
  LogRuns(*runs, addresses, options);
  runs->Start();
  // A process that has read the ready file may create a run, so the runs are started before.
  const absl::Status ready = WriteReadyFile(options.ready_file, addresses);
  if (!ready.ok()) ending->Decide(ready);
  if (on_ready) on_ready(addresses);
  if (options.relay != nullptr) options.relay->Begin(runs.get(), ending);

  absl::Status status = ending->Wait();
  if (options.relay != nullptr) options.relay->End();
  web.reset();
  status.Update(runs->Stop());
  admin_service.Close();
  fleet.acceptor.reset();
  admin.acceptor.reset();
  const auto deadline = absl::ToChronoTime(absl::Now() + absl::Seconds(2));
  fleet.server->Shutdown(deadline);
  admin.server->Shutdown(deadline);
  fleet.server->Wait();
  admin.server->Wait();
  return status;
}

// Listens on the addresses of clients and operators until the lease is this coordinator's; health checks hear
// NOT_SERVING. CANCELLED when the process is to end before.
absl::Status StandBy(const CoordinatorOptions& options, StoreLease& lease, CoordinatorEnding* ending) {
  SystemClock clock;
  std::deque<StandbyService> services;  // gRPC takes one for each server
  std::vector<Listener> listeners;
  std::shared_ptr<Gatekeeper> gatekeeper;
  const absl::Cleanup close_gate = [&gatekeeper] {
    if (gatekeeper != nullptr) gatekeeper->Close();
  };
  const auto listen = [&]() -> absl::Status {
    TERSE_ASSIGN_OR_RETURN(const Acceptor::Bounds bounds,
                           ConnectionBounds(options.max_connections, options.max_connections_per_address));
    // The audit log does not hear of refusals here, because a standby does nothing for anybody.
    TERSE_ASSIGN_OR_RETURN(gatekeeper, OpenGate(options, &clock, nullptr));
    for (const auto& [address, option] :
         {std::pair(options.listen, "--listen"), std::pair(AdminAddress(options), "--admin")}) {
      TERSE_ASSIGN_OR_RETURN(Listener listener,
                             Listen({address, option, bounds, "", options.keepalive_seconds, options.transport.insecure,
                                     gatekeeper, nullptr, &services.emplace_back()},
                                    nullptr));
      listener.server->GetHealthCheckService()->SetServingStatus(false);
      listeners.push_back(std::move(listener));
    }
    return absl::OkStatus();
  };
  absl::Status listening;
  const absl::Status taken = AwaitLease(
      lease, [&](absl::Duration wait) { return listening.ok() && !ending->WaitFor(wait); },
      [&](const std::string& holder) {
        Log(LogLevel::kInfo, kServerLog, {},
            absl::StrCat("standing by: ", holder,
                         " serves the runs; this process takes over when it does not renew its "
                         "lease for ",
                         absl::FormatDuration(lease.duration())));
        if (listeners.empty()) listening = listen();
        for (StandbyService& service : services) service.SetHolder(holder);
      });
  for (Listener& listener : listeners) {
    listener.acceptor.reset();
    listener.server->Shutdown(absl::ToChronoTime(absl::Now()));
    listener.server->Wait();
  }
  return listening.ok() ? taken : listening;
}

// ServeLocked, while the lease of the store is this coordinator's.
absl::Status ServeWithLease(const CoordinatorOptions& options, const std::shared_ptr<RunStores>& stores,
                            const RunLearningFactory& make_learning, CoordinatorEnding* ending,
                            const CoordinatorReady& on_ready) {
  const absl::Status waited = StandBy(options, *stores->lease(), ending);
  if (absl::IsCancelled(waited)) return ending->Wait();
  TERSE_RETURN_IF_ERROR(waited);
  const LeaseKeeper keeper(stores->lease(), [ending](const absl::Status& lost) { ending->Decide(lost); });
  return ServeLocked(options, stores, make_learning, ending, on_ready);
}

// Says why, where something failed.
int ExitCode(const absl::Status& status) {
  if (status.ok()) return EXIT_SUCCESS;
  Log(LogLevel::kError, kServerLog, {}, status.message());
  return EXIT_FAILURE;
}

}  // namespace

void CoordinatorEnding::Decide(const absl::Status& status) {
  absl::MutexLock lock(&mutex_);
  if (!status_.has_value()) status_ = status;
}

absl::Status CoordinatorEnding::Wait() {
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(this, &CoordinatorEnding::IsDecided));
  return *status_;
}

absl::Status ServeRuns(const CoordinatorOptions& options, const RunLearningFactory& make_learning,
                       CoordinatorEnding* ending, const CoordinatorReady& on_ready) {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<DirectoryLock> lock, LockState(options.state_directory));
  TERSE_ASSIGN_OR_RETURN(const std::shared_ptr<RunStores> stores, OpenStores(options));
  const auto serve = stores->lease() == nullptr ? ServeLocked : ServeWithLease;
  return serve(options, stores, make_learning, ending, on_ready);
}

int RunCoordinator(const CoordinatorOptions& options, const RunLearningFactory& make_learning,
                   const std::function<absl::Status()>& prepare) {
  if (!options.sandboxed.empty()) return ServeLearning(make_learning, options.data_directory);
  ConfigureLog(options.log);
  if (!options.http.empty()) KeepRecentLines(kMostLogLines);
  QuietGrpc();
  std::signal(SIGPIPE, SIG_IGN);
  CoordinatorEnding ending;
  SignalWaiter signals([&ending] {
    Log(LogLevel::kInfo, kServerLog, {}, "stopping: a signal asked for it");
    ending.Decide(absl::OkStatus());
  });
  const auto stopped = [&ending] { return ending.decided(); };
  if (options.check) return ExitCode(CheckRuns(options, make_learning, stopped, std::cout));
  // To systemd, which waits for it (Type=notify) before it starts what needs this one; to nobody where there is none.
  const CoordinatorReady tell_service_manager = [](const CoordinatorAddresses&) { sd_notify(0, "READY=1"); };
  absl::Status status = prepare ? prepare() : absl::OkStatus();
  if (status.ok()) status = ServeRuns(options, make_learning, &ending, tell_service_manager);
  if (status.ok()) {
    Log(LogLevel::kInfo, kServerLog, {}, absl::StrCat("stopped; the runs in ", options.state_directory, " are whole"));
  }
  return ExitCode(status);
}

}  // namespace terse
