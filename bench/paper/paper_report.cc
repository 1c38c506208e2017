#include "bench/paper/paper_report.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <memory>
#include <thread>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "bench/measure.h"
#include "core/version.h"
#include "learning/runtime.h"
#include "tersectl/text_table.h"

namespace terse {
namespace {

using Json = nlohmann::ordered_json;

bool IsPerplexity(const PaperRow& row) { return row.workload->metric == PaperMetric::kPerplexity; }

Json MetricOf(const PaperResult& result) {
  return result.summary.at(IsPerplexity(result.row) ? "perplexity" : "accuracy");
}

std::string MetricText(const Json& value, bool perplexity) {
  if (value.is_null()) return "-";
  return perplexity ? absl::StrFormat("%.3f", value.get<double>()) : DecimalText(value.get<double>());
}

std::string TrainLossText(const PaperResult& result) {
  return MetricText(result.summary.value("train_loss", Json()), /*perplexity=*/false);
}

std::string RateOf(const Json& value) { return value.is_null() ? "-" : RateText(value.get<double>()); }

std::string FirstLineOf(const char* command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command, "r"), pclose);
  char line[256] = "";
  if (pipe == nullptr || std::fgets(line, sizeof line, pipe.get()) == nullptr) return "";
  return std::string(absl::StripAsciiWhitespace(line));
}

std::string IterationRateText(const Json& value) {
  return value.is_null() ? "-" : absl::StrFormat("%.3g", value.get<double>());
}

double PerClient(const PaperResult& result, const char* key) {
  return result.summary.at(key).get<double>() / static_cast<double>(result.row.workload->clients);
}

double BothDirections(const PaperResult& result) {
  return PerClient(result, "wire_bytes_up") + PerClient(result, "wire_bytes_down");
}

// Returns the names of the columns between the metric, or the method, and the iterations.
std::vector<absl::string_view> ColumnNames(PaperColumns columns) {
  switch (columns) {
    case PaperColumns::kBothDirections:
      return {"up, KB", "down, KB", "both, KB", "against federated averaging"};
    case PaperColumns::kBestFixed:
      return {"reaches the target", "up, payload, KB", "wire, KB", "payload, against the best fixed pair", "wire"};
    case PaperColumns::kTime:
      return {"training loss", "time", "up, MB", "down, MB"};
    case PaperColumns::kBits:
      return {"bits", "against the first", "paper", "paper", "rounds", "least loss", "bits, first snapshot below"};
    case PaperColumns::kLossAndBytes:
      return {"training loss", "up, payload, MB", "down", "wire, both", "bits up an element"};
    case PaperColumns::kCompression:
      break;
  }
  return {"paper", "compression, wire", "payload", "paper"};
}

std::string HeadOf(const PaperRow& row) {
  std::vector<absl::string_view> names = ColumnNames(row.table->columns);
  // Where bits are compared, the metric comes last.
  names.insert(row.table->columns == PaperColumns::kBits ? names.end() : names.begin(),
               IsPerplexity(row) ? "perplexity" : "accuracy");
  names.insert(names.begin(), "method");
  names.insert(names.end(), {"iterations", "a second"});
  const std::vector<absl::string_view> rule(names.size(), "---");
  return absl::StrCat("| ", absl::StrJoin(names, " | "), " |\n|", absl::StrJoin(rule, "|"), "|\n");
}

std::string CompressionColumns(const PaperResult& result) {
  const PaperRow& row = result.row;
  return absl::StrCat(row.figures.has_value() ? MetricText(row.figures->metric, IsPerplexity(row)) : "-", " | ",
                      RateOf(result.summary.at("compression_up_wire")), " | ",
                      RateOf(result.summary.at("compression_up_payload")), " | ",
                      row.figures.has_value() ? RateText(row.figures->compression) : "-");
}

// `results` holds the row that others are compared with, or it is not shown.
std::string BothDirectionsColumns(const PaperResult& result, const std::vector<PaperResult>& results) {
  std::string rate = "-";
  for (const PaperResult& other : results) {
    const bool same = other.row.workload == result.row.workload && other.row.method->name == "fedavg";
    if (same) rate = RateText(BothDirections(other) / BothDirections(result));
  }
  return absl::StrFormat("%.1f | %.1f | %.1f | %s", PerClient(result, "wire_bytes_up") / 1e3,
                         PerClient(result, "wire_bytes_down") / 1e3, BothDirections(result) / 1e3, rate);
}

// The training loss is the mean of the last tenth of the rounds; bytes are those of one client.
std::string TimeColumns(const PaperResult& result) {
  return absl::StrFormat("%s | %s | %.1f | %.1f", TrainLossText(result),
                         DurationText(result.summary.at("seconds").get<double>()),
                         PerClient(result, "wire_bytes_up") / 1e6, PerClient(result, "wire_bytes_down") / 1e6);
}

// Bytes are those of one client; the elements are those that its messages carry.
std::string LossAndBytesColumns(const PaperResult& result) {
  const Json bits = result.summary.value("bits_an_element", Json());
  return absl::StrFormat("%s | %.3f | %.3f | %.3f | %s", TrainLossText(result), PayloadUpPerClient(result) / 1e6,
                         PerClient(result, "payload_bytes_down") / 1e6, BothDirections(result) / 1e6,
                         bits.is_null() ? "-" : absl::StrFormat("%.3f", bits.get<double>()));
}

std::string BitsText(const Json& bits) {
  return bits.is_null() ? "not reached" : absl::StrFormat("%.3g", bits.get<double>());
}

// Returns the columns that compare the bits with those of the workload's first row, ours and the paper's.
std::string BitsColumns(const PaperResult& result, const std::vector<PaperResult>& results) {
  std::string rate = "-", paper = "-", paper_rate = "-";
  const auto first = std::find_if(results.begin(), results.end(), [&](const PaperResult& other) {
    return other.row.workload == result.row.workload && other.row.method == &other.row.table->methods.front();
  });
  const Json& bits = result.summary.at("bits");
  if (first != results.end() && !bits.is_null() && !first->summary.at("bits").is_null()) {
    rate = RateText(first->summary.at("bits").get<double>() / bits.get<double>());
  }
  const auto& figures = result.row.figures;
  if (figures.has_value() && figures->bits > 0) {
    paper = absl::StrFormat("%.3g", figures->bits);
    paper_rate = RateText(result.row.workload->figures.front().bits / figures->bits);
  }
  const Json& rounds = result.summary.at("target_rounds");
  const Json& least = result.summary.at("least_loss");
  return absl::StrCat(BitsText(bits), " | ", rate, " | ", paper, " | ", paper_rate, " | ",
                      rounds.is_null() ? "-" : rounds.dump(), " | ",
                      least.is_null() ? "-" : DecimalText(least.get<double>()), " | ",
                      BitsText(result.summary.at("snapshot_bits")), " | ", MetricText(MetricOf(result), false));
}

double MetricNumber(const PaperResult& result) {
  const Json metric = MetricOf(result);
  return metric.is_null() ? std::numeric_limits<double>::quiet_NaN() : metric.get<double>();
}

// Returns the columns that compare a row with the one that sent the fewest bytes of those that change nothing and reach
// the target.
std::string BestFixedColumns(const PaperResult& result, const std::vector<PaperResult>& results) {
  std::string reaches = "-", payload = "-", wire = "-";
  if (const auto best = BestFixedOf(results, *result.row.workload); best.has_value()) {
    const PaperResult& fixed = results[best->row];
    reaches = Reaches(MetricNumber(result), best->target, IsPerplexity(result.row)) ? "yes" : "no";
    payload = absl::StrFormat("%.2f", PayloadUpPerClient(result) / PayloadUpPerClient(fixed));
    wire = absl::StrFormat("%.2f", PerClient(result, "wire_bytes_up") / PerClient(fixed, "wire_bytes_up"));
    if (&fixed == &result) reaches += ", the best fixed pair";
  }
  return absl::StrFormat("%s | %.1f | %.1f | %s | %s", reaches, PayloadUpPerClient(result) / 1e3,
                         PerClient(result, "wire_bytes_up") / 1e3, payload, wire);
}

// Returns the columns between a row's title and its iterations (ColumnNames).
std::string ColumnsOf(const PaperResult& result, const std::vector<PaperResult>& results) {
  if (result.row.table->columns == PaperColumns::kBits) return BitsColumns(result, results);
  const std::string metric = MetricText(MetricOf(result), IsPerplexity(result.row));
  switch (result.row.table->columns) {
    case PaperColumns::kBothDirections:
      return absl::StrCat(metric, " | ", BothDirectionsColumns(result, results));
    case PaperColumns::kTime:
      return absl::StrCat(metric, " | ", TimeColumns(result));
    case PaperColumns::kBestFixed:
      return absl::StrCat(metric, " | ", BestFixedColumns(result, results));
    case PaperColumns::kLossAndBytes:
      return absl::StrCat(metric, " | ", LossAndBytesColumns(result));
    case PaperColumns::kCompression:
    case PaperColumns::kBits:
      break;
  }
  return absl::StrCat(metric, " | ", CompressionColumns(result));
}

void AddLossAndBytes(const PaperResult& result, Json* row) {
  for (const char* key : {"paper_metric", "paper_compression"}) row->erase(key);
  (*row)["payload_bytes_up"] = PayloadUpPerClient(result);
  (*row)["payload_bytes_down"] = PerClient(result, "payload_bytes_down");
  (*row)["bits_an_element"] = result.summary.value("bits_an_element", Json());
}

void AddBestFixed(const PaperResult& result, const std::vector<PaperResult>& results, Json* row) {
  for (const char* key : {"paper_metric", "paper_compression"}) row->erase(key);
  (*row)["payload_bytes_up"] = PayloadUpPerClient(result);
  const auto best = BestFixedOf(results, *result.row.workload);
  if (!best.has_value()) return;
  (*row)["target"] = best->target;
  (*row)["tolerance"] = result.row.workload->tolerance;
  (*row)["best_fixed"] = &results[best->row] == &result;
  (*row)["reaches_target"] = Reaches(MetricNumber(result), best->target, IsPerplexity(result.row));
  (*row)["against_best_fixed"] = PayloadUpPerClient(result) / PayloadUpPerClient(results[best->row]);
}

}  // namespace

double PayloadUpPerClient(const PaperResult& result) { return PerClient(result, "payload_bytes_up"); }

std::optional<BestFixed> BestFixedOf(const std::vector<PaperResult>& results, const PaperWorkload& workload) {
  std::vector<FixedPoint> points;
  for (const PaperResult& result : results) {
    const bool fixed = result.row.workload == &workload && result.row.method->budget_share == 0;
    points.push_back({fixed, MetricNumber(result), PayloadUpPerClient(result)});
  }
  return FindBestFixed(points, workload.tolerance, workload.metric == PaperMetric::kPerplexity);
}

Json PaperJson(const std::vector<PaperResult>& results, const PaperScale& scale) {
  Json rows = Json::array();
  for (const PaperResult& result : results) {
    const auto& figures = result.row.figures;
    rows.push_back({{"model", result.row.workload->name},
                    {"method", result.row.method->name},
                    {"iterations", result.row.iterations},
                    {"accuracy", result.summary.at("accuracy")},
                    {"perplexity", result.summary.at("perplexity")},
                    {"compression_payload", result.summary.at("compression_up_payload")},
                    {"compression_wire", result.summary.at("compression_up_wire")},
                    {"wire_bytes_up", PerClient(result, "wire_bytes_up")},
                    {"wire_bytes_down", PerClient(result, "wire_bytes_down")},
                    {"seconds", result.summary.at("seconds")},
                    {"iterations_a_second", result.summary.value("iterations_a_second", Json())},
                    {"train_loss", result.summary.value("train_loss", Json())},
                    {"paper_metric", figures.has_value() ? Json(figures->metric) : Json()},
                    {"paper_compression", figures.has_value() ? Json(figures->compression) : Json()}});
    if (result.row.table->columns == PaperColumns::kLossAndBytes) AddLossAndBytes(result, &rows.back());
    if (result.row.table->columns == PaperColumns::kBestFixed) AddBestFixed(result, results, &rows.back());
    if (result.row.table->columns != PaperColumns::kBits) continue;
    Json& row = rows.back();
    for (const char* key : {"paper_metric", "paper_compression"}) row.erase(key);
    for (const char* key : {"bits", "target_rounds", "snapshot_bits", "least_loss"}) row[key] = result.summary.at(key);
    row["target_loss"] = result.row.workload->target_loss;
    row["paper_bits"] = figures.has_value() && figures->bits > 0 ? Json(figures->bits) : Json();
  }
  return {{"scale", scale.scale}, {"seed", scale.seed}, {"rows", rows}};
}

std::string PaperMarkdown(const std::vector<PaperResult>& results) {
  std::string text;
  const PaperWorkload* workload = nullptr;
  for (const PaperResult& result : results) {
    const PaperRow& row = result.row;
    if (row.workload != workload) {
      workload = row.workload;
      absl::StrAppend(&text, text.empty() ? "" : "\n", workload->title, ", ", workload->clients, " clients\n\n",
                      HeadOf(row));
    }
    absl::StrAppend(&text, "| ", row.method->title, " | ", ColumnsOf(result, results), " | ", row.iterations, " | ",
                    IterationRateText(result.summary.value("iterations_a_second", Json())), " |\n");
  }
  return text;
}

std::string PaperSection(const std::vector<PaperResult>& results, const PaperScale& scale, const std::string& command) {
  const std::string commit = FirstLineOf("git describe --always --dirty --abbrev=12 2>/dev/null");
  const std::string shortened =
      scale.scale < 1
          ? absl::StrFormat("**Shortened**: %g of the paper's iterations, and of its schedule. ", scale.scale)
          : "Full length. ";
  return absl::StrCat("## ", results.front().row.table->title, "\n\n```sh\n", command, "\n```\n\n", shortened,
                      absl::FormatTime("%Y-%m-%d", absl::Now(), absl::UTCTimeZone()), ", release ", kVersion,
                      commit.empty() ? "" : absl::StrCat(", commit ", commit), ", ",
                      std::thread::hardware_concurrency(), " cores (", CpuName(), "), LibTorch ", LibTorchVersion(),
                      ", seed ", scale.seed, ".\n\n", PaperMarkdown(results));
}

}  // namespace terse
