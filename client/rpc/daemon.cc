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
#include "client/session.h"
#include "core/clock.h"
#include "core/random.h"
#include "core/status.h"
#include "spdlog/sinks/stdout_color_sinks.h"
#include "spdlog/spdlog.h"
#include "storage/client_state.h"

namespace terse {
namespace {

constexpr absl::Duration kConnectTimeout = absl::Seconds(10);
constexpr absl::Duration kFirstBackoff = absl::Milliseconds(500);
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
  explicit Backoff(uint64_t seed) : random_(seed) {}
  void Reset() { base_ = kFirstBackoff; }
  absl::Duration Next() {
    const absl::Duration wait = base_ * random_.Uniform(0.5, 1.0);
    base_ = std::min(base_ * 2, kMaxBackoff);
    return wait;
  }

 private:
  Random random_;
  absl::Duration base_ = kFirstBackoff;
};

// One connection, from check-in to its end.
absl::Status ServeOnce(const DaemonOptions& options, ClientSession* session, bool* connected) {
  TERSE_ASSIGN_OR_RETURN(std::unique_ptr<GrpcLink> link,
                         GrpcLink::Connect(options.coordinator, kConnectTimeout, &stop_requested));
  *connected = true;
  const absl::Status status = session->Run(link.get());
  if (status.ok() || absl::IsCancelled(status)) link->Close();
  const WireBytes wire = link->Wire();
  spdlog::info("connection closed: {} bytes sent and {} received on the wire", wire.sent, wire.received);
  return status;
}

absl::Status Serve(const DaemonOptions& options, ClientSession* session) {
  const Id128 seed = Id128::Random();
  Backoff backoff(seed.low);
  while (!stop_requested.load()) {
    bool connected = false;
    const absl::Status status = ServeOnce(options, session, &connected);
    if (!absl::IsUnavailable(status)) return status;
    if (connected) backoff.Reset();
    const absl::Duration wait = backoff.Next();
    spdlog::warn("{}; trying again in {:.1f} s", std::string(status.message()), absl::ToDoubleSeconds(wait));
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
  app.add_option("--data", options->data_directory, "directory of the data set; without it, an embedded one")
      ->check(CLI::ExistingDirectory);
  app.add_option("--device", options->device, "where to train")
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}))
      ->capture_default_str();
  app.add_option("--threads", options->threads, "threads of LibTorch")
      ->check(CLI::Range(1, 1024))
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
  absl::StatusOr<std::unique_ptr<ClientState>> state = ClientState::Open(options.state_directory);
  if (!state.ok()) {
    spdlog::error("{}", std::string(state.status().message()));
    return kExitFailed;
  }
  SystemClock clock;
  ClientSession::Options session_options;
  session_options.name = options.name;
  session_options.state = state->get();
  session_options.make_trainer = std::move(make_trainer);
  session_options.clock = &clock;
  session_options.keep_going = [] { return !stop_requested.load(); };
  session_options.log = [](bool warn, const std::string& line) {
    spdlog::log(warn ? spdlog::level::warn : spdlog::level::info, "{}", line);
  };
  ClientSession session(std::move(session_options));
  absl::Status status = Serve(options, &session);
  const bool stopped = absl::IsCancelled(status) && stop_requested.load();
  if (const absl::Status flushed = session.Flush(); !flushed.ok() && (status.ok() || stopped)) status = flushed;
  if (status.ok()) return kExitFinished;
  if (absl::IsCancelled(status)) {
    spdlog::info("stopped; the state in {} is whole", options.state_directory);
    return kExitFinished;
  }
  spdlog::error("{}", std::string(status.message()));
  return kExitFailed;
}

}  // namespace terse
