// A process's metrics as Prometheus scrapes them.
#ifndef TERSE_WEB_METRICS_ROUTE_H_
#define TERSE_WEB_METRICS_ROUTE_H_

#include <prometheus/labels.h>
#include <prometheus/metric_family.h>
#include <prometheus/registry.h>

#include <functional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "web/http_server.h"

namespace terse {

// Adds the series NAME of 1 with `labels` and, as `version`, that of this program.
void AddBuildInfo(const char* name, prometheus::Labels labels, prometheus::Registry* registry);

// The route /metrics in Prometheus' text format, for those who may call `method`. `collect` is called at each scrape
// that is not answered from the last one's (reply_cache.h), by one thread at a time. `clock` and what `collect` uses
// must outlive the server.
HttpRoute MetricsRoute(std::string method, std::function<std::vector<prometheus::MetricFamily>()> collect,
                       Clock* clock);

}  // namespace terse

#endif  // TERSE_WEB_METRICS_ROUTE_H_
