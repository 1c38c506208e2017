#include "learning/partition.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/random.h"
#include "core/status.h"
#include "learning/batch_stream.h"
#include "learning/portable_math.h"

namespace terse {
namespace {

// Keep the draws of a partition apart from the other uses of a run's seed, and from each other.
constexpr uint64_t kPartitionSalt = 0x706172746974696fULL;
constexpr uint64_t kDealSalt = 0x6465616c73686172ULL;
constexpr uint64_t kSharesSalt = 0x6469726963686c65ULL;

// The data that a row of the table cuts into shards, and for how many clients.
struct Cut {
  const DataSpec& spec;
  const Dataset& dataset;
  const int64_t clients;
  const uint64_t seed;
  int64_t count() const {
    return spec.examples > 0 ? std::min(spec.examples, dataset.train_count()) : dataset.train_count();
  }
};

std::vector<uint32_t> ShuffledOrder(const Cut& cut) {
  std::vector<uint32_t> order(cut.dataset.train_count());
  std::iota(order.begin(), order.end(), 0u);
  Shuffle(Random(cut.seed ^ kPartitionSalt), &order);
  order.resize(cut.count());
  return order;
}

// Texts stay in their order, so that what follows a symbol is what followed it there.
std::vector<uint32_t> OrderOf(const Cut& cut) {
  return cut.dataset.task == Task::kText ? std::vector<uint32_t>() : ShuffledOrder(cut);
}

// Piece `index` of `count` things cut into `pieces`: the first ones have one more.
DataRange EqualPiece(int64_t count, int64_t pieces, int64_t index) {
  const int64_t size = count / pieces, longer = count % pieces;
  const int64_t begin = index * size + std::min(index, longer);
  return {begin, begin + size + (index < longer ? 1 : 0)};
}

absl::StatusOr<Partition> CutAll(const Cut& cut) {
  return Partition{{}, std::vector<std::vector<DataRange>>(cut.clients, {{0, cut.count()}})};
}

absl::StatusOr<Partition> CutIid(const Cut& cut) {
  Partition partition{OrderOf(cut), {}};
  for (int64_t i = 0; i < cut.clients; ++i) partition.clients.push_back({EqualPiece(cut.count(), cut.clients, i)});
  return partition;
}

absl::StatusOr<Partition> CutByFile(const Cut& cut) {
  const std::vector<int64_t>& starts = cut.dataset.file_starts;
  const int64_t files = starts.size();
  if (files < cut.clients) {
    return absl::InvalidArgumentError(
        absl::StrCat("partition 'by_file': the training set comes in ", std::max<int64_t>(files, 1), " files for ",
                     cut.clients, " clients; name a folder of at least as many files, or use another partition"));
  }
  Partition partition{{}, std::vector<std::vector<DataRange>>(cut.clients)};
  for (int64_t file = 0; file < files; ++file) {
    const int64_t end = file + 1 < files ? starts[file + 1] : cut.count();
    if (end > starts[file]) partition.clients[file % cut.clients].push_back({starts[file], end});
  }
  return partition;
}

absl::StatusOr<Partition> CutByPowerLaw(const Cut& cut) {
  const double exponent = cut.spec.exponent;
  if (!(exponent >= 0 && exponent <= 10)) {
    return absl::InvalidArgumentError(absl::StrCat("data.exponent is ", exponent, "; use 0 to 10"));
  }
  const int64_t least = cut.dataset.task == Task::kText ? 2 : 1;
  std::vector<double> shares;
  for (int64_t i = 1; i <= cut.clients; ++i) shares.push_back(PortableExp(-exponent * PortableLog(i)));
  const double total = std::accumulate(shares.begin(), shares.end(), 0.0);
  const int64_t spare = cut.count() - least * cut.clients;
  std::vector<int64_t> sizes;
  for (const double share : shares) sizes.push_back(least + static_cast<int64_t>(spare * (share / total)));
  // Rounding down leaves less than one example a client.
  int64_t left = cut.count() - std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  for (int64_t i = 0; left > 0; ++i, --left) ++sizes[i % cut.clients];
  Partition partition{OrderOf(cut), {}};
  int64_t begin = 0;
  for (const int64_t size : sizes) {
    partition.clients.push_back({{begin, begin + size}});
    begin += size;
  }
  return partition;
}

int64_t LabelOf(const Dataset& dataset, uint32_t example) {
  return static_cast<int64_t>(dataset.train.targets.Number(example));
}

// All examples by label, shuffled within each.
std::vector<uint32_t> OrderByLabel(const Cut& cut) {
  std::vector<uint32_t> order = ShuffledOrder(cut);
  std::stable_sort(order.begin(), order.end(),
                   [&cut](uint32_t a, uint32_t b) { return LabelOf(cut.dataset, a) < LabelOf(cut.dataset, b); });
  return order;
}

absl::StatusOr<Partition> CutByLabelShards(const Cut& cut) {
  const int64_t each = cut.spec.labels_each;
  if (each < 1 || each > cut.count() / cut.clients) {
    return absl::InvalidArgumentError(absl::StrCat("data.labels_each is ", each, "; use 1 to ",
                                                   cut.count() / cut.clients, " for ", cut.clients, " clients of ",
                                                   cut.count(), " examples"));
  }
  std::vector<uint32_t> pieces(cut.clients * each);
  std::iota(pieces.begin(), pieces.end(), 0u);
  Shuffle(Random(cut.seed ^ kDealSalt), &pieces);
  Partition partition{OrderByLabel(cut), std::vector<std::vector<DataRange>>(cut.clients)};
  for (size_t i = 0; i < pieces.size(); ++i) {
    partition.clients[i / each].push_back(EqualPiece(cut.count(), pieces.size(), pieces[i]));
  }
  return partition;
}

// Returns the end of each client's share of `count` examples of a class: `count` times a growing sum of Dirichlet
// draws.
std::vector<int64_t> DirichletEnds(const Cut& cut, int64_t label, int64_t count) {
  Random random(cut.seed ^ kSharesSalt, label);
  std::vector<double> logs(cut.clients);
  for (double& log : logs) log = LogGammaDraw(cut.spec.alpha, &random);
  const double largest = *std::max_element(logs.begin(), logs.end());
  std::vector<double> sums;
  double sum = 0;
  for (const double log : logs) sums.push_back(sum += PortableExp(log - largest));
  std::vector<int64_t> ends;
  for (const double upto : sums) ends.push_back(static_cast<int64_t>(count * (upto / sum)));
  return ends;
}

// Gives every client without examples one of the largest client's.
void FillEmpty(std::vector<std::vector<uint32_t>>* parts) {
  for (std::vector<uint32_t>& part : *parts) {
    if (!part.empty()) continue;
    const auto largest = std::max_element(parts->begin(), parts->end(),
                                          [](const auto& a, const auto& b) { return a.size() < b.size(); });
    part.push_back(largest->back());
    largest->pop_back();
  }
}

absl::StatusOr<Partition> CutByDirichlet(const Cut& cut) {
  if (!(cut.spec.alpha >= 1e-3 && cut.spec.alpha <= 1e6)) {
    return absl::InvalidArgumentError(absl::StrCat("data.alpha is ", cut.spec.alpha, "; use 0.001 to 1000000"));
  }
  const std::vector<uint32_t> order = OrderByLabel(cut);
  std::vector<std::vector<uint32_t>> parts(cut.clients);
  for (size_t begin = 0; begin < order.size();) {
    const int64_t label = LabelOf(cut.dataset, order[begin]);
    size_t end = begin;
    while (end < order.size() && LabelOf(cut.dataset, order[end]) == label) ++end;
    const std::vector<int64_t> ends = DirichletEnds(cut, label, end - begin);
    int64_t done = 0;
    for (int64_t i = 0; i < cut.clients; ++i) {
      const auto from = order.begin() + begin;
      parts[i].insert(parts[i].end(), from + done, from + ends[i]);
      done = ends[i];
    }
    begin = end;
  }
  FillEmpty(&parts);
  Partition partition;
  for (const std::vector<uint32_t>& part : parts) {
    const int64_t begin = partition.order.size();
    partition.order.insert(partition.order.end(), part.begin(), part.end());
    partition.clients.push_back({{begin, static_cast<int64_t>(partition.order.size())}});
  }
  return partition;
}

struct PartitionRow {
  const char* name;
  bool needs_labels;
  bool shuffles;  // so that it can leave examples out
  absl::StatusOr<Partition> (*cut)(const Cut& cut);
};

constexpr PartitionRow kPartitions[] = {
    {"all", false, false, CutAll},
    {"iid", false, true, CutIid},
    {"label_shards", true, true, CutByLabelShards},
    {"dirichlet", true, true, CutByDirichlet},
    {"by_file", false, false, CutByFile},
    {"power_law", false, true, CutByPowerLaw},
};

absl::Status CheckCut(const PartitionRow& row, const Cut& cut) {
  if (cut.spec.examples != 0 && (cut.spec.examples < 0 || !row.shuffles || cut.dataset.task == Task::kText)) {
    return absl::InvalidArgumentError(absl::StrCat("data.examples = ", cut.spec.examples, " draws from what is ",
                                                   "shuffled, which partition '", row.name,
                                                   "' of this data set is not; set it to 0"));
  }
  const int64_t least = cut.dataset.task == Task::kText ? 2 : 1;
  if (cut.clients < 1 || cut.count() / least < cut.clients ||
      cut.count() > int64_t{std::numeric_limits<uint32_t>::max()}) {
    return absl::InvalidArgumentError(
        absl::StrCat(cut.count(), cut.dataset.task == Task::kText ? " symbols" : " training examples",
                     " cannot be cut into the parts of ", cut.clients, " clients; have fewer clients or more data"));
  }
  if (row.needs_labels && cut.dataset.task != Task::kClasses) {
    return absl::InvalidArgumentError(
        absl::StrCat("partition '", row.name, "' goes by class labels, which a data set of ",
                     cut.dataset.task == Task::kText ? "text" : "values", " has not; use another data.partition"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Partition> CutAndCheck(const PartitionRow& row, const Cut& cut) {
  TERSE_RETURN_IF_ERROR(CheckCut(row, cut));
  TERSE_ASSIGN_OR_RETURN(Partition partition, row.cut(cut));
  const int64_t least = cut.dataset.task == Task::kText ? 2 : 1;
  for (int64_t i = 0; i < cut.clients; ++i) {
    if (partition.SizeOf(i) >= least) continue;
    return absl::InvalidArgumentError(absl::StrCat("partition '", row.name, "' leaves client ", i,
                                                   " without data; fill its files, or have fewer clients"));
  }
  return partition;
}

absl::StatusOr<Partition> CutForShard(const DataSpec& spec, const Dataset& dataset, const Shard& shard, uint64_t seed) {
  if (shard.count >= 1 && shard.index >= 0 && shard.index < shard.count) {
    return MakePartition(spec, dataset, shard.count, seed);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("shard ", shard.index, " of ", shard.count, " does not exist; shards are numbered from 0"));
}

// Returns the spread of the numbers, as "2 to 4, median 2".
std::string Spread(std::vector<int64_t> numbers) {
  std::sort(numbers.begin(), numbers.end());
  return absl::StrCat(numbers.front(), " to ", numbers.back(), ", median ", numbers[numbers.size() / 2]);
}

}  // namespace

int64_t Partition::SizeOf(int64_t client) const {
  int64_t size = 0;
  for (const DataRange& range : clients[client]) size += range.size();
  return size;
}

std::vector<uint32_t> Partition::ExamplesOf(int64_t client) const {
  std::vector<uint32_t> examples;
  examples.reserve(SizeOf(client));
  for (const DataRange& range : clients[client]) {
    for (int64_t i = range.begin; i < range.end; ++i) {
      examples.push_back(order.empty() ? static_cast<uint32_t>(i) : order[i]);
    }
  }
  return examples;
}

std::vector<std::string> PartitionNames() {
  std::vector<std::string> names;
  for (const PartitionRow& row : kPartitions) names.push_back(row.name);
  return names;
}

absl::StatusOr<Partition> MakePartition(const DataSpec& spec, const Dataset& dataset, int64_t clients, uint64_t seed) {
  for (const PartitionRow& row : kPartitions) {
    if (spec.partition == row.name) return CutAndCheck(row, {spec, dataset, clients, seed});
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "partition '", spec.partition, "' is not known; data.partition may be: ", absl::StrJoin(PartitionNames(), ", ")));
}

absl::StatusOr<std::vector<uint32_t>> PartitionExamples(const DataSpec& spec, const Dataset& dataset,
                                                        const Shard& shard, uint64_t seed) {
  TERSE_ASSIGN_OR_RETURN(const Partition partition, CutForShard(spec, dataset, shard, seed));
  return partition.ExamplesOf(shard.index);
}

absl::StatusOr<std::vector<DataRange>> PartitionText(const DataSpec& spec, const Dataset& dataset, const Shard& shard,
                                                     uint64_t seed) {
  TERSE_ASSIGN_OR_RETURN(Partition partition, CutForShard(spec, dataset, shard, seed));
  return std::move(partition.clients[shard.index]);
}

std::string DescribePartition(const Partition& partition, const Dataset& dataset) {
  std::vector<int64_t> sizes, labels;
  for (size_t i = 0; i < partition.clients.size(); ++i) {
    sizes.push_back(partition.SizeOf(i));
    if (dataset.task != Task::kClasses) continue;
    std::set<int64_t> seen;
    for (const uint32_t example : partition.ExamplesOf(i)) seen.insert(LabelOf(dataset, example));
    labels.push_back(seen.size());
  }
  const absl::string_view unit = dataset.task == Task::kText ? "symbols" : "examples";
  std::string text = absl::StrCat(sizes.size(), " clients, ", unit, " of each: ", Spread(sizes));
  if (!labels.empty()) absl::StrAppend(&text, "; labels of each: ", Spread(labels));
  return text;
}

}  // namespace terse
