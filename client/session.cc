#include "client/session.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compression/downstream.h"
#include "core/epochs.h"
#include "core/fault.h"
#include "core/log/plain_text.h"
#include "core/status.h"
#include "storage/run_store.h"

namespace terse {
namespace {

// A checkpoint file is the weights and less than this around them.
constexpr int64_t kCheckpointEnvelope = 4096;

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

std::string ClientSession::ReasonOf(const absl::Status& status) {
  if (status.GetPayload(kOfData).has_value()) return "its trainer refused the run or its data; its own log says why";
  std::string reason = PlainText(status.message());
  if (reason.empty()) reason = absl::StatusCodeToString(status.code());
  size_t end = std::min(reason.size(), kMostReasonBytes);
  while (end < reason.size() && end > 0 && (static_cast<unsigned char>(reason[end]) & 0xC0) == 0x80) --end;
  reason.resize(end);
  return reason;
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
