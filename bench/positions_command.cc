#include "bench/positions_command.h"

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/report.h"
#include "bench/synthetic.h"
#include "bench/update_file.h"
#include "compression/position_coder_table.h"
#include "core/status.h"

namespace terse {
namespace {

constexpr char kEntropy[] = "log2 C(n,k) / k";

// Bits and positions, added up over tensors and clients, for each coder in table order and the entropy behind them.
class Tally {
 public:
  void Add(absl::Span<const uint32_t> positions, int64_t size) {
    if (positions.empty()) return;
    const double count = static_cast<double>(positions.size());
    std::vector<PositionCost> costs = PositionCosts(positions, size);
    costs.push_back({kEntropy, PositionEntropy(static_cast<int64_t>(positions.size()), size)});
    bits_.resize(costs.size());
    for (size_t i = 0; i < costs.size(); ++i) bits_[i].coder = costs[i].coder;
    for (size_t i = 0; i < costs.size(); ++i) bits_[i].bits_per_position += costs[i].bits_per_position * count;
    positions_ += count;
  }

  // One row of a table.
  void Report(const std::string& row, const std::string& table, std::vector<Metric>* metrics) const {
    if (positions_ == 0) return;
    metrics->push_back({"positions", row, positions_, {}, table});
    for (const PositionCost& sum : bits_) {
      metrics->push_back({sum.coder, row, sum.bits_per_position / positions_, {}, table});
    }
  }

 private:
  std::vector<PositionCost> bits_;  // not yet divided
  double positions_ = 0;
};

// The positions of one tensor, counted from its first element.
std::vector<uint32_t> InTensor(const std::vector<uint32_t>& positions, const TensorSpec& tensor) {
  const auto begin = std::lower_bound(positions.begin(), positions.end(), static_cast<uint32_t>(tensor.offset));
  const auto end = std::lower_bound(begin, positions.end(), static_cast<uint32_t>(tensor.offset + tensor.size));
  std::vector<uint32_t> local(begin, end);
  for (uint32_t& position : local) position -= static_cast<uint32_t>(tensor.offset);
  return local;
}

absl::StatusOr<int> RunPositionsCommand(const std::string& path) {
  TERSE_ASSIGN_OR_RETURN(const UpdateFile file, ReadUpdateFile(path));
  std::map<int64_t, std::vector<const RecordedUpdate*>> by_iteration;
  for (const RecordedUpdate& update : file.updates) by_iteration[update.iteration].push_back(&update);
  Report report;
  for (const auto& [iteration, updates] : by_iteration) {
    const std::string table = absl::StrCat("bits per position, iteration ", iteration);
    Tally all;
    for (const TensorSpec& tensor : file.layout.tensors()) {
      Tally tally;
      for (const RecordedUpdate* update : updates) {
        const std::vector<uint32_t> positions = InTensor(update->positions, tensor);
        tally.Add(positions, tensor.size);
        all.Add(positions, tensor.size);
      }
      tally.Report(absl::StrCat(tensor.name, " (", tensor.size, ")"), table, &report.metrics);
    }
    all.Report("all", table, &report.metrics);
  }
  std::cout << file.origin << "\n\n";
  report.PrintTables(&std::cout);
  return 0;
}

}  // namespace

void AddPositionsCommand(CLI::App* app, Command* chosen) {
  CLI::App* sub = app->add_subcommand("positions", "Bits a position of every position coder on recorded updates");
  const auto path = std::make_shared<std::string>();
  sub->add_option("--updates", *path, "File of `terse-bench updates`")->required()->check(CLI::ExistingFile);
  sub->callback([=] { *chosen = [path] { return RunPositionsCommand(*path); }; });
}

}  // namespace terse
