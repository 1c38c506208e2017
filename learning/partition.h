// Divides the training data between the clients. Everything follows from the data, the settings, the number of clients
// and the seed, by operations that give the same bits on every machine: each client cuts its own part.
#ifndef TERSE_LEARNING_PARTITION_H_
#define TERSE_LEARNING_PARTITION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/run_config.h"
#include "core/trainer.h"
#include "learning/datasets/dataset.h"

namespace terse {

// Positions begin..end-1 of the training examples' order, or symbols of the training text.
struct DataRange {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
  friend bool operator==(const DataRange& a, const DataRange& b) { return a.begin == b.begin && a.end == b.end; }
};

// The parts of all clients.
struct Partition {
  std::vector<uint32_t> order;                  // example numbers that `ranges` cuts; empty: in their own order
  std::vector<std::vector<DataRange>> clients;  // each client's ranges, none of them empty

  int64_t SizeOf(int64_t client) const;
  // The example numbers of a client.
  std::vector<uint32_t> ExamplesOf(int64_t client) const;
};

// Names of all partitions, in the order of the table:
//
//   all           everything for every client
//   iid           SBC section IV: shuffled and cut into pieces whose sizes differ by at most one
//   label_shards  McMahan et al. 2017, section 3: sorted by label, cut into clients * data.labels_each pieces, which
//                 are dealt in an order drawn by the seed
//   dirichlet     for each class the clients' shares are drawn from Dirichlet(data.alpha) (Yurochkin et al. 2019,
//                 section 4; Hsu et al. 2019 draw the classes' shares of each client instead); a client that got
//                 nothing takes one example from the largest
//   by_file       Dataset::file_starts: file i goes to client i modulo the number of clients
//   power_law     shuffled; client i gets one example and a share of the others in proportion to
//                 (i + 1)^-data.exponent
//
// All but "all" are disjoint and cover everything, or, with data.examples above 0, so many examples that the seed
// draws. For a text, iid and power_law cut contiguous pieces, in its order.
std::vector<std::string> PartitionNames();

// INVALID_ARGUMENT, with reason and remedy, for another name, less than one client, fewer examples than clients (less
// than two symbols a client), more than 2^32 - 1 examples, label_shards and dirichlet without class labels,
// data.labels_each below 1 or with more pieces than examples, data.alpha outside 1e-3..1e6, data.exponent outside
// 0..10, by_file with fewer files than clients or a client whose files hold nothing, data.examples with all, by_file or
// a text.
absl::StatusOr<Partition> MakePartition(const DataSpec& spec, const Dataset& dataset, int64_t clients, uint64_t seed);

// One client's part of MakePartition: its examples, or the ranges of a text. Also INVALID_ARGUMENT for a shard outside
// its count.
absl::StatusOr<std::vector<uint32_t>> PartitionExamples(const DataSpec& spec, const Dataset& dataset,
                                                        const Shard& shard, uint64_t seed);
absl::StatusOr<std::vector<DataRange>> PartitionText(const DataSpec& spec, const Dataset& dataset, const Shard& shard,
                                                     uint64_t seed);

// Describes a partition for logs: "100 clients, examples of each: 480 to 720, median 600; labels of each: 2 to 4,
// median 2".
std::string DescribePartition(const Partition& partition, const Dataset& dataset);

}  // namespace terse

#endif  // TERSE_LEARNING_PARTITION_H_
