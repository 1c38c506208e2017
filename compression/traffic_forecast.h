// Foretells the cost of a run's rounds on the wire, before it begins: the bytes of one client in both directions, and
// the setting that would cost far less where there is one. Sizes come from messages that the run's own codecs make of
// random updates; those of an average of updates from its expected density, 1 - (1 - p)^K for K updates that each
// change a share p of the elements, at random positions. Real updates overlap more, so that is the most to expect.
#ifndef TERSE_COMPRESSION_TRAFFIC_FORECAST_H_
#define TERSE_COMPRESSION_TRAFFIC_FORECAST_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "core/layout.h"
#include "core/run_config.h"

namespace terse {

// Payload of one client and round; envelopes come on top (docs/PROTOCOL.md). In a buffered run a round is a version.
struct TrafficForecast {
  int64_t elements = 0;  // of the model
  int64_t updates = 0;   // of a round
  // Bits an element of the model; nullopt where the size depends on the data: thresholds, entropy-coded levels.
  absl::optional<double> up_bits;
  absl::optional<double> down_bits;
  // Whether down_bits is the most that it can be, because the step is not an average of updates, or is one whose values
  // depend on the data.
  bool down_at_most = false;
  // A setting whose messages to clients take a tenth of down_bits or less, as a sentence's subject; empty where none
  // does.
  std::string cheaper;
  double cheaper_bits = 0;
};

// INVALID_ARGUMENT for settings that the codecs refuse. Takes less than a second, and a few times the memory of one
// update.
absl::StatusOr<TrafficForecast> ForecastTraffic(const RunConfig& config, const Layout& layout);

// The stand-in for a model that is not known here: one tensor of a million elements, so that bytes are bytes a million
// parameters.
Layout MillionParameters();

// Two sentences at most, a line each: "a client sends about 1.2 kB and receives about 4.9 kB a round (4 updates)". With
// `per_million` the figures are those of MillionParameters.
std::string TrafficText(const TrafficForecast& forecast, bool per_million);

}  // namespace terse

#endif  // TERSE_COMPRESSION_TRAFFIC_FORECAST_H_
