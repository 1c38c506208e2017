// The reading half of session_wire.h: wire messages become core types once they have been checked.
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
#include "proto/session_wire.h"

namespace terse {
namespace {

// Memory for more bytes than these comes with the bytes: at most so many times what has come.
constexpr uint64_t kReserved = uint64_t{4} << 20;
constexpr uint64_t kReservedAhead = 16;

// The most rounds and the most local steps that a run file may ask for.
constexpr int64_t kMostIterations = int64_t{100'000'000} * 1'000'000;

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

// A number that is at most `most`.
absl::StatusOr<int64_t> Number(uint64_t value, absl::string_view field,
                               int64_t most = std::numeric_limits<int64_t>::max()) {
  if (value > static_cast<uint64_t>(most)) {
    return absl::InvalidArgumentError(absl::StrCat(field, " is out of range: ", value));
  }
  return static_cast<int64_t>(value);
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
  TERSE_ASSIGN_OR_RETURN(message.family, ReadId(wire.family(), "family"));
  if (message.family.IsZero()) message.family = message.lineage;
  message.relay = wire.relay();
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
  TERSE_ASSIGN_OR_RETURN(message.family, ReadId(wire.family(), "family"));
  if (message.family.IsZero()) message.family = message.lineage;
  if (wire.has_shards()) {
    if (wire.shards().count() < 1) return absl::InvalidArgumentError("the coordinator gives no shard");
    message.shards = ShardRange{wire.shards().first(), wire.shards().count()};
  }
  if (wire.tensors_size() > 0) {
    TERSE_ASSIGN_OR_RETURN(Layout layout, LayoutFromWire(wire.tensors()));
    message.layout = std::make_shared<const Layout>(std::move(layout));
    message.wire_config = wire.config().SerializeAsString();
  }
  return FromServer(std::move(message));
}

// An update stands for clients with samples, or for none of either.
absl::StatusOr<CohortFacts> ReadCohort(const v1::UpdateHeader& wire) {
  CohortFacts cohort;
  TERSE_ASSIGN_OR_RETURN(cohort.clients, Number(wire.cohort_clients(), "cohort_clients", CohortFacts::kMostClients));
  TERSE_ASSIGN_OR_RETURN(cohort.samples, Number(wire.cohort_samples(), "cohort_samples", CohortFacts::kMostSamples));
  if ((cohort.clients == 0) != (cohort.samples == 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("an update that stands for ", cohort.clients, " clients with ", cohort.samples, " samples"));
  }
  return cohort;
}

absl::StatusOr<absl::optional<BelowFacts>> ReadBelow(const v1::UpdateHeader& wire) {
  if (!wire.has_below()) return absl::optional<BelowFacts>();
  if (wire.cohort_clients() == 0) return absl::InvalidArgumentError("an update of a client that has others below it");
  const v1::Below& from = wire.below();
  constexpr int64_t kMost = BelowFacts::kMostBytes;
  BelowFacts below;
  TERSE_ASSIGN_OR_RETURN(below.clients, Number(from.clients(), "below.clients", CohortFacts::kMostClients));
  TERSE_ASSIGN_OR_RETURN(below.payload_bytes_up, Number(from.payload_bytes_up(), "below.payload_bytes_up", kMost));
  TERSE_ASSIGN_OR_RETURN(below.wire_bytes_up, Number(from.wire_bytes_up(), "below.wire_bytes_up", kMost));
  TERSE_ASSIGN_OR_RETURN(below.payload_bytes_down,
                         Number(from.payload_bytes_down(), "below.payload_bytes_down", kMost));
  TERSE_ASSIGN_OR_RETURN(below.wire_bytes_down, Number(from.wire_bytes_down(), "below.wire_bytes_down", kMost));
  return absl::make_optional(below);
}

}  // namespace

absl::StatusOr<Layout> LayoutFromWire(const google::protobuf::RepeatedPtrField<v1::Tensor>& tensors) {
  std::vector<Layout::Entry> entries;
  entries.reserve(static_cast<size_t>(tensors.size()));
  for (const v1::Tensor& tensor : tensors) {
    Layout::Entry& entry = entries.emplace_back();
    entry.name = tensor.name();
    for (const uint64_t dimension : tensor.shape()) {
      TERSE_ASSIGN_OR_RETURN(const int64_t size, Number(dimension, "shape"));
      entry.shape.push_back(size);
    }
    entry.kind = tensor.buffer() ? TensorKind::kBuffer : TensorKind::kParameter;
  }
  return Layout::Create(entries);
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
  data_.reserve(std::min(size, kReserved));
  return absl::OkStatus();
}

absl::Status Assembly::Append(absl::string_view data) {
  if (!active_) return absl::InvalidArgumentError("a chunk without a header before it");
  if (data.empty() || data.size() > size_ - data_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a chunk of ", data.size(), " bytes where ", size_ - data_.size(), " are still to come"));
  }
  // std::string itself would double, and so copy what has come several times.
  const uint64_t needed = data_.size() + data.size();
  if (needed > data_.capacity()) data_.reserve(std::min(size_, kReservedAhead * needed));
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
    TERSE_ASSIGN_OR_RETURN(update_.cohort, ReadCohort(header));
    TERSE_ASSIGN_OR_RETURN(update_.below, ReadBelow(header));
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
    case v1::ServerMessage::kRefusal: {
      Refusal refusal = {message.refusal().reason(), message.refusal().retry()};
      TERSE_ASSIGN_OR_RETURN(refusal.lineage, ReadId(message.refusal().lineage(), "lineage"));
      return absl::make_optional(FromServer(std::move(refusal)));
    }
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
