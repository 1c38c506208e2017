#include "client/held_model.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "compression/downstream_model.h"
#include "core/epochs.h"
#include "core/status.h"

namespace terse {

absl::Span<const float> HeldModel::weights() const {
  if (shared_ == nullptr) return own_;
  return common_ == nullptr ? absl::Span<const float>() : absl::MakeConstSpan(*common_);
}

absl::Span<const float> HeldModel::snapshot() const {
  if (shared_ == nullptr) return own_snapshot_;
  return common_snapshot_ == nullptr ? absl::Span<const float>() : absl::MakeConstSpan(*common_snapshot_);
}

void HeldModel::Hold(int64_t version, std::vector<float> weights) {
  if (shared_ != nullptr) {
    const Id128 hash = HashWeights(weights);
    return TakeShared(version, shared_->Keep(hash, std::move(weights)));
  }
  version_ = version;
  own_ = std::move(weights);
  own_snapshot_ = HasEpochs(*config_) ? own_ : std::vector<float>();
}

bool HeldModel::HoldShared(int64_t version, Id128 hash) {
  SharedModels::Weights known = shared_ == nullptr ? nullptr : shared_->Find(hash);
  if (known == nullptr) return false;
  TakeShared(version, std::move(known));
  return true;
}

void HeldModel::TakeShared(int64_t version, SharedModels::Weights weights) {
  version_ = version;
  common_ = std::move(weights);
  if (HasEpochs(*config_) && StandsAlone(*config_, version)) common_snapshot_ = common_;
}

void HeldModel::Drop() {
  version_ = absl::nullopt;
  own_snapshot_.clear();
  common_ = common_snapshot_ = nullptr;
}

int64_t HeldModel::StandingVersion() const {
  return HasEpochs(*config_) ? SnapshotBefore(*config_, *version_) : *version_;
}

std::vector<float>* HeldModel::own_standing() {
  if (shared_ != nullptr) return nullptr;
  return HasEpochs(*config_) ? &own_snapshot_ : &own_;
}

bool HeldModel::CanMoveTo(int64_t version) const {
  if (!HasEpochs(*config_)) return version_.has_value() && version == *version_ + 1;
  if (StandsAlone(*config_, version)) return true;
  return version_.has_value() && SnapshotBefore(*config_, version) == SnapshotBefore(*config_, *version_);
}

absl::Status HeldModel::Apply(const Downstream& message, const DownstreamCodecs& codecs, std::vector<float>* scratch,
                              std::vector<float>* weights) const {
  if (!HasEpochs(*config_)) {
    TERSE_RETURN_IF_ERROR(ApplyDownstream(codecs, *message.message, scratch, absl::MakeSpan(*weights)));
  } else {
    weights->resize(codecs.updates.layout().size());
    const absl::Span<const float> center =
        StandsAlone(*config_, message.version) ? absl::Span<const float>() : snapshot();
    TERSE_RETURN_IF_ERROR(ApplyModel(codecs, *message.message, center, scratch, absl::MakeSpan(*weights)));
  }
  if (HashWeights(*weights) == message.model_hash) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("what comes of ", message.message->size(), " bytes has another hash"));
}

absl::Status HeldModel::MoveTo(const Downstream& message, const DownstreamCodecs& codecs, std::vector<float>* scratch) {
  if (shared_ == nullptr) {
    TERSE_RETURN_IF_ERROR(Apply(message, codecs, scratch, &own_));
    version_ = message.version;
    if (HasEpochs(*config_) && StandsAlone(*config_, message.version)) own_snapshot_ = own_;
    return absl::OkStatus();
  }
  if (HoldShared(message.version, message.model_hash)) return absl::OkStatus();
  std::vector<float> next(weights().begin(), weights().end());
  TERSE_RETURN_IF_ERROR(Apply(message, codecs, scratch, &next));
  TakeShared(message.version, shared_->Keep(message.model_hash, std::move(next)));
  return absl::OkStatus();
}

}  // namespace terse
