#include "coordinator/web/metrics.h"

#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <algorithm>
#include <set>
#include <utility>

#include "coordinator/web/api.h"
#include "coordinator/web/metered_store.h"
#include "web/metrics_route.h"

namespace terse {
namespace {

using prometheus::Gauge;

prometheus::Family<Gauge>& MakeFamily(prometheus::Registry* registry, const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(*registry);
}

// The engines' own histograms, whose counts are taken as they are.
prometheus::MetricFamily EventSeconds(const std::vector<RunSample>& samples) {
  prometheus::MetricFamily family;
  family.name = "terse_event_seconds";
  family.help = "Time that the run's engine took for an event";
  family.type = prometheus::MetricType::Histogram;
  for (const RunSample& sample : samples) {
    prometheus::ClientMetric metric;
    metric.label = {{"run", sample.run}};
    metric.histogram.sample_count = sample.event_times.events;
    metric.histogram.sample_sum = sample.event_times.seconds;
    for (size_t i = 0; i < sample.event_times.bounds.size(); ++i) {
      metric.histogram.bucket.push_back(
          {static_cast<uint64_t>(sample.event_times.at_most[i]), sample.event_times.bounds[i]});
    }
    family.metric.push_back(std::move(metric));
  }
  return family;
}

// Without the series of runs that are there no more.
std::vector<prometheus::MetricFamily> OfRuns(std::vector<prometheus::MetricFamily> families,
                                             const std::vector<RunSample>& samples) {
  std::set<std::string> runs;
  for (const RunSample& sample : samples) runs.insert(sample.run);
  const auto is_gone = [&runs](const prometheus::ClientMetric& metric) {
    return std::any_of(metric.label.begin(), metric.label.end(), [&runs](const prometheus::ClientMetric::Label& label) {
      return label.name == "run" && runs.count(label.value) == 0;
    });
  };
  for (prometheus::MetricFamily& family : families) {
    family.metric.erase(std::remove_if(family.metric.begin(), family.metric.end(), is_gone), family.metric.end());
  }
  return families;
}

}  // namespace

struct Metrics::State {
  State()
      : serving(MakeFamily(&registry, "terse_run_serving", "1 while clients of the run are served, else 0")),
        states(MakeFamily(&registry, "terse_run_state", "1 for the state that the run is in, else 0")),
        version(MakeFamily(&registry, "terse_run_version", "Rounds of the run that are committed")),
        planned(MakeFamily(&registry, "terse_run_rounds_planned", "Rounds that the run is to have")),
        clients(MakeFamily(&registry, "terse_clients", "Connected clients by what they do")),
        queued(MakeFamily(&registry, "terse_queued_events", "Events that the run's engine has not handled yet")) {
    AddBuildInfo("terse_build_info", {}, &registry);
  }

  prometheus::Registry registry;
  prometheus::Family<Gauge>&serving, &states, &version, &planned, &clients, &queued;
};

Metrics::Metrics() : state_(std::make_unique<State>()) {}

Metrics::~Metrics() = default;

std::unique_ptr<RunStore> Metrics::Meter(const std::string& run, std::unique_ptr<RunStore> store) {
  return std::make_unique<MeteredStore>(run, std::move(store), &state_->registry);
}

HttpRoute Metrics::Route(Sampler sample, Clock* clock) {
  return MetricsRoute(
      kListRunsMethod, [this, sample = std::move(sample)] { return Collect(sample()); }, clock);
}

std::vector<prometheus::MetricFamily> Metrics::Collect(const std::vector<RunSample>& samples) {
  for (const RunSample& sample : samples) {
    const prometheus::Labels run = {{"run", sample.run}};
    state_->serving.Add(run).Set(sample.serving ? 1 : 0);
    for (const char* state : {"active", "paused", "stopping", "finished", "stopped"}) {
      state_->states.Add({{"run", sample.run}, {"state", state}}).Set(sample.state == state ? 1 : 0);
    }
    state_->version.Add(run).Set(static_cast<double>(sample.version));
    state_->planned.Add(run).Set(static_cast<double>(sample.rounds_planned));
    state_->queued.Add(run).Set(static_cast<double>(sample.queued_events));
    for (const auto& [state, count] : sample.clients) {
      state_->clients.Add({{"run", sample.run}, {"state", state}}).Set(static_cast<double>(count));
    }
  }
  std::vector<prometheus::MetricFamily> families = OfRuns(state_->registry.Collect(), samples);
  families.push_back(EventSeconds(samples));
  return families;
}

}  // namespace terse
