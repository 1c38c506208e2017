#include "bench/fleet/shared_model.h"

#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "compression/downstream.h"
#include "compression/run_codecs.h"
#include "core/status.h"

namespace terse {

absl::StatusOr<std::unique_ptr<SharedModel>> SharedModel::Make(const RunConfig& run, const Layout& layout) {
  TERSE_ASSIGN_OR_RETURN(std::unique_ptr<const Codec> codec, MakeUpdateCodec(run, layout));
  TERSE_ASSIGN_OR_RETURN(std::unique_ptr<const Codec> downstream, MakeDownstreamCodec(run, layout));
  return absl::WrapUnique(new SharedModel(std::move(codec), std::move(downstream), run.rounds.clients));
}

SharedModel::SharedModel(std::unique_ptr<const Codec> codec, std::unique_ptr<const Codec> downstream, int64_t clients)
    : codec_(std::move(codec)),
      downstream_codec_(std::move(downstream)),
      max_downstream_bytes_(MaxDownstreamBytes({*codec_, downstream_codec_.get()}, clients)) {}

absl::optional<HeldVersion> SharedModel::held() const {
  absl::MutexLock lock(&mutex_);
  return held_;
}

int64_t SharedModel::applied() const {
  absl::MutexLock lock(&mutex_);
  return applied_;
}

absl::Status SharedModel::Hold(Checkpoint checkpoint) {
  absl::MutexLock lock(&mutex_);
  if (static_cast<int64_t>(checkpoint.weights.size()) != codec_->layout().size()) {
    return absl::DataLossError(absl::StrCat("the checkpoint of version ", checkpoint.version, " has ",
                                            checkpoint.weights.size(), " weights and the run's model ",
                                            codec_->layout().size()));
  }
  weights_ = std::move(checkpoint.weights);
  held_ = HeldVersion{checkpoint.version, checkpoint.model_hash};
  return absl::OkStatus();
}

absl::Status SharedModel::Apply(const HeldVersion& next, const std::string& message) {
  absl::MutexLock lock(&mutex_);
  if (!held_.has_value() || next.version != held_->version + 1) {
    return absl::InternalError(absl::StrCat("the coordinator sent the message of version ", next.version,
                                            " to a client at ",
                                            held_.has_value() ? absl::StrCat("version ", held_->version) : "none"));
  }
  TERSE_RETURN_IF_ERROR(
      ApplyDownstream({*codec_, downstream_codec_.get()}, message, &scratch_, absl::MakeSpan(weights_)));
  const Id128 hash = HashWeights(weights_);
  if (hash != next.hash) {
    return absl::InternalError(absl::StrCat("version ", next.version, " has the hash ", hash.ToHex(), " here and ",
                                            next.hash.ToHex(), " at the coordinator"));
  }
  held_ = next;
  ++applied_;
  return absl::OkStatus();
}

}  // namespace terse
