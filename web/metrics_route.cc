#include "web/metrics_route.h"

#include <prometheus/gauge.h>
#include <prometheus/text_serializer.h>

#include <memory>
#include <utility>

#include "core/status.h"
#include "core/version.h"
#include "web/reply_cache.h"

namespace terse {

void AddBuildInfo(const char* name, prometheus::Labels labels, prometheus::Registry* registry) {
  labels["version"] = kVersion;
  prometheus::BuildGauge()
      .Name(name)
      .Help("1; the program's version is a label")
      .Register(*registry)
      .Add(labels)
      .Set(1);
}

HttpRoute MetricsRoute(std::string method, std::function<std::vector<prometheus::MetricFamily>()> collect,
                       Clock* clock) {
  const auto cache = std::make_shared<ReplyCache>(clock);
  const auto handler = [collect = std::move(collect), cache](const HttpRequest&) -> absl::StatusOr<HttpReply> {
    const auto make = [&]() -> absl::StatusOr<std::string> {
      return prometheus::TextSerializer().Serialize(collect());
    };
    TERSE_ASSIGN_OR_RETURN(const ReplyCache::Body body, cache->Get("metrics", make));
    return HttpReply{"text/plain; version=0.0.4; charset=utf-8", body};
  };
  return {"/metrics", std::move(method), handler};
}

}  // namespace terse
