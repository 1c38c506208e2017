// The results of the runs of a paper's table, for people, for programs and for the record.
#ifndef TERSE_BENCH_PAPER_PAPER_REPORT_H_
#define TERSE_BENCH_PAPER_PAPER_REPORT_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/paper/best_fixed.h"
#include "bench/paper/paper_table.h"

namespace terse {

// A row that was run. `summary` is what `tersectl summary --json` prints.
struct PaperResult {
  PaperRow row;
  nlohmann::ordered_json summary;
};

// Payload that a client sent, in bytes.
double PayloadUpPerClient(const PaperResult& result);

// Finds the best fixed row among the results of the workload, by their payload; BestFixed::row is an index in
// `results`.
std::optional<BestFixed> BestFixedOf(const std::vector<PaperResult>& results, const PaperWorkload& workload);

// Keys: model method iterations accuracy perplexity compression_payload compression_wire wire_bytes_up wire_bytes_down
// (per client) seconds train_loss (mean of the last tenth of the rounds) paper_metric paper_compression; null where
// there is none. For kBits the last two are replaced by: bits target_rounds snapshot_bits least_loss (bits_to_loss.h)
// target_loss paper_bits. For kBestFixed these follow: payload_bytes_up (per client) target tolerance best_fixed (this
// row is it) reaches_target against_best_fixed (payload, a ratio). For kLossAndBytes the last two are replaced by:
// payload_bytes_up payload_bytes_down (per client) bits_an_element.
nlohmann::ordered_json PaperJson(const std::vector<PaperResult>& results, const PaperScale& scale);

// One Markdown table a workload, our figures beside the paper's.
std::string PaperMarkdown(const std::vector<PaperResult>& results);

// A section for the record: title, command, date, commit, hardware, and the tables. `scale` below 1 is said.
std::string PaperSection(const std::vector<PaperResult>& results, const PaperScale& scale, const std::string& command);

}  // namespace terse

#endif  // TERSE_BENCH_PAPER_PAPER_REPORT_H_
