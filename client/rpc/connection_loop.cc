#include "client/rpc/connection_loop.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/log_components.h"
#include "client/rpc/address_ring.h"
#include "client/rpc/backoff.h"
#include "client/rpc/grpc_link.h"
#include "client/rpc/metrics.h"
#include "client/rpc/reset_state.h"
#include "client/rpc/silence.h"
#include "client/session.h"
#include "core/clock.h"
#include "core/file_system.h"
#include "core/status.h"
#include "proto/channel_settings.h"
#include "storage/client_state.h"
#include "web/http_server.h"

namespace terse {
namespace {

constexpr absl::Duration kConnectTimeout = absl::Seconds(kConnectTimeoutSeconds);
// The same while another address may have a better answer: a machine that is gone says nothing at all.
constexpr absl::Duration kFirstConnectTimeout = absl::Seconds(4);

// The state directory and the session on it. After trouble with the disk both are made again: what the session believes
// may not be what is stored.
class Workplace {
 public:
  // The pointers must outlive it.
  Workplace(const DaemonOptions* options, TrainerFactory make_trainer, const std::atomic<bool>* stop, Clock* clock,
            ClientMetrics* metrics)
      : options_(options), make_trainer_(std::move(make_trainer)), stop_(stop), clock_(clock), metrics_(metrics) {}

  // Opens the state unless it is open. Statuses of ClientState::Open.
  absl::Status Open() {
    if (session_ != nullptr) return absl::OkStatus();
    absl::StatusOr<std::unique_ptr<ClientState>> state = ClientState::Open(options_->state_directory, files());
    if (absl::IsDataLoss(state.status()) && options_->reset_state) {
      TERSE_RETURN_IF_ERROR(Reset(state.status()));
      state = ClientState::Open(options_->state_directory, files());
    }
    if (!state.ok()) return state.status();
    state_ = metrics_->Meter(*std::move(state));
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
  FileSystem& files() const { return options_->files == nullptr ? PosixFiles() : *options_->files; }

  absl::Status Reset(const absl::Status& damage) {
    const LogFields fields = {options_->run, 0, options_->name};
    Log(LogLevel::kWarn, kDaemonLog, fields, damage.message());
    TERSE_ASSIGN_OR_RETURN(const RemovedState removed, RemoveClientState(files(), options_->state_directory));
    Log(LogLevel::kWarn, kDaemonLog, fields,
        absl::StrCat("removed ", removed.files, " files, ", removed.bytes, " bytes, from ", options_->state_directory,
                     ": ", removed.names, "; the residual that they held is lost, and counted"));
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
    session.clock = clock_;
    session.keep_going = [stop = stop_] { return !stop->load(); };
    session.log = [name = options_->name](LogLevel level, const LogFields& about, const std::string& line) {
      Log(level, kClientSessionLog, {about.run, about.round, name}, line);
    };
    session.observer = metrics_;
    return session;
  }

  const DaemonOptions* const options_;
  const TrainerFactory make_trainer_;
  const std::atomic<bool>* const stop_;
  Clock* const clock_;
  ClientMetrics* const metrics_;
  bool residual_lost_ = false;
  std::unique_ptr<ClientState> state_;
  std::unique_ptr<ClientSession> session_;
};

// The way to the coordinator that serves.
struct Way {
  AddressRing addresses;
  Backoff backoff;
  Silence silence;

  explicit Way(const DaemonOptions& options)
      : addresses(options.coordinators),
        backoff(absl::Seconds(options.first_backoff_seconds), Id128::Random().low,
                addresses.has_several() ? Backoff::Expects::kSoon : Backoff::Expects::kLater),
        silence(options.keepalive_seconds, options.coordinators.size()) {}

  // Doubles with each round through the addresses, for links that are slow.
  absl::Duration ConnectTimeout() const {
    if (!addresses.has_several()) return kConnectTimeout;
    return std::min(kFirstConnectTimeout * (1 << std::min(addresses.rounds(), 3)), kConnectTimeout);
  }
  // After a connection to the current address. `served`: the client was welcomed on it.
  void OnEnd(bool served, bool fell_silent) {
    silence.OnEnd(addresses.current(), served, fell_silent);
    if (!served) return;
    backoff.Reset();
    addresses.Reset();
  }
};

// One connection, from check-in to its end.
absl::Status ServeOnce(const DaemonOptions& options, const std::atomic<bool>* stop, ClientSession* session,
                       ClientMetrics* metrics, Way* way) {
  const std::string& address = way->addresses.current();
  TERSE_ASSIGN_OR_RETURN(
      std::unique_ptr<GrpcLink> link,
      GrpcLink::Connect({address, options.transport, way->silence.seconds()}, way->ConnectTimeout(), stop));
  metrics->OnConnected([&link] { return link->Wire(); });
  Log(LogLevel::kDebug, kLinkLog, {session->run(), 0, options.name},
      absl::StrCat("connected to ", address, options.transport.tls_directory.empty() ? "" : " over TLS"));
  const std::unique_ptr<CoordinatorLink> between = options.through ? options.through(link.get()) : nullptr;
  const absl::Status status = session->Run(between != nullptr ? between.get() : link.get());
  way->OnEnd(session->joined(), link->fell_silent());
  if (status.ok() || absl::IsCancelled(status) || session->said_why()) link->Close();
  metrics->OnDisconnected();
  const WireBytes wire = link->Wire();
  Log(LogLevel::kInfo, kLinkLog, {session->run(), 0, options.name},
      absl::StrCat("connection closed: ", wire.sent, " bytes sent and ", wire.received, " received on the wire"));
  return status;
}

// Waits until the client may connect.
void AwaitLeave(const DaemonOptions& options, const std::atomic<bool>& stop) {
  while (options.may_connect && !stop.load() && !options.may_connect()) {
    SleepUnlessStopped(absl::Milliseconds(100), stop);
  }
}

// Until a status that waiting does not change.
absl::Status Serve(const DaemonOptions& options, const std::atomic<bool>* stop, Workplace* workplace,
                   ClientMetrics* metrics) {
  Way way(options);
  bool was_sent_back = false;
  while (!stop->load()) {
    AwaitLeave(options, *stop);
    absl::Status status = workplace->Open();
    const bool is_open = status.ok();
    if (is_open) status = ServeOnce(options, stop, workplace->session(), metrics, &way);
    // A connection that is gone is UNAVAILABLE; a session turns all trouble with its disk into RESOURCE_EXHAUSTED.
    if (!IsDiskTrouble(status)) return status;
    const bool is_disk = !is_open || absl::IsResourceExhausted(status);
    // A coordinator that sent the client back is asked again at once, and so is another one that may serve the run.
    was_sent_back = is_open && !was_sent_back && workplace->session()->sent_back();
    const bool waits = is_disk || (!was_sent_back && way.addresses.Next());
    const absl::Duration wait = waits ? way.backoff.Next() : absl::ZeroDuration();
    Log(LogLevel::kWarn, kLinkLog, {is_open ? workplace->session()->run() : options.run, 0, options.name},
        waits ? absl::StrFormat("%s; trying again in %.1f s", status.message(), absl::ToDoubleSeconds(wait))
              : absl::StrCat(status.message(), "; trying ", way.addresses.current()));
    metrics->OnRetry(is_disk ? ClientMetrics::Trouble::kDisk : ClientMetrics::Trouble::kConnection);
    if (is_disk) workplace->Close();
    SleepUnlessStopped(wait, *stop);
  }
  return absl::CancelledError("stopped");
}

// nullptr without an address.
absl::StatusOr<std::unique_ptr<HttpServer>> ServeMetrics(const DaemonOptions& options, ClientMetrics* metrics,
                                                         Clock* clock) {
  if (options.metrics.empty()) return std::unique_ptr<HttpServer>();
  HttpOptions http;
  http.address = options.metrics;
  http.insecure = options.transport.insecure;
  http.flag = "--metrics";
  absl::StatusOr<std::unique_ptr<HttpServer>> server = HttpServer::Start(http, {metrics->Route(clock)});
  if (server.ok()) {
    Log(LogLevel::kInfo, kDaemonLog, {options.run, 0, options.name},
        absl::StrCat("metrics: ", (*server)->url(), "/metrics"));
  }
  return server;
}

}  // namespace

absl::Status ServeCoordinator(const DaemonOptions& options, TrainerFactory make_trainer,
                              const std::atomic<bool>* stop) {
  SystemClock clock;
  ClientMetrics metrics(options.name);
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<HttpServer> server, ServeMetrics(options, &metrics, &clock));
  Workplace workplace(&options, std::move(make_trainer), stop, &clock, &metrics);
  absl::Status status = workplace.Open();
  if (status.ok()) status = Serve(options, stop, &workplace, &metrics);
  // After a failed sync nothing may be written: it could pass for durable.
  if (workplace.session() == nullptr || IsSyncFailure(status)) return status;
  const absl::Status flushed = workplace.session()->Flush();
  const bool in_order = status.ok() || (absl::IsCancelled(status) && stop->load());
  return !flushed.ok() && in_order ? flushed : status;
}

}  // namespace terse
