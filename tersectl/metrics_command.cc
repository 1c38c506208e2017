// tersectl metrics: what clients and the evaluator report by name.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "proto/proto_text.h"
#include "tersectl/commands.h"
#include "tersectl/print.h"
#include "tersectl/report.h"
#include "tersectl/text_table.h"

namespace terse {
namespace {

using Json = nlohmann::ordered_json;

// The order of the columns: what was measured while a round's models were made, then at its end.
using MetricKey = std::pair<std::string, std::string>;

// A JSON object for each metric of a round.
Json MeansJson(const std::vector<v1::Round>& rounds) {
  Json list = Json::array();
  for (const v1::Round& round : rounds) {
    for (const v1::MetricMean& mean : round.metrics()) {
      Json entry = {{"round", round.id()}};
      entry.update(ToJson(mean));
      list.push_back(std::move(entry));
    }
  }
  return list;
}

std::string NothingReported(bool of_clients) {
  return absl::StrCat("no ", of_clients ? "client of these rounds" : "round of these",
                      " has metrics by name; trainers report them with their updates (docs/PYTHON.md, \"Metrics\")\n");
}

void PrintMeans(const std::vector<v1::Round>& rounds, const Terminal& terminal) {
  std::map<MetricKey, size_t> columns;
  for (const v1::Round& round : rounds) {
    for (const v1::MetricMean& mean : round.metrics()) columns.insert({{mean.kind(), mean.name()}, 0});
  }
  if (columns.empty()) {
    *terminal.out << NothingReported(/*of_clients=*/false);
    return;
  }
  std::vector<TextTable::Column> head = {{"round", true}, {"clients", true}};
  for (auto& [key, index] : columns) {
    index = head.size();
    head.push_back({absl::StrCat(key.first, " ", key.second), true});
  }
  TextTable table(head);
  for (const v1::Round& round : rounds) {
    if (round.metrics().empty()) continue;
    std::vector<std::string> row(head.size(), "-");
    uint32_t clients = 0;
    for (const v1::MetricMean& mean : round.metrics()) {
      row[columns.at({mean.kind(), mean.name()})] = DecimalText(mean.mean());
      clients = std::max(clients, mean.clients());
    }
    row[0] = absl::StrCat(round.id());
    row[1] = absl::StrCat(clients);
    table.AddRow(std::move(row));
  }
  *terminal.out << table.Render(terminal.color);
}

absl::Status ShowMetricsOfClients(AdminClient& client, uint64_t first, const MetricsOptions& options,
                                  const Terminal& terminal) {
  TERSE_ASSIGN_OR_RETURN(const std::vector<v1::ClientMetric> metrics, client.ListMetrics(first, options.last));
  if (options.json) {
    PrintJsonList(metrics, terminal);
    return absl::OkStatus();
  }
  if (metrics.empty()) {
    *terminal.out << NothingReported(/*of_clients=*/true);
    return absl::OkStatus();
  }
  TextTable table({{"round", true}, {"client"}, {"kind"}, {"metric"}, {"value", true}, {"samples", true}});
  for (const v1::ClientMetric& metric : metrics) {
    table.AddRow({absl::StrCat(metric.round()), ClientText(metric.client(), metric.client_name()), metric.kind(),
                  metric.name(), DecimalText(metric.value()), absl::StrCat(metric.samples())});
  }
  *terminal.out << table.Render(terminal.color);
  return absl::OkStatus();
}

}  // namespace

absl::Status ShowMetrics(AdminClient& client, const MetricsOptions& options, const Terminal& terminal) {
  TERSE_ASSIGN_OR_RETURN(const uint64_t first, FirstOfNewest(client, options.first, options.newest));
  if (options.clients) return ShowMetricsOfClients(client, first, options, terminal);
  TERSE_ASSIGN_OR_RETURN(const std::vector<v1::Round> rounds, client.ListRounds(first, options.last));
  if (options.json) {
    PrintJson(MeansJson(rounds), terminal);
  } else {
    PrintMeans(rounds, terminal);
  }
  return absl::OkStatus();
}

}  // namespace terse
