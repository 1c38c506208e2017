// The metrics that Prometheus scrapes from a client with --metrics: docs/METRICS.md lists the names.
#ifndef TERSE_CLIENT_RPC_METRICS_H_
#define TERSE_CLIENT_RPC_METRICS_H_

#include <prometheus/metric_family.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "client/session_observer.h"
#include "core/clock.h"
#include "core/wire_meter.h"
#include "storage/client_state.h"
#include "web/http_server.h"

namespace terse {

// The counters of one client, from their making on. Thread-safe.
class ClientMetrics : public SessionObserver {
 public:
  // Why there is a wait before the next attempt.
  enum class Trouble { kConnection, kDisk };

  explicit ClientMetrics(const std::string& client);
  ~ClientMetrics() override;
  ClientMetrics(const ClientMetrics&) = delete;
  ClientMetrics& operator=(const ClientMetrics&) = delete;

  // `state` with every call timed. The metrics must outlive it.
  std::unique_ptr<ClientState> Meter(std::unique_ptr<ClientState> state);

  // A connection: `wire` gives its cumulative bytes, and is asked at scrapes, from other threads, until OnDisconnected,
  // which asks it for the last time.
  void OnConnected(std::function<WireBytes()> wire) ABSL_LOCKS_EXCLUDED(mutex_);
  void OnDisconnected() ABSL_LOCKS_EXCLUDED(mutex_);
  void OnRetry(Trouble trouble);

  void OnJoined(bool sealed, double residual_norm) override;
  void OnVersion(absl::optional<int64_t> version) override;
  void OnSealed(const SealedWork& work) override;
  void OnSettled(Outcome outcome, double residual_norm) override;

  // The route /metrics. `clock` and the metrics must outlive the server.
  HttpRoute Route(Clock* clock);

 private:
  struct Series;

  void BookWire() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<prometheus::MetricFamily> Collect() ABSL_LOCKS_EXCLUDED(mutex_);

  const std::unique_ptr<Series> series_;
  absl::Mutex mutex_;
  std::function<WireBytes()> wire_ ABSL_GUARDED_BY(mutex_);  // of the open connection; empty without one
  WireBytes booked_ ABSL_GUARDED_BY(mutex_);                 // of it, so far
};

}  // namespace terse

#endif  // TERSE_CLIENT_RPC_METRICS_H_
