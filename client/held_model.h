// The version of the model that a session holds, and how it moves to the next one.
#ifndef TERSE_CLIENT_HELD_MODEL_H_
#define TERSE_CLIENT_HELD_MODEL_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "client/shared_models.h"
#include "compression/downstream.h"
#include "core/id128.h"
#include "core/run_config.h"
#include "core/session_messages.h"

namespace terse {

// Holds weights of its own, which messages change in place, or refers to weights that sessions share. Not thread-safe.
class HeldModel {
 public:
  HeldModel() = default;
  // `shared` may be null: then the weights are its own. It must outlive this.
  HeldModel(std::shared_ptr<const RunConfig> config, SharedModels* shared)
      : config_(std::move(config)), shared_(shared) {}

  // nullopt while none is held; then the weights have no meaning.
  const absl::optional<int64_t>& version() const { return version_; }
  absl::Span<const float> weights() const;
  // The snapshot of the version's epoch (core/epochs.h); empty while none is held, and in a run without epochs.
  absl::Span<const float> snapshot() const;

  // Holds a version that stands alone.
  void Hold(int64_t version, std::vector<float> weights);
  // Likewise, if another session has its weights; returns whether that is so.
  bool HoldShared(int64_t version, Id128 hash);
  // Holds nothing any more.
  void Drop();

  // The newest version that stands alone, of those held. One is held.
  int64_t StandingVersion() const;
  // Its weights, where they are this object's own: a caller may take them out for a while. Null where they are shared.
  std::vector<float>* own_standing();

  // Whether the message of `version` can be applied.
  bool CanMoveTo(int64_t version) const;
  // Brings the weights to the version of the message, which can be applied; `scratch` is overwritten.
  // INVALID_ARGUMENT for a malformed message, DATA_LOSS when what comes of it has another hash than it should: what is
  // held is then of no use, and Drop follows.
  absl::Status MoveTo(const Downstream& message, const DownstreamCodecs& codecs, std::vector<float>* scratch);

 private:
  // Writes the weights of the message's version over those of the version before.
  absl::Status Apply(const Downstream& message, const DownstreamCodecs& codecs, std::vector<float>* scratch,
                     std::vector<float>* weights) const;
  void TakeShared(int64_t version, SharedModels::Weights weights);

  std::shared_ptr<const RunConfig> config_;
  SharedModels* shared_ = nullptr;
  absl::optional<int64_t> version_;
  std::vector<float> own_, own_snapshot_;
  SharedModels::Weights common_, common_snapshot_;
};

}  // namespace terse

#endif  // TERSE_CLIENT_HELD_MODEL_H_
