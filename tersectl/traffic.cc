#include "tersectl/traffic.h"

#include <cmath>

#include "absl/types/optional.h"
#include "compression/traffic_forecast.h"
#include "core/status.h"
#include "proto/run_config_convert.h"

namespace terse {

absl::StatusOr<TrafficReport> ReportTraffic(const v1::RunConfig& config, int64_t parameters) {
  TERSE_ASSIGN_OR_RETURN(const RunConfig run, ToCore(config));
  const bool per_million = parameters == 0;
  Layout layout = MillionParameters();
  if (!per_million) {
    TERSE_ASSIGN_OR_RETURN(layout, Layout::Create({{"weight", {parameters}}}));
  }
  TERSE_ASSIGN_OR_RETURN(const TrafficForecast forecast, ForecastTraffic(run, layout));
  using Json = nlohmann::ordered_json;
  const auto bytes = [&](const absl::optional<double>& bits) {
    return bits.has_value() ? Json(std::llround(*bits * static_cast<double>(forecast.elements) / 8)) : Json();
  };
  TrafficReport report;
  report.text = TrafficText(forecast, per_million);
  report.json = Json{{"parameters", forecast.elements},
                     {"per_million_parameters", per_million},
                     {"updates_per_round", forecast.updates},
                     {"bytes_up_per_client_round", bytes(forecast.up_bits)},
                     {"bytes_down_per_client_round", bytes(forecast.down_bits)},
                     {"down_is_at_most", forecast.down_at_most},
                     {"cheaper_setting", forecast.cheaper.empty() ? Json() : Json(forecast.cheaper)},
                     {"cheaper_bytes_down", forecast.cheaper.empty() ? Json() : bytes(forecast.cheaper_bits)}};
  return report;
}

}  // namespace terse
