// Makes what a session needs for its run, with what is stored of it: when the client joins or wakes. Drops it at rest.
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "client/observations.h"
#include "client/session.h"
#include "compression/bundle.h"
#include "compression/feedback_table.h"
#include "compression/run_codecs.h"
#include "core/epochs.h"
#include "core/fault.h"
#include "core/status.h"
#include "storage/module_file.h"

namespace terse {

absl::StatusOr<std::string> ClientSession::FetchModule(OutboundLink* link, const Welcome& welcome) {
  const ModelSpec& model = welcome.config->model;
  if (model.name != kTorchScriptModel) return std::string();
  if (!absl::c_linear_search(options_.allow_models, model.hash)) {
    return absl::FailedPreconditionError(
        absl::StrCat("run '", welcome.config->name, "' trains the TorchScript module ", model.hash,
                     ", which is code; if you trust it, start the client with --allow-model ", model.hash));
  }
  if (absl::optional<std::string> kept = options_.state->LoadModule(model)) return *std::move(kept);
  TERSE_ASSIGN_OR_RETURN(std::string bytes, link->DownloadModule(welcome.lineage, kMaxModuleBytes));
  if (ModuleHash(bytes) != model.hash) {
    return absl::UnavailableError(absl::StrCat("the downloaded TorchScript module is not ", model.hash));
  }
  TERSE_RETURN_IF_ERROR(StoredStatus(options_.state->SaveModule(bytes)));
  return bytes;
}

absl::Status ClientSession::MakeTrainer(absl::string_view module, Work* work) const {
  auto trainer = options_.make_trainer(*work->config, work->shard, module);
  if (!trainer.ok()) {
    // A reader of data names files and quotes what it cannot read.
    absl::Status refused = trainer.status();
    refused.SetPayload(kOfData, absl::Cord());
    return refused;
  }
  work->trainer = *std::move(trainer);
  if (const std::string device = work->trainer->device(); !device.empty() && !IsDeviceName(device)) {
    return absl::InvalidArgumentError("the trainer's device() must be empty or 1 to 64 printable characters of ASCII");
  }
  return absl::OkStatus();
}

absl::Status ClientSession::Equip(absl::string_view module, Work* work) const {
  const RunConfig& config = *work->config;
  TERSE_RETURN_IF_ERROR(MakeTrainer(module, work));
  if (work->codec == nullptr) {
    TERSE_ASSIGN_OR_RETURN(work->codec, MakeUpdateCodec(config, work->trainer->layout()));
    TERSE_ASSIGN_OR_RETURN(work->downstream_codec, MakeDownstreamCodec(config, work->trainer->layout()));
  }
  TERSE_ASSIGN_OR_RETURN(work->feedback, MakeFeedback(config.codec, work->codec.get()));
  TERSE_RETURN_IF_ERROR(LoadState(module, work));
  if (!work->feedback->pending()) work->residual_norm = work->feedback->Norm();
  return absl::OkStatus();
}

absl::Status ClientSession::Wake() {
  if (work_->trainer != nullptr) return absl::OkStatus();
  const absl::optional<std::string> module =
      work_->config->model.name == kTorchScriptModel ? options_.state->LoadModule(work_->config->model) : std::string();
  if (!module.has_value()) {
    return absl::UnavailableError("the TorchScript module that was kept is not there any more");
  }
  const absl::Status equipped = Equip(*module, &*work_);
  if (!equipped.ok()) work_ = absl::nullopt;
  return equipped;
}

absl::Status ClientSession::LoadState(absl::string_view module, Work* work) const {
  const absl::StatusOr<StoredState> stored = options_.state->Read();
  TERSE_RETURN_IF_ERROR(StoredStatus(stored.status()));
  const bool sealed = stored->sealed.has_value();
  const absl::string_view newest = sealed ? absl::string_view(stored->sealed->message) : stored->minus;
  if (!stored->dense.empty()) {
    // No feedback has made a bundle, and none keeps anything of it.
    const absl::string_view made = IsBundle(newest) ? absl::string_view() : newest;
    TERSE_RETURN_IF_ERROR(work->feedback->Restore(stored->dense, sealed ? "" : made, sealed ? made : ""));
  }
  if (!work->history.has_value()) TERSE_RETURN_IF_ERROR(work->RestoreHistory(*stored));
  TERSE_ASSIGN_OR_RETURN(const ObservedState state, ReadObservations(stored->trainer_state));
  if (!state.observations.empty() && !work->feedback->RestoreObservations(state.observations).ok()) {
    Log(LogLevel::kWarn, 0, "what the feedback has observed was stored by another version of Terse: it begins anew");
  }
  TERSE_RETURN_IF_ERROR(RestoreTrainer(state.trainer_state, module, work));
  // A reset leaves nothing, an applied update the message that was.
  if (!sealed) work->trainer->OnSettled(/*is_left=*/stored->has_dense && stored->minus.empty());
  return absl::OkStatus();
}

absl::Status ClientSession::RestoreTrainer(absl::string_view state, absl::string_view module, Work* work) const {
  if (state.empty()) return absl::OkStatus();
  const absl::Status restored = work->trainer->RestoreState(state);
  if (!absl::IsDataLoss(restored) || !work->moved) return restored;
  Log(LogLevel::kWarn, 0,
      "the client has moved and has other data now, to which its trainer's state does not fit: the trainer begins with "
      "a fresh one");
  return MakeTrainer(module, work);
}

void ClientSession::Work::BeginHistory() {
  if (SharesHistory(*config)) history.emplace(*codec->PackedLayout());
}

// One that cannot be read, as that of another release, is no reason to stop: the coordinator's is another one then, and
// both begin anew.
absl::Status ClientSession::Work::RestoreHistory(const StoredState& stored) {
  BeginHistory();
  if (!history.has_value() || Mutated(Mutant::kForgetHistory)) return absl::OkStatus();
  if (!stored.history.empty()) {
    absl::StatusOr<UpdateHistory> parsed = UpdateHistory::Parse(*codec->PackedLayout(), stored.history);
    if (!parsed.ok()) return absl::OkStatus();
    history = *std::move(parsed);
  }
  if (stored.minus.empty() || IsBundle(stored.minus)) return absl::OkStatus();
  return codec->AddToHistory(stored.minus, &*history);
}

// The cached model of an earlier process.
void ClientSession::LoadModel(Work* work) const {
  absl::optional<CachedModel> cached = options_.state->LoadModel();
  if (cached.has_value() && cached->lineage == work->family &&
      static_cast<int64_t>(cached->weights.size()) == work->codec->layout().size() &&
      StandsAlone(*work->config, cached->version)) {
    work->model.Hold(cached->version, std::move(cached->weights));
  }
}

void ClientSession::StartFromScratch(Id128 start_hash, Work* work) const {
  if (work->model.HoldShared(0, start_hash)) return;
  std::vector<float> weights = work->trainer->StartWeights();
  if (static_cast<int64_t>(weights.size()) != work->codec->layout().size() || HashWeights(weights) != start_hash)
    return;
  work->model.Hold(0, std::move(weights));
}

void ClientSession::Rest() {
  if (!work_.has_value()) return;
  work_->trainer = nullptr;
  work_->feedback = nullptr;
  work_->scratch = std::vector<float>();
}

}  // namespace terse
