// tersectl metrics: what clients and the evaluator report by name.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/status.h"
#include "proto/proto_text.h"
#include "tersectl/commands.h"
#include "tersectl/lists.h"
#include "tersectl/print.h"

namespace terse {
namespace {

using Json = nlohmann::ordered_json;

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

absl::Status ShowMetricsOfClients(AdminClient& client, uint64_t first, const MetricsOptions& options,
                                  const Terminal& terminal) {
  TERSE_ASSIGN_OR_RETURN(const std::vector<v1::ClientMetric> metrics, client.ListMetrics(first, options.last));
  return ShowList(ClientMetricList(), options.list, options.json, metrics, terminal,
                  [&](const std::vector<v1::ClientMetric>& chosen) { PrintJsonList(chosen, terminal); });
}

}  // namespace

absl::Status ShowMetrics(AdminClient& client, const MetricsOptions& options, const Terminal& terminal) {
  TERSE_ASSIGN_OR_RETURN(const uint64_t first, FirstOfNewest(client, options.first, options.newest));
  if (options.clients) return ShowMetricsOfClients(client, first, options, terminal);
  TERSE_ASSIGN_OR_RETURN(std::vector<v1::Round> rounds, client.ListRounds(first, options.last));
  rounds.erase(
      std::remove_if(rounds.begin(), rounds.end(), [](const v1::Round& round) { return round.metrics().empty(); }),
      rounds.end());
  return ShowList(MetricList(rounds), options.list, options.json, rounds, terminal,
                  [&](const std::vector<v1::Round>& chosen) { PrintJson(MeansJson(chosen), terminal); });
}

}  // namespace terse
