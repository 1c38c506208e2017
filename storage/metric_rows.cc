#include "storage/metric_rows.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "storage/integrity.h"
#include "storage/metric_bytes.h"

namespace terse {
namespace run_store_internal {
namespace {

absl::Status InsertMean(SqlDb& db, int64_t round, const MetricMean& mean) {
  return db.Prepare("INSERT INTO metrics (round, kind, name, mean, clients, samples) VALUES (?, ?, ?, ?, ?, ?)")
      .Int(round)
      .Int(static_cast<int64_t>(mean.kind))
      .Text(mean.name)
      .Real(mean.mean)
      .Int(mean.clients)
      .Int(mean.samples)
      .Run();
}

}  // namespace

absl::Status InsertMetrics(SqlDb& db, int64_t round, absl::Span<const ChosenUpdate> chosen) {
  std::vector<absl::Span<const NamedMetric>> of_clients;
  for (const ChosenUpdate& update : chosen) {
    if (update.metrics.empty()) continue;
    TERSE_RETURN_IF_ERROR(CheckMetrics(update.metrics));
    of_clients.emplace_back(update.metrics);
    TERSE_RETURN_IF_ERROR(db.Prepare("INSERT INTO update_metrics (round, client, metrics) VALUES (?, ?, ?)")
                              .Int(round)
                              .Int(update.client)
                              .Blob(SerializeMetrics(update.metrics))
                              .Run());
  }
  for (const MetricMean& mean : MeanMetrics(of_clients)) TERSE_RETURN_IF_ERROR(InsertMean(db, round, mean));
  return absl::OkStatus();
}

absl::Status ReplaceTestMetrics(SqlDb& db, int64_t round, absl::Span<const NamedMetric> metrics) {
  TERSE_RETURN_IF_ERROR(CheckMetrics(metrics));
  TERSE_RETURN_IF_ERROR(db.Prepare("DELETE FROM metrics WHERE round = ? AND kind = ?")
                            .Int(round)
                            .Int(static_cast<int64_t>(MetricKind::kTest))
                            .Run());
  for (const NamedMetric& metric : metrics) {
    if (metric.kind != MetricKind::kTest) {
      return absl::InvalidArgumentError(absl::StrCat("'", metric.name, "' is no metric of an evaluator"));
    }
    TERSE_RETURN_IF_ERROR(InsertMean(db, round, {metric.kind, metric.name, metric.value, 0, metric.samples}));
  }
  return absl::OkStatus();
}

absl::Status ReadMeans(SqlDb& db, std::vector<RoundRecord>* rounds) {
  if (rounds->empty()) return absl::OkStatus();
  static const auto& query =
      *new SqlText(SqlCat({"SELECT round, kind, name, mean, clients, samples, ", HasChecksum("metrics", "metrics"),
                           " FROM metrics WHERE round BETWEEN ? AND ? ORDER BY round, kind, name"}));
  Statement rows = db.Prepare(query);
  rows.Int(rounds->front().id).Int(rounds->back().id);
  while (true) {
    TERSE_ASSIGN_OR_RETURN(const bool row, rows.Step());
    if (!row) return absl::OkStatus();
    TERSE_RETURN_IF_ERROR(ExpectChecksum(db, rows, 6, "metrics"));
    const auto index = static_cast<size_t>(rows.GetInt(0) - rounds->front().id);
    if (index >= rounds->size() || (*rounds)[index].id != rows.GetInt(0)) {
      return absl::DataLossError(
          absl::StrCat(db.place(), " has metrics of round ", rows.GetInt(0), " and no such round", db.remedy()));
    }
    (*rounds)[index].metrics.push_back({static_cast<MetricKind>(rows.GetInt(1)), std::string(rows.GetText(2)),
                                        rows.GetReal(3), rows.GetInt(4), rows.GetInt(5)});
  }
}

absl::Status ReadClientMetrics(SqlDb& db, int64_t first_round, int64_t last_round,
                               std::vector<ClientMetrics>* metrics) {
  static const auto& query =
      *new SqlText(SqlCat({"SELECT m.round, m.client, c.name, m.metrics, ", HasChecksum("update_metrics", "m"),
                           " FROM update_metrics m JOIN clients c ON c.id = m.client WHERE m.round BETWEEN ? AND ? "
                           "ORDER BY m.round, m.client"}));
  Statement rows = db.Prepare(query);
  rows.Int(first_round).Int(last_round);
  while (true) {
    TERSE_ASSIGN_OR_RETURN(const bool row, rows.Step());
    if (!row) return absl::OkStatus();
    TERSE_RETURN_IF_ERROR(ExpectChecksum(db, rows, 4, "update_metrics"));
    absl::StatusOr<std::vector<NamedMetric>> parsed = ParseMetrics(rows.GetBlob(3));
    if (!parsed.ok()) {
      return absl::DataLossError(absl::StrCat(db.place(), ": ", parsed.status().message(), db.remedy()));
    }
    metrics->push_back({rows.GetInt(0), rows.GetInt(1), std::string(rows.GetText(2)), *std::move(parsed)});
  }
}

absl::Status DropClientMetrics(SqlDb& db, int64_t round) {
  return db.Prepare("DELETE FROM update_metrics WHERE round = ?").Int(round).Run();
}

}  // namespace run_store_internal
}  // namespace terse
