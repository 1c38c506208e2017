// The model that all clients of a load process hold together.
#ifndef TERSE_BENCH_FLEET_SHARED_MODEL_H_
#define TERSE_BENCH_FLEET_SHARED_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/optional.h"
#include "compression/codec.h"
#include "core/id128.h"
#include "core/run_config.h"
#include "storage/run_store.h"

namespace terse {

// A version of the model, as a client says that it holds it.
struct HeldVersion {
  int64_t version = 0;
  Id128 hash;
};

// One client of the process moves it, with the messages that the coordinator sends to that client, and it is compared
// with the coordinator's hash each time; the others hold the versions that they are told of by their hashes alone.
// Thread-safe.
class SharedModel {
 public:
  // Statuses of MakeUpdateCodec and MakeDownstreamCodec.
  static absl::StatusOr<std::unique_ptr<SharedModel>> Make(const RunConfig& run, const Layout& layout);

  const Codec& codec() const { return *codec_; }
  // The most bytes that a downstream message of the run may have.
  int64_t max_downstream_bytes() const { return max_downstream_bytes_; }
  // The newest version; nullopt before Hold.
  absl::optional<HeldVersion> held() const ABSL_LOCKS_EXCLUDED(mutex_);
  // The number of versions that Apply reached.
  int64_t applied() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Takes a downloaded checkpoint in place of what is held. DATA_LOSS when its weights do not fit.
  absl::Status Hold(Checkpoint checkpoint) ABSL_LOCKS_EXCLUDED(mutex_);
  // Moves the model by a downstream message. INTERNAL when it is not that of the next version or leads to another hash
  // than the coordinator's: one of the two ends is wrong then. Statuses of ApplyDownstream.
  absl::Status Apply(const HeldVersion& next, const std::string& message) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  SharedModel(std::unique_ptr<const Codec> codec, std::unique_ptr<const Codec> downstream, int64_t clients);

  const std::unique_ptr<const Codec> codec_;
  const std::unique_ptr<const Codec> downstream_codec_;  // null unless the downstream mode is coded
  const int64_t max_downstream_bytes_;
  mutable absl::Mutex mutex_;
  absl::optional<HeldVersion> held_ ABSL_GUARDED_BY(mutex_);
  int64_t applied_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<float> weights_ ABSL_GUARDED_BY(mutex_);
  std::vector<float> scratch_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace terse

#endif  // TERSE_BENCH_FLEET_SHARED_MODEL_H_
