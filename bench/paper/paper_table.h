// Tables and figures of the papers as runs: what is trained, by which methods, and what the paper prints.
#ifndef TERSE_BENCH_PAPER_PAPER_TABLE_H_
#define TERSE_BENCH_PAPER_PAPER_TABLE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace terse {

// [codec] of a baseline: dense in both directions.
constexpr char kDenseRun[] = "name = 'dense'\ndownstream = 'dense'\n";

enum class PaperMetric { kAccuracy, kPerplexity };

// The figures that the paper gives for one method on one workload.
struct PaperFigures {
  double metric = 0;       // accuracy 0..1, or perplexity
  double compression = 0;  // bits up per client, against 32 bits x parameters x iterations
  double bits = 0;         // of all messages until the loss is reached; 0: the paper does not say
};

// The way in which updates are made and sent. A method is the same for every workload of its table.
struct PaperMethod {
  std::string name;             // "sbc1"
  std::string title;            // "SBC (1)"
  std::string optimizer_keys;   // added to [train.optimizer] where the optimizer has momentum
  std::string codec;            // [codec]
  int64_t local_steps;          // n; 0: the workload's own (Federated Averaging)
  int64_t checkpoint_every;     // versions; few where the log has whole models
  std::string control = {};     // [control]; empty: nothing changes while the run goes on
  std::string downstream = {};  // [downstream]
  std::string server = {};      // [server]
  // Above 0: [control] gets this share of what a client sent in the best fixed row of the workload (best_fixed.h) as
  // its budget, and the run ends with its iterations, however many rounds those take.
  double budget_share = 0;
  std::string aggregation = "rule = 'mean'\n";  // [aggregation]; the papers average
};

// A model on a data set with its hyperparameters.
struct PaperWorkload {
  std::string name;   // "lenet5"
  std::string title;  // "LeNet5-Caffe on MNIST"
  PaperMetric metric;
  int64_t iterations;  // optimizer steps of each client
  int64_t clients;
  int64_t averaging_steps;  // n of Federated Averaging
  bool momentum;            // whether optimizer_keys of methods apply
  // TOML of [model], [data], [train] without local_steps, and [train.optimizer]; what stands for an iteration number is
  // written {x} and shrinks with the scale.
  std::string model;
  std::string data;
  std::string train;
  std::string optimizer;
  std::string schedule;
  std::vector<PaperFigures> figures;      // one a method, in the methods' order
  double link_bytes_per_second = 0;       // of each client, in each direction (thin_link.h); 0: loopback as it is
  std::string codec_keys = {};            // added to [codec] of every method
  std::string round_keys = {};            // added to [rounds]
  int64_t epoch_length = 0;               // of [server], for methods that have one
  std::vector<double> server_rates = {};  // learning_rate of [server], one a method; empty: the default
  double target_loss = 0;                 // of kBits
  std::string control_keys = {};          // added to [control] of methods with a budget_share; {x} as above
  double tolerance = 0;                   // of kBestFixed: what may be lost against the best of the grid
};

// The columns that a table shows beside the metric.
enum class PaperColumns {
  kCompression,     // of what goes up, beside the paper's
  kBothDirections,  // bytes on the wire per client, up and down, and against the row "fedavg"
  kTime,            // training loss at the end, and how long that took
  kBits,            // of all messages of all clients, both ways, until the training loss is below target_loss
  kBestFixed,       // of what goes up, against the best of the rows that change nothing while they run
  kLossAndBytes     // training loss, payload up and down per client, and bits up for each element that is sent
};

struct PaperTable {
  std::string name;   // "sbc-table2"
  std::string title;  // "Sattler et al. 2018, Sparse Binary Compression, Table II"
  std::vector<PaperMethod> methods;
  std::vector<PaperWorkload> workloads;
  PaperColumns columns = PaperColumns::kCompression;
};

const std::vector<PaperTable>& PaperTables();

// One run of a table.
struct PaperRow {
  const PaperTable* table = nullptr;
  const PaperWorkload* workload = nullptr;
  const PaperMethod* method = nullptr;
  std::optional<PaperFigures> figures;
  std::string run;  // a run file (TOML)
  std::string key;  // names the row: "lenet5-sbc1"
  int64_t rounds = 0;
  int64_t iterations = 0;  // of each client
};

struct PaperScale {
  double scale = 1;          // of the iterations, above 0, at most 1
  uint64_t seed = 1;         // of weights, partition, batches
  double budget = 1;         // bytes, of methods with a budget_share
  double server_rate = 0;    // in place of the workload's server_rates, where it has some; 0: those
  int64_t evaluations = 10;  // of a run at least, evenly spaced, and no more than it has rounds
};

// The run of one method on one workload. Iterations are a whole number of rounds, at least one round.
PaperRow MakePaperRow(const PaperTable& table, const PaperWorkload& workload, size_t method, const PaperScale& scale);

}  // namespace terse

#endif  // TERSE_BENCH_PAPER_PAPER_TABLE_H_
