#include "client/session.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/observations.h"
#include "compression/bundle.h"
#include "compression/downstream_model.h"
#include "compression/feedback_table.h"
#include "compression/run_codecs.h"
#include "core/epochs.h"
#include "core/fault.h"
#include "core/log/plain_text.h"
#include "core/status.h"
#include "storage/module_file.h"
#include "storage/run_store.h"

namespace terse {
namespace {

// A checkpoint file is the weights and less than this around them.
constexpr int64_t kCheckpointEnvelope = 4096;

// Marks an error whose text may quote the client's data.
constexpr char kOfData[] = "terse.of_data";

// One line of UTF-8, whatever a trainer wrote, cut between characters. The client's data stay out of it.
std::string ReasonOf(const absl::Status& status) {
  if (status.GetPayload(kOfData).has_value()) return "its trainer refused the run or its data; its own log says why";
  std::string reason = PlainText(status.message());
  if (reason.empty()) reason = absl::StatusCodeToString(status.code());
  size_t end = std::min(reason.size(), kMostReasonBytes);
  while (end < reason.size() && end > 0 && (static_cast<unsigned char>(reason[end]) & 0xC0) == 0x80) --end;
  reason.resize(end);
  return reason;
}

// The family of a coordinator that names none is its lineage.
Id128 FamilyOf(const Welcome& welcome) { return welcome.family.IsZero() ? welcome.lineage : welcome.family; }

}  // namespace

ClientSession::ClientSession(Options options)
    : options_(std::move(options)), save_due_us_(options_.clock->MonotonicMicros() + kSaveModelMicros) {}

absl::Status ClientSession::Run(CoordinatorLink* link) {
  const absl::Status ended = Converse(link);
  if (joined_ && absl::IsUnavailable(ended)) lost_us_ = options_.clock->MonotonicMicros();
  if (Mutated(Mutant::kTimeoutIsReject) && work_.has_value() && options_.state->state().sealed.has_value()) {
    TERSE_RETURN_IF_ERROR(OnVerdict({Outcome::kNotApplied, options_.state->state().sealed->update_id, {}, ""}));
  }
  return ended;
}

absl::Status ClientSession::Converse(CoordinatorLink* link) {
  TERSE_RETURN_IF_ERROR(Start(link));
  while (true) {
    absl::StatusOr<FromServer> message = link->Receive();
    if (!message.ok()) return message.status();
    if (Next next = Take(link, *message); next.has_value()) return *next;
  }
}

absl::Status ClientSession::Start(OutboundLink* link) {
  joined_ = said_device_ = said_why_ = false;
  said_norm_code_ = absl::nullopt;
  return CheckInWith(link);
}

absl::optional<absl::Status> ClientSession::Take(OutboundLink* link, const FromServer& message) {
  if (Next next = OnMessage(link, message); next.has_value()) return next;
  absl::Status saved = SaveModelIfDue();
  return saved.ok() ? Next() : Next(std::move(saved));
}

void ClientSession::Rest() {
  if (!work_.has_value()) return;
  work_->trainer = nullptr;
  work_->feedback = nullptr;
  work_->scratch = std::vector<float>();
}

ClientSession::Next ClientSession::OnMessage(OutboundLink* link, const FromServer& message) {
  if (const auto* refusal = std::get_if<Refusal>(&message)) return OnRefusal(*refusal);
  if (const auto* finished = std::get_if<Finished>(&message)) {
    Log(LogLevel::kInfo, 0, absl::StrCat("the run is over: ", finished->reason));
    const bool awake = work_.has_value() && work_->trainer != nullptr;
    if (awake && work_->model.version().has_value()) {
      work_->trainer->OnFinished(finished->reason, work_->model.weights());
    }
    link->Send(Leaving{}).IgnoreError();
    return absl::OkStatus();
  }
  absl::Status status;
  if (const auto* welcome = std::get_if<Welcome>(&message)) {
    status = OnWelcome(link, *welcome);
  } else if (!work_.has_value()) {
    status = absl::UnavailableError("the coordinator spoke before its welcome");
  } else if (const auto* resync = std::get_if<Resync>(&message)) {
    status = OnResync(link, *resync);
  } else if (const auto* downstream = std::get_if<Downstream>(&message)) {
    status = OnDownstream(link, *downstream);
  } else if (const auto* assignment = std::get_if<Assignment>(&message)) {
    status = OnAssignment(link, *assignment);
  } else if (const auto* verdict = std::get_if<Verdict>(&message)) {
    status = OnVerdict(*verdict);
  } else if (const auto* receipt = std::get_if<Receipt>(&message)) {
    status = OnReceipt(*receipt);
  } else if (std::holds_alternative<BeginHistory>(message)) {
    work_->BeginHistory();
  }
  if (options_.observer != nullptr) {
    options_.observer->OnVersion(work_.has_value() ? work_->model.version() : absl::nullopt);
  }
  if (!status.ok() && !absl::IsCancelled(status)) said_why_ = link->Send(Leaving{ReasonOf(status)}).ok();
  return status.ok() ? Next() : Next(std::move(status));
}

void ClientSession::TellReturn() {
  if (!lost_us_.has_value()) return;
  const int64_t away_us = options_.clock->MonotonicMicros() - *lost_us_;
  lost_us_ = absl::nullopt;
  Log(LogLevel::kInfo, 0, absl::StrFormat("connected again after %.1f s", static_cast<double>(away_us) * 1e-6));
}

absl::Status ClientSession::OnWelcome(OutboundLink* link, const Welcome& welcome) {
  TERSE_FAILPOINT("client.welcome.received");
  sent_back_to_ = Id128();
  TERSE_RETURN_IF_ERROR(Adopt(link, welcome));
  if (welcome.verdict.has_value()) TERSE_RETURN_IF_ERROR(OnVerdict(*welcome.verdict));
  link->SetMaxDownstreamBytes(MaxDownstreamBytes(work_->downstream_codecs(), work_->config->rounds.clients));
  joined_ = true;
  TellReturn();
  return SendReady(link);
}

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

absl::Status ClientSession::Adopt(OutboundLink* link, const Welcome& welcome) {
  const StoredHead& stored = options_.state->state();
  const bool is_family = stored.family == FamilyOf(welcome);
  const bool moves = is_family && stored.lineage != welcome.lineage;
  const bool works = is_family && work_.has_value() && work_->lineage == stored.lineage;
  if (works && !moves) return absl::OkStatus();
  if (!works) TERSE_RETURN_IF_ERROR(Join(link, welcome, moves ? stored.lineage : welcome.lineage));
  if (moves) TERSE_RETURN_IF_ERROR(MoveTo(welcome));
  TellJoined();
  return absl::OkStatus();
}

absl::Status ClientSession::Join(OutboundLink* link, const Welcome& welcome, Id128 lineage) {
  TERSE_ASSIGN_OR_RETURN(const std::string module, FetchModule(link, welcome));
  const StoredHead& stored = options_.state->state();
  const Id128 family = FamilyOf(welcome);
  if (!stored.lineage.IsZero() && (stored.lineage != lineage || stored.family != family)) {
    Log(LogLevel::kInfo, 0,
        absl::StrCat("run '", welcome.config->name, "' is another one than before: what was kept of the earlier run, ",
                     "with the rest of its work, is dropped"));
  }
  TERSE_RETURN_IF_ERROR(StoredStatus(options_.state->Begin(lineage, family, welcome.config->durability)));
  Work work;
  work.lineage = lineage;
  work.family = family;
  work.config = welcome.config;
  work.client_index = welcome.client_index;
  work.shard = ShardIn(welcome);
  work.moved = lineage != welcome.lineage || !stored.parted.empty();
  work.model = HeldModel(welcome.config, options_.shared_models);
  TERSE_RETURN_IF_ERROR(Equip(module, &work));
  LoadModel(&work);
  if (!work.model.version().has_value() && !welcome.start_hash.IsZero()) StartFromScratch(welcome.start_hash, &work);
  work_ = std::move(work);  // only whole: what could not be read must not count as empty
  saved_version_ = absl::nullopt;
  return absl::OkStatus();
}

void ClientSession::TellJoined() const {
  if (options_.observer != nullptr) options_.observer->OnJoined(work_->feedback->pending(), work_->feedback->Norm());
  const RunConfig& config = *work_->config;
  const absl::optional<int64_t> shards = ShardsOf(config);
  Log(LogLevel::kInfo, 0,
      absl::StrCat("joined run '", config.name, "' as client ", work_->client_index,
                   shards.has_value() ? absl::StrCat(" with one of ", *shards, " shards") : "", ", codec ",
                   config.codec.name, ", ", config.train.local_steps, " local steps a round"));
}

Shard ClientSession::ShardIn(const Welcome& welcome) {
  const absl::optional<int64_t> shards = ShardsOf(*welcome.config);
  if (!shards.has_value()) return Shard();
  return {welcome.shards.has_value() ? welcome.shards->first : welcome.client_index, *shards};
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

absl::Status ClientSession::SendReady(OutboundLink* link) {
  TERSE_RETURN_IF_ERROR(Wake());
  Ready ready;
  ready.version = work_->model.version();
  if (ready.version.has_value()) ready.model_hash = HashWeights(work_->model.weights());
  ready.layout_hash = work_->codec->layout().Hash();
  ready.samples = work_->trainer->samples();
  if (work_->history.has_value()) ready.history_hash = work_->history->Hash();
  if (!said_device_) ready.device = work_->trainer->device();
  TERSE_RETURN_IF_ERROR(link->Send(ready));
  said_device_ = true;
  return options_.state->state().sealed.has_value() ? Push(link, /*may_pack=*/false) : absl::OkStatus();
}

absl::Status ClientSession::OnResync(OutboundLink* link, const Resync& resync) {
  Log(LogLevel::kInfo, 0, absl::StrCat("downloading checkpoint ", resync.checkpoint_version, ": ", resync.reason));
  work_->model.Drop();
  const int64_t size = work_->codec->layout().size();
  absl::StatusOr<std::string> bytes =
      link->DownloadCheckpoint(work_->lineage, resync.checkpoint_version, 4 * size + kCheckpointEnvelope);
  if (absl::IsNotFound(bytes.status())) return SendReady(link);  // replaced meanwhile: ask for the new one
  if (!bytes.ok()) return bytes.status();
  TERSE_FAILPOINT("client.resync.downloaded");
  absl::StatusOr<Checkpoint> checkpoint = ParseCheckpoint(*bytes);
  if (!checkpoint.ok() || static_cast<int64_t>(checkpoint->weights.size()) != size) {
    return absl::UnavailableError(
        absl::StrCat("the downloaded checkpoint is not whole: ", checkpoint.status().message()));
  }
  if (!StandsAlone(*work_->config, checkpoint->version)) {
    return absl::UnavailableError(absl::StrCat("the checkpoint of version ", checkpoint->version, " is no snapshot"));
  }
  work_->model.Hold(checkpoint->version, std::move(checkpoint->weights));
  save_due_us_ = 0;  // it cost a download
  return SendReady(link);
}

absl::Status ClientSession::OnDownstream(OutboundLink* link, const Downstream& downstream) {
  // Without a model a resync is on its way; only a version that stands alone can take its place.
  HeldModel& model = work_->model;
  const bool held = model.version().has_value();
  if (held ? downstream.version <= *model.version() : !model.CanMoveTo(downstream.version)) return absl::OkStatus();
  if (!model.CanMoveTo(downstream.version)) {
    return absl::UnavailableError(
        absl::StrCat("a downstream message for version ", downstream.version, " at version ", *model.version()));
  }
  TERSE_FAILPOINT("client.delta.before_apply");
  const absl::Status applied = model.MoveTo(downstream, work_->downstream_codecs(), &work_->scratch);
  if (applied.ok()) {
    TERSE_FAILPOINT("client.delta.applied");
    Log(LogLevel::kDebug, 0,
        absl::StrCat("at version ", downstream.version, ", by ", downstream.message->size(), " bytes"));
    return absl::OkStatus();
  }
  Log(LogLevel::kWarn, 0,
      absl::StrCat("version ", downstream.version, " does not match the coordinator's model hash: full resync. ",
                   applied.message()));
  model.Drop();
  return SendReady(link);
}

absl::Status ClientSession::Flush() {
  TERSE_RETURN_IF_ERROR(options_.state->Flush());
  if (!work_.has_value() || !work_->model.version().has_value()) return absl::OkStatus();
  return SaveModel();
}

absl::Status ClientSession::SaveModelIfDue() {
  if (!work_.has_value() || !work_->model.version().has_value()) return absl::OkStatus();
  if (saved_version_ == work_->model.StandingVersion() || options_.clock->MonotonicMicros() < save_due_us_) {
    return absl::OkStatus();
  }
  return StoredStatus(SaveModel());
}

absl::Status ClientSession::SaveModel() {
  std::vector<float>* const kept = work_->model.own_standing();
  if (kept == nullptr) return absl::OkStatus();
  // Moved, because it is large.
  CachedModel model = {work_->family, work_->model.StandingVersion(), std::move(*kept)};
  const absl::Status saved = options_.state->SaveModel(model);
  *kept = std::move(model.weights);
  if (saved.ok()) saved_version_ = model.version;
  save_due_us_ = options_.clock->MonotonicMicros() + kSaveModelMicros;
  return saved;
}

}  // namespace terse
