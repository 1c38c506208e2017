#include "proto/session_wire.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/codec_choices.h"
#include "core/norm_code.h"
#include "core/status.h"
#include "proto/run_config_convert.h"
#include "proto/run_config_rules.h"

namespace terse {
namespace {

// The most rounds and the most local steps that a run file may ask for.
constexpr int64_t kMostIterations = int64_t{100'000'000} * 1'000'000;

v1::Verdict::Outcome ToWire(Outcome outcome) {
  switch (outcome) {
    case Outcome::kApplied:
      return v1::Verdict::OUTCOME_APPLIED;
    case Outcome::kNotApplied:
      return v1::Verdict::OUTCOME_NOT_APPLIED;
    case Outcome::kPending:
      return v1::Verdict::OUTCOME_PENDING;
    case Outcome::kReset:
      return v1::Verdict::OUTCOME_RESET;
  }
  return v1::Verdict::OUTCOME_UNSPECIFIED;
}

absl::StatusOr<Outcome> FromWire(v1::Verdict::Outcome outcome) {
  switch (outcome) {
    case v1::Verdict::OUTCOME_APPLIED:
      return Outcome::kApplied;
    case v1::Verdict::OUTCOME_NOT_APPLIED:
      return Outcome::kNotApplied;
    case v1::Verdict::OUTCOME_PENDING:
      return Outcome::kPending;
    case v1::Verdict::OUTCOME_RESET:
      return Outcome::kReset;
    default:
      return absl::InvalidArgumentError(absl::StrCat("unknown verdict ", static_cast<int>(outcome)));
  }
}

// An optional id: the empty string for zero, so that it costs nothing on the wire.
std::string IdBytes(Id128 id) { return id.IsZero() ? std::string() : id.ToBytes(); }

void FillVerdict(const Verdict& verdict, v1::Verdict* out) {
  out->set_outcome(ToWire(verdict.outcome));
  out->set_update_id(IdBytes(verdict.update_id));
  if (verdict.outcome == Outcome::kReset) out->set_last_applied(IdBytes(verdict.last_applied));
  out->set_reason(verdict.reason);
}

// An id that may be absent.
absl::StatusOr<Id128> ReadId(const std::string& bytes, absl::string_view field) {
  absl::StatusOr<Id128> id = Id128::FromBytes(bytes);
  if (!id.ok()) return Annotate(id.status(), field);
  return id;
}

absl::StatusOr<Verdict> ParseVerdict(const v1::Verdict& wire) {
  Verdict verdict;
  TERSE_ASSIGN_OR_RETURN(verdict.outcome, FromWire(wire.outcome()));
  TERSE_ASSIGN_OR_RETURN(verdict.update_id, ReadId(wire.update_id(), "update_id"));
  TERSE_ASSIGN_OR_RETURN(verdict.last_applied, ReadId(wire.last_applied(), "last_applied"));
  verdict.reason = wire.reason();
  return verdict;
}

// A number that must fit a signed 64-bit integer.
absl::StatusOr<int64_t> Number(uint64_t value, absl::string_view field) {
  if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return absl::InvalidArgumentError(absl::StrCat(field, " is out of range: ", value));
  }
  return static_cast<int64_t>(value);
}

void Fill(const Welcome& welcome, const v1::RunConfig& config, v1::Welcome* out) {
  out->set_lineage(welcome.lineage.ToBytes());
  *out->mutable_config() = config;
  out->set_client_index(welcome.client_index);
  if (welcome.verdict.has_value()) FillVerdict(*welcome.verdict, out->mutable_verdict());
  out->set_head_version(welcome.head_version);
  if (!welcome.start_hash.IsZero()) out->set_start_hash(welcome.start_hash.ToBytes());
}

std::vector<v1::ServerMessage> DownstreamToWire(const Downstream& downstream) {
  std::vector<v1::ServerMessage> out;
  for (DownstreamChunks chunks(downstream); chunks.left() > 0;) out.push_back(chunks.Next(kChunkBytes));
  return out;
}

std::vector<v1::ClientMessage> UpdateToWire(const Update& update) {
  std::vector<v1::ClientMessage> chunks;
  for (size_t at = 0; at < update.message.size(); at += kChunkBytes) {
    chunks.emplace_back().mutable_update()->set_data(update.message.substr(at, kChunkBytes));
  }
  v1::UpdateHeader* header = chunks.front().mutable_update()->mutable_header();
  header->set_round(update.round);
  header->set_update_id(update.update_id.ToBytes());
  header->set_size(update.message.size());
  header->set_train_us(update.train_us);
  header->set_loss(update.loss);
  header->set_packed(update.packed);
  if (update.norm_code.has_value()) header->set_norm_code(*update.norm_code);
  for (const NamedMetric& metric : update.metrics) {
    v1::Metric* const wire = header->add_metrics();
    wire->set_kind(static_cast<v1::Metric::Kind>(metric.kind));
    wire->set_name(metric.name);
    wire->set_value(metric.value);
    wire->set_samples(metric.samples);
  }
  return chunks;
}

absl::StatusOr<FromClient> ParseCheckIn(const v1::CheckIn& wire) {
  CheckIn message;
  message.protocol_version = wire.protocol_version();
  message.name = wire.name();
  TERSE_ASSIGN_OR_RETURN(message.lineage, ReadId(wire.lineage(), "lineage"));
  TERSE_ASSIGN_OR_RETURN(message.prev_applied, ReadId(wire.prev_applied(), "prev_applied"));
  TERSE_ASSIGN_OR_RETURN(message.pending_update_id, ReadId(wire.pending_update_id(), "pending_update_id"));
  TERSE_ASSIGN_OR_RETURN(message.pending_round, Number(wire.pending_round(), "pending_round"));
  message.residual_lost = wire.residual_lost();
  if (!wire.run().empty() && !IsRunName(wire.run())) {
    return absl::InvalidArgumentError(
        absl::StrCat("run name '", absl::CHexEscape(wire.run().substr(0, 64)), "' is not usable: ", RunNameForm()));
  }
  message.run = wire.run();
  TERSE_ASSIGN_OR_RETURN(message.process, ReadId(wire.process(), "process"));
  message.connection = wire.connection();
  return FromClient(std::move(message));
}

absl::StatusOr<FromClient> ParseReady(const v1::Ready& wire) {
  Ready message;
  if (wire.has_version()) {
    TERSE_ASSIGN_OR_RETURN(message.version, Number(wire.version(), "version"));
  }
  TERSE_ASSIGN_OR_RETURN(message.model_hash, ReadId(wire.model_hash(), "model_hash"));
  TERSE_ASSIGN_OR_RETURN(message.layout_hash, ReadId(wire.layout_hash(), "layout_hash"));
  TERSE_ASSIGN_OR_RETURN(message.samples, Number(wire.samples(), "samples"));
  TERSE_ASSIGN_OR_RETURN(message.history_hash, ReadId(wire.history_hash(), "history_hash"));
  if (!wire.device().empty() && !IsDeviceName(wire.device())) {
    return absl::InvalidArgumentError(absl::StrCat("device '", absl::CHexEscape(wire.device().substr(0, 64)),
                                                   "' is not usable: 1 to 64 printable characters of ASCII are"));
  }
  message.device = wire.device();
  return FromClient(std::move(message));
}

absl::StatusOr<absl::optional<int>> ReadNormCode(const v1::UpdateHeader& wire) {
  if (!wire.has_norm_code()) return absl::optional<int>();
  if (wire.norm_code() > kMostNormCode) {
    return absl::InvalidArgumentError(absl::StrCat("norm_code is out of range: ", wire.norm_code()));
  }
  return absl::make_optional(static_cast<int>(wire.norm_code()));
}

// The engine's checks (CheckMetrics) look at what is read here.
absl::StatusOr<std::vector<NamedMetric>> ReadMetrics(const v1::UpdateHeader& wire) {
  if (static_cast<size_t>(wire.metrics_size()) > kMostMetrics) {
    return absl::InvalidArgumentError(absl::StrCat("an update with ", wire.metrics_size(), " metrics"));
  }
  std::vector<NamedMetric> metrics;
  for (const v1::Metric& metric : wire.metrics()) {
    if (metric.kind() < 0 || metric.kind() > v1::Metric::Kind_MAX) {
      return absl::InvalidArgumentError(absl::StrCat("a metric of the unknown kind ", metric.kind()));
    }
    TERSE_ASSIGN_OR_RETURN(const int64_t samples, Number(metric.samples(), "samples"));
    metrics.push_back({static_cast<MetricKind>(metric.kind()), metric.name(), metric.value(), samples});
  }
  return metrics;
}

absl::StatusOr<FromServer> ParseWelcome(const v1::Welcome& wire) {
  Welcome message;
  TERSE_ASSIGN_OR_RETURN(message.lineage, ReadId(wire.lineage(), "lineage"));
  if (message.lineage.IsZero()) return absl::InvalidArgumentError("the coordinator sent no lineage");
  TERSE_ASSIGN_OR_RETURN(RunConfig config, ToCore(wire.config()));
  message.config = std::make_shared<const RunConfig>(std::move(config));
  message.client_index = wire.client_index();
  if (wire.has_verdict()) {
    TERSE_ASSIGN_OR_RETURN(message.verdict, ParseVerdict(wire.verdict()));
  }
  TERSE_ASSIGN_OR_RETURN(message.head_version, Number(wire.head_version(), "head_version"));
  TERSE_ASSIGN_OR_RETURN(message.start_hash, ReadId(wire.start_hash(), "start_hash"));
  return FromServer(std::move(message));
}

}  // namespace

v1::ServerMessage DownstreamChunks::Next(int64_t most) {
  const int64_t bytes = std::min(left(), most);
  v1::ServerMessage out;
  v1::DownstreamChunk* const chunk = out.mutable_downstream();
  if (at_ == 0) {
    v1::DownstreamHeader* const header = chunk->mutable_header();
    header->set_version(downstream_.version);
    header->set_model_hash(downstream_.model_hash.ToBytes());
    header->set_size(downstream_.message->size());
  }
  chunk->set_data(downstream_.message->data() + at_, static_cast<size_t>(bytes));
  at_ += bytes;
  return out;
}

std::vector<v1::ServerMessage> ToWire(const FromServer& message, const v1::RunConfig& config) {
  if (const auto* downstream = std::get_if<Downstream>(&message)) return DownstreamToWire(*downstream);
  std::vector<v1::ServerMessage> out(1);
  if (const auto* welcome = std::get_if<Welcome>(&message)) {
    Fill(*welcome, config, out[0].mutable_welcome());
  } else if (const auto* resync = std::get_if<Resync>(&message)) {
    out[0].mutable_resync()->set_checkpoint_version(resync->checkpoint_version);
    out[0].mutable_resync()->set_reason(resync->reason);
  } else if (const auto* assignment = std::get_if<Assignment>(&message)) {
    out[0].mutable_assignment()->set_round(assignment->round);
    out[0].mutable_assignment()->set_base_version(assignment->base_version);
    out[0].mutable_assignment()->set_local_steps(assignment->local_steps);
    out[0].mutable_assignment()->set_choice(static_cast<uint32_t>(assignment->choice));
    if (assignment->first_iteration.has_value()) {
      out[0].mutable_assignment()->set_first_iteration(*assignment->first_iteration);
    }
    out[0].mutable_assignment()->set_packed(assignment->packed);
  } else if (const auto* receipt = std::get_if<Receipt>(&message)) {
    out[0].mutable_receipt()->set_update_id(receipt->update_id.ToBytes());
  } else if (const auto* verdict = std::get_if<Verdict>(&message)) {
    FillVerdict(*verdict, out[0].mutable_verdict());
  } else if (const auto* refusal = std::get_if<Refusal>(&message)) {
    out[0].mutable_refusal()->set_reason(refusal->reason);
    out[0].mutable_refusal()->set_retry(refusal->retry);
  } else if (const auto* finished = std::get_if<Finished>(&message)) {
    out[0].mutable_finished()->set_reason(finished->reason);
  } else {
    out[0].mutable_begin_history();
  }
  return out;
}

std::vector<v1::ClientMessage> ToWire(const FromClient& message) {
  if (const auto* update = std::get_if<Update>(&message)) return UpdateToWire(*update);
  std::vector<v1::ClientMessage> out(1);
  if (const auto* check_in = std::get_if<CheckIn>(&message)) {
    v1::CheckIn* wire = out[0].mutable_check_in();
    wire->set_protocol_version(check_in->protocol_version);
    wire->set_name(check_in->name);
    wire->set_lineage(IdBytes(check_in->lineage));
    wire->set_prev_applied(IdBytes(check_in->prev_applied));
    wire->set_pending_update_id(IdBytes(check_in->pending_update_id));
    wire->set_pending_round(check_in->pending_round);
    wire->set_residual_lost(check_in->residual_lost);
    wire->set_run(check_in->run);
    wire->set_process(IdBytes(check_in->process));
    wire->set_connection(check_in->connection);
  } else if (const auto* ready = std::get_if<Ready>(&message)) {
    if (ready->version.has_value()) out[0].mutable_ready()->set_version(*ready->version);
    out[0].mutable_ready()->set_model_hash(IdBytes(ready->model_hash));
    out[0].mutable_ready()->set_layout_hash(IdBytes(ready->layout_hash));
    out[0].mutable_ready()->set_samples(ready->samples);
    out[0].mutable_ready()->set_history_hash(IdBytes(ready->history_hash));
    out[0].mutable_ready()->set_device(ready->device);
  } else if (const auto* progress = std::get_if<Progress>(&message)) {
    out[0].mutable_progress()->set_round(progress->round);
    out[0].mutable_progress()->set_steps_done(progress->steps_done);
  } else {
    out[0].mutable_leaving()->set_reason(std::get<Leaving>(message).reason);
  }
  return out;
}

absl::Status Assembly::Begin(uint64_t size, int64_t limit, absl::string_view what) {
  if (active_) return absl::InvalidArgumentError(absl::StrCat(what, " begins before the one before it ended"));
  if (size == 0 || size > static_cast<uint64_t>(limit)) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " announces ", size, " bytes; this model allows 1 to ", limit));
  }
  active_ = true;
  size_ = size;
  data_.clear();
  data_.reserve(size);
  return absl::OkStatus();
}

absl::Status Assembly::Append(absl::string_view data) {
  if (!active_) return absl::InvalidArgumentError("a chunk without a header before it");
  if (data.empty() || data.size() > size_ - data_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a chunk of ", data.size(), " bytes where ", size_ - data_.size(), " are still to come"));
  }
  data_.append(data.data(), data.size());
  return absl::OkStatus();
}

std::string Assembly::Take() {
  active_ = false;
  return std::move(data_);
}

absl::StatusOr<absl::optional<FromClient>> ClientMessageReader::Feed(const v1::ClientMessage& message) {
  switch (message.body_case()) {
    case v1::ClientMessage::kCheckIn: {
      TERSE_ASSIGN_OR_RETURN(FromClient parsed, ParseCheckIn(message.check_in()));
      return absl::make_optional(std::move(parsed));
    }
    case v1::ClientMessage::kReady: {
      TERSE_ASSIGN_OR_RETURN(FromClient parsed, ParseReady(message.ready()));
      return absl::make_optional(std::move(parsed));
    }
    case v1::ClientMessage::kProgress: {
      Progress progress;
      TERSE_ASSIGN_OR_RETURN(progress.round, Number(message.progress().round(), "round"));
      TERSE_ASSIGN_OR_RETURN(progress.steps_done, Number(message.progress().steps_done(), "steps_done"));
      return absl::make_optional(FromClient(progress));
    }
    case v1::ClientMessage::kLeaving:
      if (message.leaving().reason().size() > kMostReasonBytes) {
        return absl::InvalidArgumentError(absl::StrCat("a reason to leave of more than ", kMostReasonBytes, " bytes"));
      }
      return absl::make_optional(FromClient(Leaving{message.leaving().reason()}));
    case v1::ClientMessage::kUpdate:
      return FeedUpdate(message.update());
    case v1::ClientMessage::BODY_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("an empty message, or one of a newer protocol");
}

absl::StatusOr<absl::optional<FromClient>> ClientMessageReader::FeedUpdate(const v1::UpdateChunk& chunk) {
  if (chunk.has_header()) {
    const v1::UpdateHeader& header = chunk.header();
    TERSE_RETURN_IF_ERROR(assembly_.Begin(header.size(), max_update_bytes_, "the update"));
    TERSE_ASSIGN_OR_RETURN(update_.round, Number(header.round(), "round"));
    TERSE_ASSIGN_OR_RETURN(update_.update_id, ReadId(header.update_id(), "update_id"));
    TERSE_ASSIGN_OR_RETURN(update_.train_us, Number(header.train_us(), "train_us"));
    update_.loss = header.loss();
    update_.packed = header.packed();
    TERSE_ASSIGN_OR_RETURN(update_.norm_code, ReadNormCode(header));
    TERSE_ASSIGN_OR_RETURN(update_.metrics, ReadMetrics(header));
  }
  TERSE_RETURN_IF_ERROR(assembly_.Append(chunk.data()));
  if (!assembly_.complete()) return absl::optional<FromClient>();
  update_.message = assembly_.Take();
  return absl::make_optional(FromClient(std::move(update_)));
}

absl::StatusOr<absl::optional<FromServer>> ServerMessageReader::Feed(const v1::ServerMessage& message) {
  switch (message.body_case()) {
    case v1::ServerMessage::kWelcome: {
      TERSE_ASSIGN_OR_RETURN(FromServer parsed, ParseWelcome(message.welcome()));
      return absl::make_optional(std::move(parsed));
    }
    case v1::ServerMessage::kResync: {
      Resync resync;
      TERSE_ASSIGN_OR_RETURN(resync.checkpoint_version,
                             Number(message.resync().checkpoint_version(), "checkpoint_version"));
      resync.reason = message.resync().reason();
      return absl::make_optional(FromServer(std::move(resync)));
    }
    case v1::ServerMessage::kDownstream:
      return FeedDownstream(message.downstream());
    case v1::ServerMessage::kAssignment: {
      Assignment assignment;
      TERSE_ASSIGN_OR_RETURN(assignment.round, Number(message.assignment().round(), "round"));
      TERSE_ASSIGN_OR_RETURN(assignment.base_version, Number(message.assignment().base_version(), "base_version"));
      assignment.local_steps = message.assignment().local_steps();
      if (assignment.local_steps < 1) return absl::InvalidArgumentError("an assignment without local steps");
      assignment.choice = message.assignment().choice();
      if (assignment.choice >= kMostCodecChoices) return absl::InvalidArgumentError("an assignment of no coding");
      if (message.assignment().has_first_iteration()) {
        TERSE_ASSIGN_OR_RETURN(assignment.first_iteration,
                               Number(message.assignment().first_iteration(), "first_iteration"));
        if (*assignment.first_iteration > kMostIterations) {
          return absl::InvalidArgumentError("an assignment beyond the last iteration that a run can have");
        }
      }
      assignment.packed = message.assignment().packed();
      return absl::make_optional(FromServer(assignment));
    }
    case v1::ServerMessage::kReceipt: {
      Receipt receipt;
      TERSE_ASSIGN_OR_RETURN(receipt.update_id, ReadId(message.receipt().update_id(), "update_id"));
      return absl::make_optional(FromServer(receipt));
    }
    case v1::ServerMessage::kVerdict: {
      TERSE_ASSIGN_OR_RETURN(Verdict verdict, ParseVerdict(message.verdict()));
      return absl::make_optional(FromServer(std::move(verdict)));
    }
    case v1::ServerMessage::kRefusal:
      return absl::make_optional(FromServer(Refusal{message.refusal().reason(), message.refusal().retry()}));
    case v1::ServerMessage::kFinished:
      return absl::make_optional(FromServer(Finished{message.finished().reason()}));
    case v1::ServerMessage::kBeginHistory:
      return absl::make_optional(FromServer(BeginHistory{}));
    case v1::ServerMessage::BODY_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("an empty message, or one of a newer protocol");
}

absl::StatusOr<absl::optional<FromServer>> ServerMessageReader::FeedDownstream(const v1::DownstreamChunk& chunk) {
  if (chunk.has_header()) {
    TERSE_RETURN_IF_ERROR(assembly_.Begin(chunk.header().size(), max_downstream_bytes_, "the downstream message"));
    TERSE_ASSIGN_OR_RETURN(downstream_.version, Number(chunk.header().version(), "version"));
    TERSE_ASSIGN_OR_RETURN(downstream_.model_hash, ReadId(chunk.header().model_hash(), "model_hash"));
  }
  TERSE_RETURN_IF_ERROR(assembly_.Append(chunk.data()));
  if (!assembly_.complete()) return absl::optional<FromServer>();
  downstream_.message = std::make_shared<const std::string>(assembly_.Take());
  return absl::make_optional(FromServer(std::exchange(downstream_, {})));
}

}  // namespace terse
