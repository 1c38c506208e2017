#include "tersectl/report.h"

#include "absl/strings/str_cat.h"
#include "core/compression_rate.h"
#include "core/median.h"
#include "proto/proto_text.h"
#include "tersectl/text_table.h"

namespace terse {
namespace {

std::optional<double> Median(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  return MedianOf(absl::MakeSpan(values));
}

nlohmann::ordered_json OrNull(const std::optional<double>& value) {
  return value.has_value() ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

std::string OrDash(const std::optional<double>& value, std::string (*text)(double)) {
  return value.has_value() ? text(*value) : "-";
}

nlohmann::ordered_json BelowJson(const std::optional<v1::TreeBelow>& below) {
  if (!below.has_value()) return nullptr;
  return {{"clients", below->clients()},
          {"payload_bytes_up", below->payload_bytes_up()},
          {"wire_bytes_up", below->wire_bytes_up()},
          {"payload_bytes_down", below->payload_bytes_down()},
          {"wire_bytes_down", below->wire_bytes_down()}};
}

void AddBytes(const v1::Round& round, Summary* summary) {
  summary->dense_bytes_up += round.dense_bytes_up();
  summary->payload_bytes_up += round.payload_bytes_up();
  summary->wire_bytes_up += round.wire_bytes_up();
  summary->dense_bytes_down += round.dense_bytes_down();
  summary->payload_bytes_down += round.payload_bytes_down();
  summary->wire_bytes_down += round.wire_bytes_down();
}

std::string ExactBytes(uint64_t bytes) { return absl::StrCat(BytesText(bytes), " (", bytes, ")"); }

// Optimizer steps of one client in so many rounds: in a buffered run it has a share of each.
uint64_t IterationsOf(const v1::RunConfig& config, uint64_t rounds) {
  const bool buffered = config.rounds().mode() == "buffered" && config.rounds().clients() > 0;
  const uint64_t taken_part = buffered ? rounds * static_cast<uint64_t>(config.rounds().buffer()) /
                                             static_cast<uint64_t>(config.rounds().clients())
                                       : rounds;
  return taken_part * static_cast<uint64_t>(config.train().local_steps());
}

}  // namespace

Summary Summarize(const v1::Status& status, const std::vector<v1::Round>& rounds) {
  Summary summary;
  summary.run = status.run();
  summary.state = status.state();
  summary.clients = status.config().rounds().clients();
  summary.parameters = status.parameters();
  if (status.has_below()) summary.below = status.below();
  std::vector<double> overheads_ms;
  int64_t first_opened_us = 0, last_committed_us = 0;
  for (const v1::Round& round : rounds) {
    AddBytes(round, &summary);
    if (round.has_accuracy()) summary.accuracy = round.accuracy();
    if (round.has_test_loss()) summary.loss = round.test_loss();
    if (round.has_top5()) summary.top5 = round.top5();
    if (round.has_perplexity()) summary.perplexity = round.perplexity();
    if (first_opened_us == 0) first_opened_us = round.opened_us();
    if (round.state() != "committed") continue;
    ++summary.rounds;
    summary.iterations += round.local_steps();
    last_committed_us = round.committed_us();
    if (status.config().rounds().mode() == "buffered") continue;  // clients train across rounds
    overheads_ms.push_back(static_cast<double>(round.committed_us() - round.opened_us() - round.train_us_max()) / 1e3);
  }
  // Without a controller a round does not say how long its clients trained.
  if (summary.iterations == 0) summary.iterations = IterationsOf(status.config(), summary.rounds);
  summary.compression_up_wire = CompressionRate(summary.dense_bytes_up, summary.wire_bytes_up);
  summary.compression_up_payload = CompressionRate(summary.dense_bytes_up, summary.payload_bytes_up);
  summary.compression_both_wire = CompressionRate(summary.dense_bytes_up + summary.dense_bytes_down,
                                                  summary.wire_bytes_up + summary.wire_bytes_down);
  summary.round_overhead_ms_p50 = Median(std::move(overheads_ms));
  if (summary.rounds > 0) summary.seconds = static_cast<double>(last_committed_us - first_opened_us) / 1e6;
  return summary;
}

nlohmann::ordered_json SummaryJson(const Summary& summary) {
  nlohmann::ordered_json json;
  json["run"] = summary.run;
  json["state"] = summary.state;
  json["accuracy"] = OrNull(summary.accuracy);
  json["loss"] = OrNull(summary.loss);
  json["top5"] = OrNull(summary.top5);
  json["perplexity"] = OrNull(summary.perplexity);
  json["rounds"] = summary.rounds;
  json["clients"] = summary.clients;
  json["iterations"] = summary.iterations;
  json["parameters"] = summary.parameters;
  json["dense_bytes_up"] = summary.dense_bytes_up;
  json["payload_bytes_up"] = summary.payload_bytes_up;
  json["wire_bytes_up"] = summary.wire_bytes_up;
  json["dense_bytes_down"] = summary.dense_bytes_down;
  json["payload_bytes_down"] = summary.payload_bytes_down;
  json["wire_bytes_down"] = summary.wire_bytes_down;
  json["compression_up_wire"] = OrNull(summary.compression_up_wire);
  json["compression_up_payload"] = OrNull(summary.compression_up_payload);
  json["compression_both_wire"] = OrNull(summary.compression_both_wire);
  json["round_overhead_ms_p50"] = OrNull(summary.round_overhead_ms_p50);
  json["seconds"] = summary.seconds;
  json["below"] = BelowJson(summary.below);
  return json;
}

void AddBelow(const v1::TreeBelow& below, TextTable* table) {
  table->AddRow({"clients below relays", absl::StrCat(below.clients())});
  table->AddRow({"below relays: up, payload", ExactBytes(below.payload_bytes_up())});
  table->AddRow({"below relays: up, on the wire", ExactBytes(below.wire_bytes_up())});
  table->AddRow({"below relays: down, payload", ExactBytes(below.payload_bytes_down())});
  table->AddRow({"below relays: down, on the wire", ExactBytes(below.wire_bytes_down())});
}

std::string SummaryTable(const Summary& summary, bool color) {
  TextTable table({{absl::StrCat("run ", summary.run), false}, {summary.state, false}});
  const bool has_loss_alone = summary.loss.has_value() && !summary.accuracy.has_value();
  if (!has_loss_alone) table.AddRow({"accuracy", OrDash(summary.accuracy, DecimalText)});
  table.AddRow({"test loss", OrDash(summary.loss, DecimalText)});
  if (summary.top5.has_value()) table.AddRow({"top-5 accuracy", DecimalText(*summary.top5)});
  if (summary.perplexity.has_value()) table.AddRow({"perplexity", DecimalText(*summary.perplexity)});
  table.AddRow({"rounds", absl::StrCat(summary.rounds)});
  table.AddRow({"clients", absl::StrCat(summary.clients)});
  table.AddRow({"iterations per client", absl::StrCat(summary.iterations)});
  table.AddRow({"parameters", absl::StrCat(summary.parameters)});
  table.AddRow({"up, dense", ExactBytes(summary.dense_bytes_up)});
  table.AddRow({"up, payload", ExactBytes(summary.payload_bytes_up)});
  table.AddRow({"up, on the wire", ExactBytes(summary.wire_bytes_up)});
  table.AddRow({"down, dense", ExactBytes(summary.dense_bytes_down)});
  table.AddRow({"down, payload", ExactBytes(summary.payload_bytes_down)});
  table.AddRow({"down, on the wire", ExactBytes(summary.wire_bytes_down)});
  table.AddRow({"compression up, wire", OrDash(summary.compression_up_wire, RateText)});
  table.AddRow({"compression up, payload", OrDash(summary.compression_up_payload, RateText)});
  table.AddRow({"compression both ways, wire", OrDash(summary.compression_both_wire, RateText)});
  table.AddRow({"overhead per round, median",
                OrDash(summary.round_overhead_ms_p50, [](double ms) { return DurationText(ms / 1e3); })});
  table.AddRow({"time", DurationText(summary.seconds)});
  if (summary.below.has_value()) AddBelow(*summary.below, &table);
  return table.Render(color);
}

std::string CompressionUpText(const v1::Round& round) {
  return OrDash(CompressionRate(round.dense_bytes_up(), round.wire_bytes_up()), RateText);
}

std::string CompressionBothText(const v1::Round& round) {
  return OrDash(CompressionRate(round.dense_bytes_up() + round.dense_bytes_down(),
                                round.wire_bytes_up() + round.wire_bytes_down()),
                RateText);
}

std::string LocalStepsText(const v1::RunConfig& config) {
  const std::string steps = absl::StrCat(config.train().local_steps());
  const bool fixed = config.control().name().empty() || config.control().name() == "fixed";
  return fixed ? steps : absl::StrCat(steps, " (controller: ", config.control().name(), ")");
}

std::string RoundsCsv(const std::vector<v1::Round>& rounds) {
  std::string csv = CsvHeader(*v1::Round::descriptor());
  for (const v1::Round& round : rounds) csv += CsvRow(round);
  return csv;
}

bool HasLossAlone(const std::vector<EvaluatedPoint>& points) {
  return !points.empty() && std::none_of(points.begin(), points.end(),
                                         [](const EvaluatedPoint& point) { return point.accuracy.has_value(); });
}

std::vector<EvaluatedPoint> EvaluatedPoints(const std::vector<v1::Round>& rounds) {
  std::vector<EvaluatedPoint> points;
  uint64_t sent = 0, received = 0;
  for (const v1::Round& round : rounds) {
    sent += round.wire_bytes_up();
    received += round.wire_bytes_down();
    if (!round.has_accuracy() && !round.has_test_loss()) continue;
    EvaluatedPoint point{round.id(), sent, std::nullopt, std::nullopt, received};
    point.seconds = 1e-6 * static_cast<double>(round.committed_us() - rounds.front().opened_us());
    if (round.has_accuracy()) point.accuracy = round.accuracy();
    if (round.has_test_loss()) point.test_loss = round.test_loss();
    points.push_back(point);
  }
  return points;
}

}  // namespace terse
