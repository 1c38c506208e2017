// The report of a run as `export` wrote it, read again.
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "tersectl/report.h"

namespace terse {
namespace {

using Json = nlohmann::ordered_json;

std::optional<double> NumberOrNone(const Json& json, const char* key) {
  return json.at(key).is_null() ? std::nullopt : std::make_optional(json.at(key).get<double>());
}

// Earlier releases wrote none.
std::optional<v1::TreeBelow> BelowOrNone(const Json& json) {
  if (!json.contains("below") || json.at("below").is_null()) return std::nullopt;
  const Json& from = json.at("below");
  v1::TreeBelow below;
  below.set_clients(from.at("clients").get<uint64_t>());
  below.set_payload_bytes_up(from.at("payload_bytes_up").get<uint64_t>());
  below.set_wire_bytes_up(from.at("wire_bytes_up").get<uint64_t>());
  below.set_payload_bytes_down(from.at("payload_bytes_down").get<uint64_t>());
  below.set_wire_bytes_down(from.at("wire_bytes_down").get<uint64_t>());
  return below;
}

// The cells of the line that begins at `*at`, which moves behind it. A cell in quotation marks may hold commas, ends of
// lines and, doubled, quotation marks (RFC 4180).
std::vector<std::string> TakeLine(const std::string& csv, size_t* at) {
  std::vector<std::string> cells(1);
  bool is_quoted = false;
  for (; *at < csv.size(); ++*at) {
    const char c = csv[*at];
    if (c == '"') {
      const bool is_doubled = is_quoted && *at + 1 < csv.size() && csv[*at + 1] == '"';
      if (is_doubled) cells.back() += csv[(*at)++];
      if (!is_doubled) is_quoted = !is_quoted;
    } else if (!is_quoted && c == ',') {
      cells.emplace_back();
    } else if (!is_quoted && c == '\n') {
      ++*at;
      break;
    } else {
      cells.back() += c;
    }
  }
  return cells;
}

// Sets the field of that name where a comparison needs it. Returns whether its text is right.
bool SetField(const std::string& name, const std::string& text, v1::Round* round) {
  uint64_t count = 0;
  double value = 0;
  if (name == "state") {
    round->set_state(text);
  } else if (name == "accuracy" || name == "test_loss") {
    if (text.empty()) return true;
    if (!absl::SimpleAtod(text, &value)) return false;
    name == "accuracy" ? round->set_accuracy(value) : round->set_test_loss(value);
  } else if (name == "id" || name == "wire_bytes_up" || name == "wire_bytes_down") {
    if (!absl::SimpleAtoi(text, &count)) return false;
    if (name == "id") round->set_id(count);
    if (name == "wire_bytes_up") round->set_wire_bytes_up(count);
    if (name == "wire_bytes_down") round->set_wire_bytes_down(count);
  } else if (name == "opened_us" || name == "committed_us") {
    if (text.empty()) return true;
    int64_t time_us = 0;
    if (!absl::SimpleAtoi(text, &time_us)) return false;
    name == "opened_us" ? round->set_opened_us(time_us) : round->set_committed_us(time_us);
  }
  return true;
}

}  // namespace

absl::StatusOr<Summary> SummaryFromJson(const Json& json) {
  Summary summary;
  try {
    summary.run = json.at("run").get<std::string>();
    summary.state = json.at("state").get<std::string>();
    summary.accuracy = NumberOrNone(json, "accuracy");
    summary.loss = NumberOrNone(json, "loss");
    summary.top5 = NumberOrNone(json, "top5");
    summary.perplexity = NumberOrNone(json, "perplexity");
    summary.rounds = json.at("rounds").get<uint64_t>();
    summary.clients = json.at("clients").get<uint64_t>();
    summary.iterations = json.at("iterations").get<uint64_t>();
    summary.parameters = json.at("parameters").get<uint64_t>();
    summary.dense_bytes_up = json.at("dense_bytes_up").get<uint64_t>();
    summary.payload_bytes_up = json.at("payload_bytes_up").get<uint64_t>();
    summary.wire_bytes_up = json.at("wire_bytes_up").get<uint64_t>();
    summary.dense_bytes_down = json.at("dense_bytes_down").get<uint64_t>();
    summary.payload_bytes_down = json.at("payload_bytes_down").get<uint64_t>();
    summary.wire_bytes_down = json.at("wire_bytes_down").get<uint64_t>();
    summary.compression_up_wire = NumberOrNone(json, "compression_up_wire");
    summary.compression_up_payload = NumberOrNone(json, "compression_up_payload");
    summary.compression_both_wire = NumberOrNone(json, "compression_both_wire");
    summary.round_overhead_ms_p50 = NumberOrNone(json, "round_overhead_ms_p50");
    summary.seconds = json.at("seconds").get<double>();
    summary.below = BelowOrNone(json);
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("this is no summary of a run: ", error.what()));
  }
  return summary;
}

absl::StatusOr<std::vector<v1::Round>> RoundsFromCsv(const std::string& csv) {
  size_t at = 0;
  const std::vector<std::string> names = TakeLine(csv, &at);
  std::vector<v1::Round> rounds;
  while (at < csv.size()) {
    const std::vector<std::string> cells = TakeLine(csv, &at);
    v1::Round round;
    bool is_right = cells.size() == names.size();
    for (size_t i = 0; is_right && i < cells.size(); ++i) is_right = SetField(names[i], cells[i], &round);
    if (!is_right || round.id() == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("row ", rounds.size() + 1, " is none of a round; export the run again"));
    }
    rounds.push_back(std::move(round));
  }
  return rounds;
}

}  // namespace terse
