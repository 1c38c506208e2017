#include "coordinator/web/metered_store.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "core/named_metrics.h"
#include "core/status.h"
#include "web/call_meter.h"

namespace terse {
namespace {

using prometheus::Counter;
using prometheus::Gauge;
using prometheus::Histogram;
using prometheus::Labels;

constexpr const char* kWatchedCalls[] = {"OpenRound", "CloseRound", "CommitRound", "CommitBatch", "WriteCheckpoint"};

// From a test's round to one that waits half a day for its clients.
Histogram::BucketBoundaries RoundBuckets() {
  return {0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 60, 300, 900, 3600, 14400, 43200};
}

Counter& MakeCounter(prometheus::Registry* registry, const char* name, const char* help, const Labels& labels) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(*registry).Add(labels);
}

double Seconds(int64_t microseconds) { return 1e-6 * static_cast<double>(std::max<int64_t>(0, microseconds)); }

}  // namespace

struct MeteredStore::Counters {
  Counters(const std::string& run, prometheus::Registry* registry)
      : run(run),
        committed(Rounds(registry, "committed")),
        aborted(Rounds(registry, "aborted")),
        collecting(Phase(registry, "collecting")),
        committing(Phase(registry, "committing")),
        training(Phase(registry, "training")),
        applied(Updates(registry, "applied")),
        not_applied(Updates(registry, "not_applied")),
        refused(Updates(registry, "refused")),
        resets(Updates(registry, "reset")),
        failures(MakeCounter(registry, "terse_client_failures_total",
                             "Times that a client had work and did not deliver, or delivered what was refused",
                             {{"run", run}})),
        accuracy(prometheus::BuildGauge()
                     .Name("terse_accuracy")
                     .Help("Of the newest evaluation on the test set, 0 to 1")
                     .Register(*registry)),
        test_loss(prometheus::BuildGauge()
                      .Name("terse_test_loss")
                      .Help("Mean loss of the newest evaluation on the test set")
                      .Register(*registry)),
        metric(prometheus::BuildGauge()
                   .Name("terse_metric")
                   .Help("What clients and the evaluator report by name, of the newest round that has it: means over "
                         "clients, weighed by samples")
                   .Register(*registry)),
        calls("terse_store", "the run's store", {{"run", run}}, kWatchedCalls, registry) {
    const char* const kHelp = "Bytes by direction: dense (without delay and compression), payload, and on the wire";
    auto& family = prometheus::BuildCounter().Name("terse_bytes_total").Help(kHelp).Register(*registry);
    for (const bool up : {true, false}) {
      for (int i = 0; i < 3; ++i) {
        static constexpr const char* kCounted[] = {"dense", "payload", "wire"};
        bytes[up][i] = &family.Add({{"run", run}, {"direction", up ? "up" : "down"}, {"counted", kCounted[i]}});
      }
    }
  }

  Counter& Rounds(prometheus::Registry* registry, const char* outcome) const {
    return MakeCounter(registry, "terse_rounds_total", "Settled rounds", {{"run", run}, {"outcome", outcome}});
  }
  Counter& Updates(prometheus::Registry* registry, const char* verdict) const {
    return MakeCounter(registry, "terse_updates_total", "Clients' updates by what became of them",
                       {{"run", run}, {"verdict", verdict}});
  }
  // Shows these in place of the ones before, but for those of the other side: `tests` are of the kind kTest.
  void ShowMetrics(const std::vector<MetricMean>& means, bool tests) {
    absl::MutexLock lock(&metrics_mutex);
    for (auto it = metrics.begin(); it != metrics.end();) {
      if ((it->first.first == MetricKind::kTest) != tests) {
        ++it;
        continue;
      }
      metric.Remove(it->second);
      it = metrics.erase(it);
    }
    for (const MetricMean& mean : means) {
      Gauge& gauge = metric.Add({{"run", run}, {"kind", std::string(MetricKindName(mean.kind))}, {"name", mean.name}});
      gauge.Set(mean.mean);
      metrics[{mean.kind, mean.name}] = &gauge;
    }
  }
  Histogram& Phase(prometheus::Registry* registry, const char* phase) const {
    return prometheus::BuildHistogram()
        .Name("terse_round_seconds")
        .Help("Of committed rounds: collecting updates, committing them, and the slowest training among the chosen")
        .Register(*registry)
        .Add({{"run", run}, {"phase", phase}}, RoundBuckets());
  }

  const std::string run;
  Counter &committed, &aborted;
  Histogram &collecting, &committing, &training;
  Counter &applied, &not_applied, &refused, &resets, &failures;
  // Without a value until there is an evaluation.
  prometheus::Family<Gauge>&accuracy, &test_loss, &metric;
  absl::Mutex metrics_mutex;
  // Those of the family `metric`, by kind and name, as many as a round may have.
  std::map<std::pair<MetricKind, std::string>, Gauge*> metrics ABSL_GUARDED_BY(metrics_mutex);
  CallMeter calls;
  Counter* bytes[2][3];  // [up][dense, payload, wire]
};

MeteredStore::MeteredStore(const std::string& run, std::unique_ptr<RunStore> store, prometheus::Registry* registry)
    : ForwardingStore(std::move(store)), counters_(std::make_unique<Counters>(run, registry)) {}

MeteredStore::~MeteredStore() = default;

absl::Status MeteredStore::Around(absl::string_view name, absl::FunctionRef<absl::Status()> call) {
  return counters_->calls.Around(name, call);
}

absl::Status MeteredStore::OpenRound(int64_t round, int64_t base_version, int64_t now_us,
                                     const absl::optional<RoundPlan>& plan) {
  TERSE_RETURN_IF_ERROR(ForwardingStore::OpenRound(round, base_version, now_us, plan));
  OnceDurable([this, now_us] { opened_us_ = now_us; });
  return absl::OkStatus();
}

absl::Status MeteredStore::CloseRound(int64_t round, absl::Span<const ChosenUpdate> chosen, int64_t now_us,
                                      absl::Span<const RefusedUpdate> refused) {
  TERSE_RETURN_IF_ERROR(ForwardingStore::CloseRound(round, chosen, now_us, refused));
  int64_t slowest_us = 0;
  std::vector<absl::Span<const NamedMetric>> metrics;
  for (const ChosenUpdate& update : chosen) {
    slowest_us = std::max(slowest_us, update.train_us);
    metrics.emplace_back(update.metrics);
  }
  OnceDurable(
      [this, means = MeanMetrics(metrics), now_us, slowest_us, count = chosen.size(), refusals = refused.size()] {
        counters_->refused.Increment(static_cast<double>(refusals));
        counters_->ShowMetrics(means, /*tests=*/false);
        closed_us_ = now_us;
        chosen_ = static_cast<int64_t>(count);
        slowest_us_ = slowest_us;
      });
  return absl::OkStatus();
}

absl::Status MeteredStore::CommitRound(const Commit& commit, bool open_next) {
  TERSE_RETURN_IF_ERROR(ForwardingStore::CommitRound(commit, open_next));
  OnceDurable([this, open_next, committed_us = commit.committed_us] {
    counters_->committed.Increment();
    counters_->applied.Increment(static_cast<double>(chosen_.load()));
    // A round that an earlier process opened has no beginning here.
    if (opened_us_ != 0) counters_->collecting.Observe(Seconds(closed_us_ - opened_us_));
    counters_->training.Observe(Seconds(slowest_us_));
    counters_->committing.Observe(Seconds(committed_us - closed_us_));
    opened_us_ = open_next ? committed_us : 0;
  });
  Count(commit.ledger);
  return absl::OkStatus();
}

absl::Status MeteredStore::AbortRound(int64_t round, const std::string& reason, int64_t now_us) {
  TERSE_RETURN_IF_ERROR(ForwardingStore::AbortRound(round, reason, now_us));
  OnceDurable([this] {
    counters_->aborted.Increment();
    opened_us_ = 0;
  });
  return absl::OkStatus();
}

absl::Status MeteredStore::RecordNotApplied(int64_t client) {
  TERSE_RETURN_IF_ERROR(ForwardingStore::RecordNotApplied(client));
  OnceDurable([this] { counters_->not_applied.Increment(); });
  return absl::OkStatus();
}

absl::Status MeteredStore::RecordReset(int64_t client) {
  TERSE_RETURN_IF_ERROR(ForwardingStore::RecordReset(client));
  OnceDurable([this] { counters_->resets.Increment(); });
  return absl::OkStatus();
}

absl::StatusOr<ClientRecord> MeteredStore::RecordFailure(int64_t client) {
  absl::StatusOr<ClientRecord> record = ForwardingStore::RecordFailure(client);
  if (record.ok()) OnceDurable([this] { counters_->failures.Increment(); });
  return record;
}

absl::Status MeteredStore::AddLedger(absl::Span<const LedgerEntry> entries) {
  TERSE_RETURN_IF_ERROR(ForwardingStore::AddLedger(entries));
  Count(entries);
  return absl::OkStatus();
}

absl::Status MeteredStore::SetEvaluation(int64_t round, const Evaluation& evaluation) {
  TERSE_RETURN_IF_ERROR(ForwardingStore::SetEvaluation(round, evaluation));
  OnceDurable([this, evaluation] {
    if (evaluation.accuracy.has_value()) {
      counters_->accuracy.Add({{"run", counters_->run}}).Set(*evaluation.accuracy);
    }
    counters_->test_loss.Add({{"run", counters_->run}}).Set(evaluation.loss);
    std::vector<MetricMean> means;
    for (const NamedMetric& metric : evaluation.metrics) means.push_back({metric.kind, metric.name, metric.value});
    counters_->ShowMetrics(means, /*tests=*/true);
  });
  return absl::OkStatus();
}

void MeteredStore::Count(absl::Span<const LedgerEntry> entries) {
  std::array<std::array<double, 3>, 2> sums = {};
  for (const LedgerEntry& entry : entries) {
    std::array<double, 3>& sum = sums[entry.direction == Direction::kUp ? 1 : 0];
    sum[0] += static_cast<double>(entry.dense_bytes);
    sum[1] += static_cast<double>(entry.payload_bytes);
    sum[2] += static_cast<double>(entry.wire_bytes);
  }
  OnceDurable([this, sums] {
    for (size_t up = 0; up < sums.size(); ++up) {
      for (size_t i = 0; i < sums[up].size(); ++i) counters_->bytes[up][i]->Increment(sums[up][i]);
    }
  });
}

}  // namespace terse
