// A run's results and costs, computed from the coordinator's replies. Pure functions.
#ifndef TERSE_TERSECTL_REPORT_H_
#define TERSE_TERSECTL_REPORT_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "terse/v1/admin.pb.h"

namespace terse {

// Byte figures are sums over every round and client, aborted rounds included: what was sent was sent. The compression
// rate is that of SBC, Tables I and II: 32 bits x parameters x iterations over the bits that were sent up, per client.
// The ledger's dense bytes already are 4 x parameters x local steps for every update that went into the model, so the
// rate of all clients together is dense_bytes_up / wire_bytes_up (or payload_bytes_up: the codec's messages alone).
// Beside it stands the rate of both ways together, on the wire.
struct Summary {
  std::string run;
  std::string state;
  std::optional<double> accuracy;          // of the last evaluated round; nothing when none was, or in regression
  std::optional<double> loss;              // test loss, likewise
  std::optional<double> top5, perplexity;  // likewise, where they mean something
  uint64_t rounds = 0;                     // committed
  uint64_t clients = 0;                    // the cohort
  uint64_t iterations = 0;                 // committed rounds x local steps: optimizer steps of one client; of a
                                           // buffered run the average
  uint64_t parameters = 0;
  uint64_t dense_bytes_up = 0, payload_bytes_up = 0, wire_bytes_up = 0;
  uint64_t dense_bytes_down = 0, payload_bytes_down = 0, wire_bytes_down = 0;
  std::optional<double> compression_up_wire;  // nothing before anything was sent
  std::optional<double> compression_up_payload;
  std::optional<double> compression_both_wire;
  // Median over the committed rounds of the time from opening to commit without the slowest client's training. Nothing
  // for a buffered run, whose clients train across rounds.
  std::optional<double> round_overhead_ms_p50;
  double seconds = 0;                  // from opening the first round to the last commit
  std::optional<v1::TreeBelow> below;  // the trees below the run's relays; nothing without relays
};

Summary Summarize(const v1::Status& status, const std::vector<v1::Round>& rounds);

// Keys as the fields are called and in their order; what is not known is null.
nlohmann::ordered_json SummaryJson(const Summary& summary);

// A summary that SummaryJson wrote. INVALID_ARGUMENT for other JSON.
absl::StatusOr<Summary> SummaryFromJson(const nlohmann::ordered_json& json);

// One line a figure, for people.
std::string SummaryTable(const Summary& summary, bool color);

// Compression of one round on the wire, of the way up and of both ways together: "x3491"; "-" where nothing was sent.
std::string CompressionUpText(const v1::Round& round);
std::string CompressionBothText(const v1::Round& round);

// The run's local steps, with its controller where there is one.
std::string LocalStepsText(const v1::RunConfig& config);

// The rounds of a text that RoundsCsv wrote, with the fields that EvaluatedPoints looks at. INVALID_ARGUMENT for
// another text, with the line.
absl::StatusOr<std::vector<v1::Round>> RoundsFromCsv(const std::string& csv);

// One line a round; the columns are the fields of terse.v1.Round in their order.
std::string RoundsCsv(const std::vector<v1::Round>& rounds);

// A round that was evaluated, with what all clients had sent until it was settled.
struct EvaluatedPoint {
  uint64_t round = 0;
  uint64_t wire_bytes_up = 0;      // cumulative
  std::optional<double> accuracy;  // nothing in regression
  std::optional<double> test_loss;
  uint64_t wire_bytes_down = 0;  // that they had received, likewise
  double seconds = 0;            // from opening the first round to its commit
};

// Whether the run has been evaluated and still has no accuracy, as in regression: then its loss says how good it is.
bool HasLossAlone(const std::vector<EvaluatedPoint>& points);

// In the order of `rounds`, which begin with the run's first.
std::vector<EvaluatedPoint> EvaluatedPoints(const std::vector<v1::Round>& rounds);

}  // namespace terse

#endif  // TERSE_TERSECTL_REPORT_H_
