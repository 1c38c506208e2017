#include "client/rpc/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <utility>

#include "client/rpc/metered_state.h"
#include "web/metrics_route.h"

namespace terse {
namespace {

using prometheus::Counter;
using prometheus::Gauge;
using prometheus::Labels;

Counter& MakeCounter(prometheus::Registry* registry, const char* name, const char* help, const Labels& labels = {}) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(*registry).Add(labels);
}

prometheus::Family<Gauge>& MakeGauges(prometheus::Registry* registry, const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(*registry);
}

}  // namespace

struct ClientMetrics::Series {
  explicit Series(const std::string& client)
      : connected(MakeGauges(&registry, "terse_client_connected", "1 while there is a connection to the coordinator")
                      .Add({})),
        connections(MakeCounter(&registry, "terse_client_connections_total", "Connections that were made")),
        no_connection(Retries("connection")),
        no_disk(Retries("disk")),
        up(Wire("up")),
        down(Wire("down")),
        rounds(MakeCounter(&registry, "terse_client_rounds_trained_total", "Rounds whose update was sealed")),
        steps(MakeCounter(&registry, "terse_client_local_steps_total", "Local steps of those rounds")),
        training(MakeCounter(&registry, "terse_client_training_seconds_total", "Time that their training took")),
        applied(Updates("applied")),
        not_applied(Updates("not_applied")),
        resets(Updates("reset")),
        pending(
            MakeGauges(&registry, "terse_client_update_pending", "1 while an update waits for its verdict").Add({})),
        loss(MakeGauges(&registry, "terse_client_loss", "Mean loss over the newest training's local steps")),
        residual(MakeGauges(&registry, "terse_client_residual_norm", "L2 norm of the residual at the newest verdict")),
        version(MakeGauges(&registry, "terse_client_version", "Version of the model that is held")) {
    AddBuildInfo("terse_client_build_info", {{"client", client}}, &registry);
  }

  Counter& Retries(const char* trouble) {
    return MakeCounter(&registry, "terse_client_retries_total",
                       "Waits before another attempt, by what was in trouble: the connection or the disk",
                       {{"trouble", trouble}});
  }
  Counter& Wire(const char* direction) {
    return MakeCounter(&registry, "terse_client_wire_bytes_total",
                       "Bytes on the TCP connections to the coordinator by direction: up is sent by this client",
                       {{"direction", direction}});
  }
  Counter& Updates(const char* verdict) {
    return MakeCounter(&registry, "terse_client_updates_total", "Updates by what became of them",
                       {{"verdict", verdict}});
  }

  prometheus::Registry registry;
  Gauge& connected;
  Counter &connections, &no_connection, &no_disk, &up, &down;
  Counter &rounds, &steps, &training, &applied, &not_applied, &resets;
  Gauge& pending;
  // Without a value until there is one.
  prometheus::Family<Gauge>&loss, &residual, &version;
};

ClientMetrics::ClientMetrics(const std::string& client) : series_(std::make_unique<Series>(client)) {}

ClientMetrics::~ClientMetrics() = default;

std::unique_ptr<ClientState> ClientMetrics::Meter(std::unique_ptr<ClientState> state) {
  return std::make_unique<MeteredState>(std::move(state), &series_->registry);
}

void ClientMetrics::OnConnected(std::function<WireBytes()> wire) {
  absl::MutexLock lock(&mutex_);
  wire_ = std::move(wire);
  booked_ = {};
  series_->connections.Increment();
  series_->connected.Set(1);
}

void ClientMetrics::OnDisconnected() {
  absl::MutexLock lock(&mutex_);
  BookWire();
  wire_ = nullptr;
  series_->connected.Set(0);
}

void ClientMetrics::OnRetry(Trouble trouble) {
  (trouble == Trouble::kDisk ? series_->no_disk : series_->no_connection).Increment();
}

void ClientMetrics::OnJoined(bool sealed, double residual_norm) {
  series_->pending.Set(sealed ? 1 : 0);
  series_->residual.Add({}).Set(residual_norm);
}

void ClientMetrics::OnVersion(absl::optional<int64_t> version) {
  Gauge& gauge = series_->version.Add({});
  if (version.has_value()) return gauge.Set(static_cast<double>(*version));
  series_->version.Remove(&gauge);
}

void ClientMetrics::OnSealed(const SealedWork& work) {
  series_->rounds.Increment();
  series_->steps.Increment(static_cast<double>(work.steps));
  series_->training.Increment(1e-6 * static_cast<double>(work.train_us));
  series_->loss.Add({}).Set(work.loss);
  series_->pending.Set(1);
}

void ClientMetrics::OnSettled(Outcome outcome, double residual_norm) {
  Counter& counter = outcome == Outcome::kApplied      ? series_->applied
                     : outcome == Outcome::kNotApplied ? series_->not_applied
                                                       : series_->resets;
  counter.Increment();
  series_->pending.Set(0);
  series_->residual.Add({}).Set(residual_norm);
}

HttpRoute ClientMetrics::Route(Clock* clock) {
  return MetricsRoute(
      "", [this] { return Collect(); }, clock);
}

void ClientMetrics::BookWire() {
  const WireBytes now = wire_();
  series_->up.Increment(static_cast<double>(now.sent - booked_.sent));
  series_->down.Increment(static_cast<double>(now.received - booked_.received));
  booked_ = now;
}

std::vector<prometheus::MetricFamily> ClientMetrics::Collect() {
  {
    absl::MutexLock lock(&mutex_);
    if (wire_) BookWire();
  }
  return series_->registry.Collect();
}

}  // namespace terse
