#include "bench/paper/paper_table.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "bench/paper/bidirectional_tables.h"
#include "bench/paper/double_quantization_tables.h"
#include "bench/paper/early_tables.h"
#include "bench/paper/joint_tables.h"
#include "bench/paper/mcgq_tables.h"
#include "bench/paper/mqgrad_tables.h"
#include "bench/paper/qsgd_tables.h"
#include "bench/paper/sbc_tables.h"
#include "bench/paper/sparseloco_tables.h"

namespace terse {
namespace {

// Replaces every {x} by x * scale, at least 1.
std::string Scaled(absl::string_view text, double scale) {
  std::string out;
  while (true) {
    const size_t open = text.find('{');
    absl::StrAppend(&out, text.substr(0, open));
    if (open == absl::string_view::npos) return out;
    const size_t close = text.find('}', open);
    double value = 0;
    (void)absl::SimpleAtod(text.substr(open + 1, close - open - 1), &value);
    absl::StrAppend(&out, std::max<int64_t>(1, std::llround(value * scale)));
    text.remove_prefix(close + 1);
  }
}

// "[name]" and its keys; nothing without keys.
std::string Section(absl::string_view name, const std::string& keys) {
  return keys.empty() ? "" : absl::StrCat("\n[", name, "]\n", keys);
}

std::string ServerKeys(const PaperWorkload& workload, const PaperMethod& method, size_t number, double other_rate) {
  if (method.server.empty()) return "";
  std::string keys = method.server;
  if (workload.epoch_length > 0) absl::StrAppend(&keys, "epoch_length = ", workload.epoch_length, "\n");
  if (workload.server_rates.empty()) return keys;
  return absl::StrCat(keys, "learning_rate = ", other_rate > 0 ? other_rate : workload.server_rates[number], "\n");
}

std::string ControlKeys(const PaperWorkload& workload, const PaperMethod& method, const PaperScale& scale) {
  if (method.budget_share == 0) return method.control;
  return absl::StrCat(method.control, Scaled(workload.control_keys, scale.scale),
                      "budget = ", std::llround(scale.budget), "\n");
}

// Returns the comment on the link, which results depend on and which no key of a run file sets.
std::string LinkText(const PaperWorkload& workload) {
  if (workload.link_bytes_per_second == 0) return "";
  return absl::StrCat("# Every client's link: ", workload.link_bytes_per_second, " bytes a second each way.\n");
}

}  // namespace

const std::vector<PaperTable>& PaperTables() {
  static const auto& tables = *new std::vector<PaperTable>{
      SbcTable2(),  SbcFigure3(),         McgqTable3(),   McgqTable4(),
      QsgdTables(), BidirectionalTable(), MqgradFigure(), DoubleQuantizationTable(),
      JointTable(), SparseLoCoTable(),    EarlyTable(),   DelayTable(),
  };
  return tables;
}

PaperRow MakePaperRow(const PaperTable& table, const PaperWorkload& workload, size_t method, const PaperScale& scale) {
  PaperRow row;
  row.table = &table;
  row.workload = &workload;
  row.method = &table.methods[method];
  if (method < workload.figures.size()) row.figures = workload.figures[method];
  const auto iterations = std::max<int64_t>(1, std::llround(static_cast<double>(workload.iterations) * scale.scale));
  int64_t steps = row.method->local_steps > 0 ? row.method->local_steps : workload.averaging_steps;
  steps = std::min(steps, iterations);
  row.rounds = std::max<int64_t>(1, iterations / steps);
  row.iterations = row.rounds * steps;
  row.key = absl::StrCat(workload.name, "-", row.method->name);
  row.run = absl::StrCat(
      "# ", workload.title, ", ", row.method->title, "; ", table.title, ".\n", LinkText(workload), "name = '", row.key,
      "'\nseed = ", scale.seed, "\ndurability = 'relaxed'\n\n[model]\n", workload.model, "\n[data]\n", workload.data,
      "\n[train]\nlocal_steps = ", steps, "\n", workload.train, "\n[train.optimizer]\n", workload.optimizer,
      workload.momentum ? row.method->optimizer_keys : "",
      Section("train.schedule", Scaled(workload.schedule, scale.scale)),
      Section("codec", row.method->codec + workload.codec_keys), Section("downstream", row.method->downstream),
      Section("server", ServerKeys(workload, *row.method, method, scale.server_rate)),
      Section("aggregation", row.method->aggregation), Section("control", ControlKeys(workload, *row.method, scale)),
      Section("limits", row.method->budget_share > 0 ? absl::StrCat("iterations = ", row.iterations, "\n") : ""),
      "\n[rounds]\ncount = ", row.rounds, "\nclients = ", workload.clients, "\n", workload.round_keys,
      "deadline_seconds = 31536000\nevaluate_every = ", std::max<int64_t>(1, row.rounds / scale.evaluations),
      "\n\n[checkpoints]\nevery = ", row.method->checkpoint_every, "\n");
  return row;
}

}  // namespace terse
