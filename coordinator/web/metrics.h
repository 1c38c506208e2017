// The metrics that Prometheus scrapes at /metrics: docs/METRICS.md lists the names.
#ifndef TERSE_COORDINATOR_WEB_METRICS_H_
#define TERSE_COORDINATOR_WEB_METRICS_H_

#include <prometheus/metric_family.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "coordinator/event_times.h"
#include "core/clock.h"
#include "storage/run_store.h"
#include "web/http_server.h"

namespace terse {

// The facts about a run at the moment of a scrape.
struct RunSample {
  std::string run;
  bool serving = false;
  std::string state;  // "active", "paused", "stopping", "finished", "stopped"; empty: not known
  int64_t version = 0;
  int64_t rounds_planned = 0;
  std::map<std::string, int64_t> clients;  // connected ones, by state
  int64_t queued_events = 0;               // that the engine has not handled yet
  EventTimeCounts event_times;             // of its events since it was opened
};

// The counters of a coordinator process, from its start on. Thread-safe.
class Metrics {
 public:
  // Returns a sample of every run. Called by one thread at a time.
  using Sampler = std::function<std::vector<RunSample>()>;

  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // `store` with every call timed, and what becomes durable through it counted for `run`. The metrics must outlive it.
  std::unique_ptr<RunStore> Meter(const std::string& run, std::unique_ptr<RunStore> store);

  // The route /metrics, in Prometheus' text format, for those who may list runs. `sample` is called at each scrape that
  // is not answered from the last one's (reply_cache.h). All must outlive the server.
  HttpRoute Route(Sampler sample, Clock* clock);

 private:
  struct State;
  std::vector<prometheus::MetricFamily> Collect(const std::vector<RunSample>& samples);

  const std::unique_ptr<State> state_;
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_WEB_METRICS_H_
