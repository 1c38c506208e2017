// The bodies of the trainer protocol's frames (docs/TRAINER.md): JSON objects whose keys are the members' names. Keys
// that a reader does not know are ignored, so that a later version may add some; an optional member that is absent has
// no key.
#ifndef TERSE_TRAINER_MESSAGES_H_
#define TERSE_TRAINER_MESSAGES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "core/layout.h"
#include "core/trainer.h"
#include "trainer/message_fields.h"

namespace terse {

// kOpen: the run that the trainer is to work for.
struct OpenRequest {
  int64_t protocol = 0;  // kTrainerProtocol
  std::string run;
  std::string model;  // model.name of the run file
  int64_t seed = 0;
  Shard shard;  // of the training data, where the run cuts it
  int64_t rounds = 0;
  int64_t local_steps = 0;  // of a round, unless a controller decides
  int64_t batch_size = 0;
  std::string buffers;  // "averaged": they are part of the layout; "local": they are not
  bool momentum_masking = false;
  // "trainer", or "evaluator" when the coordinator asks for evaluations. Absent: "trainer".
  absl::optional<std::string> role = {};
};

// A tensor of the model. `kind` is "parameter" or "buffer"; buffers come last.
struct WireTensor {
  std::string name;
  std::vector<int64_t> shape;
  std::string kind;
};

// The answer to kOpen: what the trainer is and has.
struct Hello {
  int64_t protocol = 0;
  std::string trainer;             // a name and a version, for the log
  std::vector<WireTensor> layout;  // in the order of the flat vectors
  std::string dtype;               // of the shared vectors: "float32" or "bfloat16"
  int64_t samples = 0;             // of training data, at least 1
  std::string device;              // IsDeviceName (core/session_messages.h), or empty
  std::string result;              // what kTrain leaves in memory: "weights" or "delta"
  bool in_place = false;           // works on the vector `result`, where the client puts the weights then
  bool has_start = false;          // knows the weights that the run starts from
  bool has_state = false;          // answers kSave, and takes kRestore
  bool has_momentum = false;       // takes kMask
};

// kMemory, with which a file of shared memory travels: SharedVectors.
struct MemoryRequest {
  int64_t elements = 0;  // of each vector
  int64_t bytes = 0;     // of the file
};

// The answer to kConfinement: the parts of a sandbox that a machine may lack. Without a network namespace there are
// still no sockets; without Landlock the process may read, but not write, what this user can. Without a scope for
// signals (Landlock of Linux 6.12) the filter of system calls alone keeps it from signalling others.
struct Confinement {
  bool own_network = false;
  bool landlock = false;
  bool signal_scope = false;
};

// The answer to kStart; the weights are in the vector `result`.
struct WireStart {
  bool has_weights = false;
};

// A figure by name: NamedMetric, with the name of its kind.
struct WireMetric {
  std::string kind;
  std::string name;
  double value = 0;
  int64_t samples = 0;
};

std::vector<WireMetric> ToWire(const std::vector<NamedMetric>& metrics);

// kTrain: LocalPlan. The answer, with the result in memory:
struct WireResult {
  double loss = 0;                                       // mean over the steps, finite
  int64_t samples = 0;                                   // seen, counting repeats
  absl::optional<std::vector<WireMetric>> metrics = {};  // of the kinds "training" and "evaluation"
};

// kGradient of a sandboxed trainer: GradientPlan, whose vectors are in memory. The answer is a WireResult.
struct GradientRequest {
  bool has_snapshot = false;
};

// kEvaluate of an evaluator of the coordinator's. The weights are in memory.
struct EvaluateRequest {
  int64_t round = 0;  // that ended with the weights
};
// Its answer. "loss", "accuracy", "top5" and "perplexity" are those of Evaluation; the first is always there.
struct WireEvaluation {
  std::vector<WireMetric> metrics;  // of the kind "test"
};

// kProgress
struct ProgressReport {
  int64_t steps = 0;  // done since kTrain
};

// kGoOn
struct GoOn {
  bool go_on = false;
};

// kSealed
struct SealedNotice {
  int64_t round = 0;
};

// kFinished; the weights that the run ended with are in memory.
struct FinishedNotice {
  std::string reason;
};

// kFailed. `code` is a name of gRPC's: "FAILED_PRECONDITION" where trying again cannot help, "UNAVAILABLE" where it
// can, "CANCELLED" after a kGoOn that said no.
struct WireFailure {
  std::string code;
  std::string message;
  std::string details;
};

// kVocabulary's answer, for any bytes: each symbol behind its size, a uint32. UnpackSymbols returns INVALID_ARGUMENT
// for bytes that are no such answer, or more than `most` symbols.
std::string PackSymbols(const std::vector<std::string>& symbols);
absl::StatusOr<std::vector<std::string>> UnpackSymbols(absl::string_view bytes, size_t most);

// The body with this message, for the types above, LocalPlan, RunConfig (kSettings) and Confinement.
template <typename T>
std::string ToJson(const T& message);
// INVALID_ARGUMENT for bytes that are no such message: "'samples' is no whole number". A number that JSON does not
// have, null, is NaN.
template <typename T>
absl::StatusOr<T> FromJson(absl::string_view body);

template <typename Io>
void Fields(Io& io, Shard& whole) {
  TERSE_FIELDS(index, count);
}
template <typename Io>
void Fields(Io& io, LocalPlan& whole) {
  TERSE_FIELDS(steps, first_iteration, round, version);
}
template <typename Io>
void Fields(Io& io, OpenRequest& whole) {
  TERSE_FIELDS(protocol, run, model, seed, shard, rounds, local_steps, batch_size, buffers, momentum_masking, role);
}
template <typename Io>
void Fields(Io& io, WireTensor& whole) {
  TERSE_FIELDS(name, shape, kind);
}
template <typename Io>
void Fields(Io& io, Hello& whole) {
  TERSE_FIELDS(protocol, trainer, layout, dtype, samples, device, result, in_place, has_start, has_state, has_momentum);
}
template <typename Io>
void Fields(Io& io, MemoryRequest& whole) {
  TERSE_FIELDS(elements, bytes);
}
template <typename Io>
void Fields(Io& io, WireStart& whole) {
  TERSE_FIELDS(has_weights);
}
template <typename Io>
void Fields(Io& io, WireMetric& whole) {
  TERSE_FIELDS(kind, name, value, samples);
}
template <typename Io>
void Fields(Io& io, WireResult& whole) {
  TERSE_FIELDS(loss, samples, metrics);
}
template <typename Io>
void Fields(Io& io, GradientRequest& whole) {
  TERSE_FIELDS(has_snapshot);
}
template <typename Io>
void Fields(Io& io, Confinement& whole) {
  TERSE_FIELDS(own_network, landlock, signal_scope);
}
template <typename Io>
void Fields(Io& io, EvaluateRequest& whole) {
  TERSE_FIELDS(round);
}
template <typename Io>
void Fields(Io& io, WireEvaluation& whole) {
  TERSE_FIELDS(metrics);
}
template <typename Io>
void Fields(Io& io, ProgressReport& whole) {
  TERSE_FIELDS(steps);
}
template <typename Io>
void Fields(Io& io, GoOn& whole) {
  TERSE_FIELDS(go_on);
}
template <typename Io>
void Fields(Io& io, SealedNotice& whole) {
  TERSE_FIELDS(round);
}
template <typename Io>
void Fields(Io& io, FinishedNotice& whole) {
  TERSE_FIELDS(reason);
}
template <typename Io>
void Fields(Io& io, WireFailure& whole) {
  TERSE_FIELDS(code, message, details);
}

}  // namespace terse

#endif  // TERSE_TRAINER_MESSAGES_H_
