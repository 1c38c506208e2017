#include "client/rpc/daemon.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <memory>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/time/clock.h"
#include "client/rpc/grpc_link.h"
#include "client/rpc/reset_state.h"
#include "client/session.h"
#include "core/clock.h"
#include "core/file_system.h"
#include "core/random.h"
#include "core/status.h"
#include "proto/channel_settings.h"
#include "spdlog/sinks/stdout_color_sinks.h"
#include "spdlog/spdlog.h"
#include "storage/client_state.h"
#include "storage/module_file.h"

namespace terse {
namespace {

constexpr absl::Duration kConnectTimeout = absl::Seconds(kConnectTimeoutSeconds);
constexpr absl::Duration kMaxBackoff = absl::Seconds(60);

std::atomic<bool> stop_requested{false};

void OnSignal(int) { stop_requested.store(true); }

// Waits for `wait` or until the process should stop.
void SleepUnlessStopped(absl::Duration wait) {
  const absl::Time until = absl::Now() + wait;
  while (!stop_requested.load() && absl::Now() < until) {
    absl::SleepFor(std::min(absl::Milliseconds(100), until - absl::Now()));
  }
}

// Exponential, with full jitter, so that a fleet does not come back all at once after a restart of the coordinator.
class Backoff {
 public:
  Backoff(absl::Duration first, uint64_t seed) : first_(first), random_(seed) {}
  void Reset() { base_ = first_; }
  absl::Duration Next() {
    const absl::Duration wait = base_ * random_.Uniform(0.5, 1.0);
    base_ = std::min(base_ * 2, kMaxBackoff);
    return wait;
  }

 private:
  const absl::Duration first_;
  Random random_;
  absl::Duration base_ = first_;
};

// The state directory and the session on it. After trouble with the disk both are made again: what the session believes
// may not be what is stored.
class Workplace {
 public:
  Workplace(const DaemonOptions* options, TrainerFactory make_trainer)
      : options_(options), make_trainer_(std::move(make_trainer)) {}

  // Opens the state unless it is open. Statuses of ClientState::Open.
  absl::Status Open() {
    if (session_ != nullptr) return absl::OkStatus();
    absl::StatusOr<std::unique_ptr<ClientState>> state = ClientState::Open(options_->state_directory);
    if (absl::IsDataLoss(state.status()) && options_->reset_state) {
      TERSE_RETURN_IF_ERROR(Reset(state.status()));
      state = ClientState::Open(options_->state_directory);
    }
    if (!state.ok()) return state.status();
    state_ = *std::move(state);
    session_ = std::make_unique<ClientSession>(SessionOptions());
    return absl::OkStatus();
  }
  void Close() {
    session_.reset();
    state_.reset();
  }
  // nullptr while closed.
  ClientSession* session() const { return session_.get(); }

 private:
  absl::Status Reset(const absl::Status& damage) {
    spdlog::warn("{}", std::string(damage.message()));
    TERSE_ASSIGN_OR_RETURN(const RemovedState removed, RemoveClientState(PosixFiles(), options_->state_directory));
    spdlog::warn("removed {} files, {} bytes, from {}: {}; the residual that they held is lost, and counted",
                 removed.files, removed.bytes, options_->state_directory, removed.names);
    residual_lost_ = true;
    return absl::OkStatus();
  }

  ClientSession::Options SessionOptions() {
    ClientSession::Options session;
    session.name = options_->name;
    session.run = options_->run;
    session.process = Id128::Random();
    session.state = state_.get();
    session.residual_lost = residual_lost_;
    session.make_trainer = make_trainer_;
    session.allow_models = options_->allow_models;
    session.clock = &clock_;
    session.keep_going = [] { return !stop_requested.load(); };
    session.log = [](bool warn, const std::string& line) {
      spdlog::log(warn ? spdlog::level::warn : spdlog::level::info, "{}", line);
    };
    return session;
  }

  const DaemonOptions* const options_;
  const TrainerFactory make_trainer_;
  SystemClock clock_;
  bool residual_lost_ = false;
  std::unique_ptr<ClientState> state_;
  std::unique_ptr<ClientSession> session_;
};

// One connection, from check-in to its end.
absl::Status ServeOnce(const DaemonOptions& options, ClientSession* session, bool* connected) {
  TERSE_ASSIGN_OR_RETURN(std::unique_ptr<GrpcLink> link, GrpcLink::Connect(options.coordinator, kConnectTimeout,
                                                                           options.keepalive_seconds, &stop_requested));
  *connected = true;
  const absl::Status status = session->Run(link.get());
  if (status.ok() || absl::IsCancelled(status)) link->Close();
  const WireBytes wire = link->Wire();
  spdlog::info("connection closed: {} bytes sent and {} received on the wire", wire.sent, wire.received);
  return status;
}

// Until a status that waiting does not change.
absl::Status Serve(const DaemonOptions& options, Workplace* workplace) {
  const Id128 seed = Id128::Random();
  Backoff backoff(absl::Seconds(options.first_backoff_seconds), seed.low);
  while (!stop_requested.load()) {
    bool connected = false;
    absl::Status status = workplace->Open();
    const bool is_open = status.ok();
    if (is_open) status = ServeOnce(options, workplace->session(), &connected);
    // A connection that is gone is UNAVAILABLE; a session turns all trouble with its disk into RESOURCE_EXHAUSTED.
    if (!IsDiskTrouble(status)) return status;
    if (connected) backoff.Reset();
    const absl::Duration wait = backoff.Next();
    spdlog::warn("{}; trying again in {:.1f} s", std::string(status.message()), absl::ToDoubleSeconds(wait));
    if (!is_open || absl::IsResourceExhausted(status)) workplace->Close();
    SleepUnlessStopped(wait);
  }
  return absl::CancelledError("stopped by a signal");
}

}  // namespace

int ParseDaemonOptions(int argc, char** argv, DaemonOptions* options) {
  CLI::App app("terse-client: trains on this machine's data and streams compressed updates to a coordinator.");
  app.add_option("--coordinator", options->coordinator, "host:port of the coordinator")->required();
  app.add_option("--name", options->name, "name of this client, unique in the fleet")->required();
  app.add_option("--state", options->state_directory, "directory that keeps the residual and the optimizer's state")
      ->required();
  app.add_option("--run", options->run, "run to join; needed when the coordinator serves several");
  app.add_option(
         "--allow-model", options->allow_models,
         "SHA-256 of a TorchScript model that this client may train, as `tersectl run create` prints it; may be "
         "given several times. Others are refused: such a model is code")
      ->check([](const std::string& hash) {
        return IsModuleHash(hash) ? "" : "'" + hash + "' is no SHA-256: 64 digits 0-9 and a-f";
      });
  app.add_flag("--reset-state", options->reset_state,
               "when --state is damaged, remove what is in it and start afresh; the lost residual is counted");
  app.add_option("--data", options->data_directory, "directory of the data set; without it, an embedded one")
      ->check(CLI::ExistingDirectory);
  app.add_option("--device", options->device, "where to train")
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}))
      ->capture_default_str();
  app.add_option("--threads", options->threads, "threads of LibTorch")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--reconnect-after", options->first_backoff_seconds,
                 "seconds from a lost connection to the next attempt; doubles up to 60 while attempts fail")
      ->check(CLI::Range(0.001, 60.0))
      ->capture_default_str();
  app.add_option("--keepalive", options->keepalive_seconds,
                 "seconds of silence after which the connection is probed; below 60 the coordinator needs it too")
      ->check(CLI::Range(kLeastKeepaliveSeconds, 86400.0))
      ->capture_default_str();
  app.add_option("--log-level", options->log_level, "how much to log")
      ->check(CLI::IsMember({"debug", "info", "warn", "error"}))
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitFinished : kExitUsage;
  }
  return -1;
}

int RunDaemon(const DaemonOptions& options, TrainerFactory make_trainer) {
  spdlog::set_default_logger(spdlog::stderr_color_mt("client"));
  spdlog::set_pattern("%Y-%m-%d %H:%M:%S.%e %^%l%$ " + options.name + ": %v");
  spdlog::set_level(spdlog::level::from_str(options.log_level));
  std::signal(SIGINT, OnSignal);
  std::signal(SIGTERM, OnSignal);
  std::signal(SIGPIPE, SIG_IGN);
  if (const absl::Status name = CheckClientName(options.name); !name.ok()) {
    spdlog::error("{}", std::string(name.message()));
    return kExitUsage;
  }
  Workplace workplace(&options, std::move(make_trainer));
  absl::Status status = workplace.Open();
  if (status.ok()) status = Serve(options, &workplace);
  const bool stopped = absl::IsCancelled(status) && stop_requested.load();
  // After a failed sync nothing may be written: it could pass for durable.
  if (workplace.session() != nullptr && !IsSyncFailure(status)) {
    const absl::Status flushed = workplace.session()->Flush();
    if (!flushed.ok() && (status.ok() || stopped)) status = flushed;
  }
  if (status.ok()) return kExitFinished;
  if (absl::IsCancelled(status)) {
    spdlog::info("stopped; the state in {} is whole", options.state_directory);
    return kExitFinished;
  }
  spdlog::error("{}", std::string(status.message()));
  return kExitFailed;
}

}  // namespace terse
