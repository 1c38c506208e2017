// Describes a run: the plain form of proto/terse/v1/run_config.proto, which holds the defaults, ranges and
// documentation of every field. proto/run_config_loader makes it from a TOML file, proto/run_config_convert from the
// wire.
#ifndef TERSE_CORE_RUN_CONFIG_H_
#define TERSE_CORE_RUN_CONFIG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace terse {

// Settings of compression/codec_table; each codec reads the ones it has, and its header says which. The defaults are
// those of proto/terse/v1/run_config.proto.
struct CodecSpec {
  std::string name = "sbc";             // row of compression/codec_table
  double density = 0.01;                // fraction of each tensor that is sent: p of SBC Algorithm 2
  std::string mean_precision = "fp32";  // of sbc and its kin: "fp32" (the paper) or "bf16"
  std::string positions = "auto";       // row of compression/position_coder_table, or kSharedPositions
  std::string grouping = "per_tensor";  // or "merge_small" or "global"
  int64_t merge_below = 4096;           // merge_small: tensors with fewer elements become one group
  int64_t bits = 4;                     // of a value: qsgd's q, low_precision's b, sparseloco
  std::string code = "simple";          // or "elias" (qsgd), "positions" (mcgq), "unbiased" (random_sparse)
  int64_t bucket = 0;                   // elements that share a scale, or a chunk of sparseloco; 0: a whole tensor
  double threshold = 0.01;              // strom: tau
  double samples = 0.05;                // mcgq: K, samples per element
  double sampling_step = 0;             // mcgq: delta_K of dynamic sampling; 0 keeps K
  std::string feedback = "own";         // row of compression/feedback_table, or "own": the codec's
  double decay = 1;                     // of the residual, each round: beta
  double momentum = 0.9;                // of the feedbacks with momentum (dgc, signum)
  double clip = 0;                      // dgc: largest L2 norm of a delta; terngrad: c, in standard deviations; 0: none
  int64_t warmup_rounds = 0;            // dgc: rounds over which the density falls to its value
  std::string counts = "proportional";  // or "equal": every tensor sends as many elements as the largest
};

// CodecSpec::positions of a run whose updates travel packed with what both ends keep of the client's applied ones
// (compression/update_history.h). The messages themselves are coded by "rice".
inline constexpr absl::string_view kSharedPositions = "shared";

// ModelSpec::name of a TorchScript module that came with the run.
inline constexpr absl::string_view kTorchScriptModel = "torchscript";
// ModelSpec::name of a model that only the clients' own trainers know (trainer/external_trainer.h). A file of its start
// weights came with the run, and with them the layout. Nothing evaluates it at the coordinator.
inline constexpr absl::string_view kExternalModel = "external";
// Whether a file comes with runs of the model of this name.
inline bool HasModelFile(absl::string_view model) { return model == kTorchScriptModel || model == kExternalModel; }
// Whether `text` has the form of such a file's hash: the 64 hexadecimal digits of a SHA-256, in lower case.
inline bool IsModuleHash(absl::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == absl::string_view::npos;
}

// Each model reads the settings that it has.
struct ModelSpec {
  std::string name = "";             // row of learning/models/model_table, "torchscript", "external" or "plugin"
  int64_t classes = 0;               // width of the output: classes or symbols; 0: the model's own
  int64_t inputs = 0;                // numbers in an example, for models that take a vector; 0: the model's own
  double dropout = -1;               // below 0: the model's own
  std::string buffers = "averaged";  // or "local": each client keeps its own
  std::string hash = "";             // "torchscript", "external": SHA-256 of the run's file, in hexadecimal digits
};

// Settings of learning/datasets/dataset_table and the table of partitions (learning/partition.h); each data set and
// partition reads the ones it has.
struct DataSpec {
  std::string name = "";          // row of learning/datasets/dataset_table
  std::string partition = "iid";  // row of learning/partition: how the training data is cut into clients
  std::string train = "";         // file, folder or several, relative to the data directory, for the formats
  std::string test = "";
  std::vector<std::string> columns = {};  // csv: "name:kind", one a column
  std::string level = "char";             // text: "char" or "word"
  int64_t vocabulary = 0;                 // text: the most frequent symbols, the others become one; 0: all
  int64_t features = 0;                   // libsvm: numbers an example; 0: as many as the training file names
  std::string normalize = "unit";  // bytes to floats: "unit" (0..1), "standardize" (each image: mean 0, deviation 1)
  std::string augment = "none";    // of training images: "none" or "pad_crop_flip"
  double alpha = 0.5;              // dirichlet: concentration
  int64_t labels_each = 2;         // label_shards: pieces of equal labels that a client gets
  double exponent = 1;             // power_law: client i gets a share of (i + 1)^-exponent
  int64_t examples = 0;            // of the training set that are used, drawn with the seed; 0: all
  int64_t shards = 0;              // all but "all": parts of the data; 0: rounds.clients
};

struct OptimizerSpec {
  std::string name;  // "sgd", "adam" or "adamw"
  double learning_rate = 0;
  double momentum = 0;  // sgd
  double beta1 = 0;     // adam, adamw
  double beta2 = 0;
  double epsilon = 0;
  bool momentum_masking = false;  // SBC supplement VII-A
  bool nesterov = false;          // sgd with momentum
  double weight_decay = 0;        // of w in the gradient (adamw: in the step), for tensors of two dimensions or more
  double l1 = 0;                  // adds l1 * sign(w), of the same tensors
  double clip_norm = 0;           // largest L2 norm of a gradient; 0: any
};

// The learning rate is multiplied by `factor` at each iteration of `at`, and at from, from + every, from + 2 every, ...
// Iterations are the run's: local steps that a client has done when it took part in every round.
struct LearningRateSchedule {
  double factor = 1;
  std::vector<int64_t> at;
  int64_t from = 0;
  int64_t every = 0;  // 0: only `at`
};

struct TrainSpec {
  int64_t local_steps = 0;  // n of SGD_n, SBC Algorithm 1
  int64_t batch_size = 0;
  OptimizerSpec optimizer;
  LearningRateSchedule schedule;
  std::string loss = "auto";  // row of learning/loss_table; "auto": the one for the data set's task
  double proximal = 0;        // FedProx: adds proximal * (w - W_0) to the gradient
  int64_t unroll = 35;        // texts: symbols of a window, through which gradients flow back
};

enum class Selection { kAll, kRandom, kSamples, kReliability };
enum class Weighting { kUniform, kSamples };

struct RoundPolicy {
  int64_t count = 0;            // rounds of the run
  int64_t clients = 0;          // the fleet
  int64_t quorum = 0;           // fewest updates that may close a round without its cohort
  double deadline_seconds = 0;  // from opening a round to closing it
  Selection selection = Selection::kAll;
  int64_t cohort = 0;        // updates that close a round; the loader makes it from `fraction`
  int64_t invited = 0;       // clients that get work in a round: the cohort and its over-selection
  double grace_seconds = 0;  // after the deadline, for a round without a quorum
  Weighting weighting = Weighting::kUniform;
  bool buffered = false;  // clients do not wait for each other; `cohort` is the buffer
  int64_t staleness = 0;  // buffered: versions between the weights that an update was made from and the head, at most
};

struct ClientPolicy {
  std::vector<std::string> allow;  // names, `*` for any characters; empty: everyone
  int64_t set_aside_after = 0;     // failures in a row; 0: never
  double set_aside_seconds = 0;
};

// The figure that early stopping watches. kAuto: the accuracy, and the loss where there is no accuracy.
enum class PatienceMetric { kAuto, kAccuracy, kLoss };

// The limits that end a run early. 0: no limit.
struct RunLimits {
  double seconds = 0;   // since the run was created
  double accuracy = 0;  // of the test set, 0..1
  double loss = 0;
  int64_t iterations = 0;  // local steps of a client that takes part in every round
  int64_t patience = 0;    // evaluations in a row without improvement
  PatienceMetric patience_metric = PatienceMetric::kAuto;
  double min_delta = 0;  // only a greater change is an improvement
};

// Whether an evaluation can end the run.
inline bool EndsByEvaluation(const RunLimits& limits) {
  return limits.accuracy > 0 || limits.loss > 0 || limits.patience > 0;
}

enum class Durability { kStrict, kRelaxed };
// kForward, kDense and kAuto, the shortest of all exact forms, lose nothing; kCoded sends the model's step through a
// codec and keeps the rest.
enum class DownstreamMode { kForward, kDense, kAuto, kCoded };

// The rule by which a round's average becomes the step that the model takes: a row of
// coordinator/server_optimizer/server_optimizer_table, or "svrg" or "acc_svrg" (coordinator/svrg_step). Each reads the
// settings that it has.
struct ServerOptimizerSpec {
  std::string name = "average";
  double learning_rate = 1;
  double momentum = 0.9;  // sgd
  bool nesterov = false;  // sgd
  double beta1 = 0.9;     // adam, yogi, adagrad
  double beta2 = 0.99;    // adam, yogi
  double tau = 0.001;     // adam, yogi, adagrad: adaptivity
  // The following settings are those of svrg and acc_svrg (core/epochs.h).
  int64_t epoch_length = 0;    // m: inner iterations between two snapshots; 0: the run has no epochs
  double precision_loss = 0;   // mu of condition (2), which chooses the bits of the models that are sent; 0: fixed bits
  bool bit_centering = false;  // HALP: models are sent as their difference from the snapshot
};

// The controller, which decides round by round how long clients train and how their updates are coded: a row of
// coordinator/control/controller_table. Each reads the settings that it has.
struct ControlSpec {
  std::string name = "fixed";
  std::string by = "round";      // schedule: what ends a stage: "round", "iteration" or "plateau"
  std::vector<int64_t> at = {};  // round, iteration: with which the next stage begins, increasing
  int64_t patience = 50;         // plateau: rounds whose mean training loss is compared with those before
  // schedule: one a stage; empty: train.local_steps and the codec's in all of them. joint: what it chooses from.
  std::vector<int64_t> local_steps = {};
  std::vector<double> density = {};
  std::vector<int64_t> bits = {};  // one a stage; empty: the codec's
  double budget = 0;               // joint: bytes that a client may send
  double price = 0;                // joint: bytes for each unit that the training loss has fallen by
};

// The rule by which the updates of a round become one step: a row of coordinator/aggregation/aggregation_table. Each
// reads the settings that it has.
struct AggregationSpec {
  std::string rule = "mean";
  std::string absent = "share";  // a coordinate that an update did not send: "share", "skip" or "zero"
  double trim = 0.2;             // trimmed_mean: beta, of each side
  int64_t byzantine = 1;         // krum, multi_krum, bulyan: f
  int64_t keep = 0;              // multi_krum: m; 0: all but 2 f + 3
};

// Most updates of a round that krum, multi_krum and bulyan compare with each other: a matrix of their distances.
inline constexpr int64_t kMostComparedUpdates = 2048;

// The checks that refuse updates at the close of their round (coordinator/update_policy).
struct UpdatePolicy {
  double norm_bound = 0;  // largest L2 norm; 0: any
  double z_score = 0;     // of the norm, against the round's; 0: any
  double cosine = -1;     // least, against the sum of the others; -1: any
  double norm_ratio = 8;  // largest norm, in medians of the round's; 0: any

  // Whether a check beside norm_ratio is on. (norm_ratio is on unless it is switched off.)
  bool is_strict() const { return norm_bound > 0 || z_score > 0 || cosine > -1; }
};

struct RunConfig {
  std::string name;
  uint64_t seed = 0;
  Durability durability = Durability::kStrict;
  ModelSpec model;
  DataSpec data;
  TrainSpec train;
  CodecSpec codec;
  DownstreamMode downstream = DownstreamMode::kAuto;
  CodecSpec downstream_codec;  // of kCoded
  ServerOptimizerSpec server;
  ControlSpec control;
  RoundPolicy rounds;
  ClientPolicy clients;
  RunLimits limits;
  int64_t evaluate_every = 0;    // rounds; the last one is always evaluated
  int64_t checkpoint_every = 0;  // versions
  int64_t checkpoint_keep = 0;   // files
  AggregationSpec aggregation;
  UpdatePolicy policy;
  int64_t ledger_keep_rounds = 0;  // committed rounds whose rows are kept; 0: all
  int64_t events_keep = 0;         // events; 0: all
};

// The parts that the training data is cut into, or nullopt where every client has all of it.
inline absl::optional<int64_t> ShardsOf(const RunConfig& config) {
  if (config.data.partition == "all") return absl::nullopt;
  return config.data.shards != 0 ? config.data.shards : config.rounds.clients;
}

// Whether clients may send updates packed.
inline bool SharesHistory(const RunConfig& config) { return config.codec.positions == kSharedPositions; }

}  // namespace terse

#endif  // TERSE_CORE_RUN_CONFIG_H_
