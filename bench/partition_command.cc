#include "bench/partition_command.h"

#include <unistd.h>

#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/status.h"
#include "learning/datasets/dataset_table.h"
#include "learning/partition.h"
#include "proto/run_config_convert.h"
#include "proto/run_config_loader.h"
#include "tersectl/text_table.h"

namespace terse {
namespace {

struct PartitionOptions {
  std::string run;
  std::string data;
  int64_t clients = 0;
  bool json = false;
};

// Examples of each class; empty for data without classes.
using LabelCounts = std::map<int64_t, int64_t>;

LabelCounts CountLabels(const Partition& partition, const Dataset& dataset, int64_t client) {
  LabelCounts counts;
  if (dataset.task != Task::kClasses) return counts;
  for (const uint32_t example : partition.ExamplesOf(client)) {
    ++counts[static_cast<int64_t>(dataset.train.targets.Number(example))];
  }
  return counts;
}

nlohmann::ordered_json PartitionJson(const Partition& partition, const Dataset& dataset) {
  auto clients = nlohmann::ordered_json::array();
  for (size_t i = 0; i < partition.clients.size(); ++i) {
    nlohmann::ordered_json labels = nlohmann::ordered_json::object();
    for (const auto& [label, count] : CountLabels(partition, dataset, i)) labels[absl::StrCat(label)] = count;
    clients.push_back({{"client", i}, {"size", partition.SizeOf(i)}, {"labels", labels}});
  }
  return {{"summary", DescribePartition(partition, dataset)}, {"clients", clients}};
}

std::string PartitionText(const Partition& partition, const Dataset& dataset) {
  const bool classes = dataset.task == Task::kClasses;
  std::vector<TextTable::Column> columns = {{"client", true}, {classes ? "examples" : "size", true}};
  if (classes) columns.push_back({"label:examples"});
  TextTable table(columns);
  for (size_t i = 0; i < partition.clients.size(); ++i) {
    std::vector<std::string> row = {absl::StrCat(i), absl::StrCat(partition.SizeOf(i))};
    if (classes) row.push_back(absl::StrJoin(CountLabels(partition, dataset, i), " ", absl::PairFormatter(":")));
    table.AddRow(std::move(row));
  }
  return absl::StrCat(table.Render(isatty(STDOUT_FILENO) != 0), DescribePartition(partition, dataset), "\n");
}

absl::StatusOr<int> RunPartition(const PartitionOptions& options) {
  TERSE_ASSIGN_OR_RETURN(const v1::RunConfig file, LoadRunConfig(options.run));
  TERSE_ASSIGN_OR_RETURN(const RunConfig run, ToCore(file));
  TERSE_ASSIGN_OR_RETURN(const Dataset dataset, LoadDataset(run.data, options.data));
  const int64_t clients = options.clients > 0 ? options.clients : run.rounds.clients;
  TERSE_ASSIGN_OR_RETURN(const Partition partition, MakePartition(run.data, dataset, clients, run.seed));
  std::cout << (options.json ? PartitionJson(partition, dataset).dump(2) + "\n" : PartitionText(partition, dataset));
  return 0;
}

}  // namespace

void AddPartitionCommand(CLI::App* app, Command* chosen) {
  CLI::App* sub = app->add_subcommand("partition", "How the training data of a run is shared among its clients");
  const auto options = std::make_shared<PartitionOptions>();
  sub->add_option("--run-file", options->run, "Run file (TOML)")->required()->check(ExistingFile());
  sub->add_option("--data", options->data, "Directory of the data, as the clients have it")->check(ExistingFolder());
  sub->add_option("--clients", options->clients, "Instead of the run's rounds.clients")->check(WholeNumber(1, 1000000));
  sub->add_flag("--json", options->json, "JSON for programs");
  sub->callback([=] { *chosen = [options] { return RunPartition(*options); }; });
}

}  // namespace terse
