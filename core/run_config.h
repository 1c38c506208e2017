// What a run is: the plain form of proto/terse/v1/run_config.proto, which holds the defaults, ranges and documentation
// of every field. proto/run_config_loader makes it from a TOML file, proto/convert from the wire.
#ifndef TERSE_CORE_RUN_CONFIG_H_
#define TERSE_CORE_RUN_CONFIG_H_

#include <cstdint>
#include <string>

namespace terse {

struct CodecSpec {
  std::string name;            // row of compression/codec_table
  double density = 0;          // p of SBC Algorithm 2: fraction of each tensor that is sent
  std::string mean_precision;  // "fp32" (the paper) or "bf16"
};

struct ModelSpec {
  std::string name;  // row of learning/models/model_table
};

struct DataSpec {
  std::string name;       // row of learning/datasets/dataset_table
  std::string partition;  // "iid": shard index/count of the run's clients; "all": whatever the client has
};

struct OptimizerSpec {
  std::string name;  // "sgd" or "adam"
  double learning_rate = 0;
  double momentum = 0;  // sgd
  double beta1 = 0;     // adam
  double beta2 = 0;
  double epsilon = 0;
  bool momentum_masking = false;  // SBC supplement VII-A
};

struct TrainSpec {
  int64_t local_steps = 0;  // n of SGD_n, SBC Algorithm 1
  int64_t batch_size = 0;
  OptimizerSpec optimizer;
};

struct RoundPolicy {
  int64_t count = 0;            // rounds of the run
  int64_t clients = 0;          // cohort; also the number of shards of an iid partition
  int64_t quorum = 0;           // fewest updates that may close a round
  double deadline_seconds = 0;  // from opening a round to closing it
};

enum class Durability { kStrict, kRelaxed };
enum class DownstreamMode { kForward, kDense, kAuto };

struct RunConfig {
  std::string name;
  uint64_t seed = 0;
  Durability durability = Durability::kStrict;
  ModelSpec model;
  DataSpec data;
  TrainSpec train;
  CodecSpec codec;
  DownstreamMode downstream = DownstreamMode::kForward;
  RoundPolicy rounds;
  int64_t evaluate_every = 0;    // rounds; the last one is always evaluated
  int64_t checkpoint_every = 0;  // versions
  int64_t checkpoint_keep = 0;   // files
};

}  // namespace terse

#endif  // TERSE_CORE_RUN_CONFIG_H_
