// The cost of a run on the wire, as the commands that check and make runs print it.
#ifndef TERSE_TERSECTL_TRAFFIC_H_
#define TERSE_TERSECTL_TRAFFIC_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "terse/v1/run_config.pb.h"

namespace terse {

struct TrafficReport {
  std::string text;  // whole lines
  nlohmann::ordered_json json;
};

// The forecast (compression/traffic_forecast.h) for a model of so many parameters, taken as one tensor; for a million
// of them where `parameters` is 0, because the model is not known here. Fails as ForecastTraffic, and for a
// configuration that does not validate.
absl::StatusOr<TrafficReport> ReportTraffic(const v1::RunConfig& config, int64_t parameters);

}  // namespace terse

#endif  // TERSE_TERSECTL_TRAFFIC_H_
