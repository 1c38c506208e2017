#include "bench/fleet/load_protocol.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/norm_code.h"
#include "core/status.h"
#include "proto/session_wire.h"
#include "storage/run_store.h"

namespace terse {
namespace {

// The samples that every client says it has: with weights by samples all count alike.
constexpr int64_t kSamples = 128;
constexpr char kDevice[] = "cpu";

void Say(const FromClient& message, std::vector<v1::ClientMessage>* say) {
  for (v1::ClientMessage& chunk : ToWire(message)) say->push_back(std::move(chunk));
}

}  // namespace

LoadProtocol::LoadProtocol(const LoadShare* share, std::string name, bool leads)
    : share_(share), name_(std::move(name)), leads_(leads), process_(Id128::Random()) {}

v1::ClientMessage LoadProtocol::CheckIn() {
  said_device_ = said_norm_code_ = false;
  size_ = arrived_ = 0;
  terse::CheckIn message;
  message.name = name_;
  message.process = process_;
  message.connection = ++connections_;
  message.lineage = lineage_;
  message.prev_applied = prev_applied_;
  if (pending_.has_value()) {
    message.pending_update_id = pending_->update_id;
    message.pending_round = pending_->round;
  }
  return std::move(ToWire(FromClient(message)).front());
}

absl::StatusOr<LoadProtocol::Reaction> LoadProtocol::On(const v1::ServerMessage& message) {
  Reaction reaction;
  if (message.has_downstream()) {
    TERSE_RETURN_IF_ERROR(OnDownstream(message.downstream()));
    return reaction;
  }
  ServerMessageReader reader;  // it keeps state for downstream messages alone
  TERSE_ASSIGN_OR_RETURN(const absl::optional<FromServer> read, reader.Feed(message));
  if (const auto* refusal = std::get_if<Refusal>(&*read)) {
    if (refusal->retry) ++share_->tally->refusals;
    return refusal->retry ? absl::UnavailableError(refusal->reason) : absl::FailedPreconditionError(refusal->reason);
  }
  if (const auto* welcome = std::get_if<Welcome>(&*read)) {
    reaction = OnWelcome(*welcome);
  } else if (const auto* resync = std::get_if<Resync>(&*read)) {
    checkpoint_version_ = resync->checkpoint_version;
    held_ = absl::nullopt;
    reaction.download = true;
  } else if (const auto* assignment = std::get_if<Assignment>(&*read)) {
    OnAssignment(*assignment, &reaction);
  } else if (const auto* verdict = std::get_if<Verdict>(&*read)) {
    OnVerdict(*verdict);
  } else if (std::holds_alternative<Finished>(*read)) {
    Say(Leaving{}, &reaction.say);
    reaction.over = true;
  } else if (std::holds_alternative<BeginHistory>(*read)) {
    return absl::FailedPreconditionError("the run packs its updates, and prepared updates are not packed");
  }
  return reaction;  // a receipt changes nothing
}

LoadProtocol::Reaction LoadProtocol::OnWelcome(const Welcome& welcome) {
  if (welcome.lineage != lineage_) {
    lineage_ = welcome.lineage;
    prev_applied_ = {};
    pending_ = absl::nullopt;
    held_ = absl::nullopt;
  }
  client_index_ = welcome.client_index;
  if (welcome.verdict.has_value()) OnVerdict(*welcome.verdict);
  if (!held_.has_value()) held_ = share_->model->held();
  Reaction reaction;
  reaction.welcomed = true;
  SayReady(&reaction.say);
  return reaction;
}

void LoadProtocol::SayReady(std::vector<v1::ClientMessage>* say) {
  Ready ready;
  if (held_.has_value()) {
    ready.version = held_->version;
    ready.model_hash = held_->hash;
  }
  ready.layout_hash = share_->layout_hash;
  ready.samples = kSamples;
  if (!std::exchange(said_device_, true)) ready.device = kDevice;
  Say(ready, say);
  if (pending_.has_value()) SayUpdate(say);
}

void LoadProtocol::SayUpdate(std::vector<v1::ClientMessage>* say) {
  Update update = {pending_->round, pending_->update_id, /*train_us=*/1, /*loss=*/1.0F, *pending_->message};
  // Nothing is kept of an update, and that does not change: it is said once.
  if (!std::exchange(said_norm_code_, true)) update.norm_code = NormCode(0);
  Say(update, say);
}

absl::Status LoadProtocol::OnDownstream(const v1::DownstreamChunk& chunk) {
  if (chunk.has_header()) {
    if (arrived_ != size_) return absl::InternalError("a downstream message began before the one before was whole");
    next_.version = static_cast<int64_t>(chunk.header().version());
    TERSE_ASSIGN_OR_RETURN(next_.hash, Id128::FromBytes(chunk.header().model_hash()));
    size_ = static_cast<int64_t>(chunk.header().size());
    arrived_ = 0;
    message_.clear();
    if (size_ > share_->model->max_downstream_bytes()) {
      return absl::InternalError(absl::StrCat("a downstream message announces ", size_,
                                              " bytes; the run's have at most ",
                                              share_->model->max_downstream_bytes()));
    }
    if (leads_) message_.reserve(size_);
  }
  arrived_ += static_cast<int64_t>(chunk.data().size());
  if (arrived_ > size_) return absl::InternalError("more of a downstream message arrived than it announced");
  if (leads_) message_ += chunk.data();
  return arrived_ == size_ ? OnWholeDelta() : absl::OkStatus();
}

absl::Status LoadProtocol::OnWholeDelta() {
  // Without a model a download is on its way, and what is older was in it.
  if (!held_.has_value() || next_.version <= held_->version) return absl::OkStatus();
  if (next_.version != held_->version + 1) {
    return absl::InternalError(
        absl::StrCat("the message of version ", next_.version, " came at version ", held_->version));
  }
  share_->on_version(next_.version);
  if (leads_) TERSE_RETURN_IF_ERROR(share_->model->Apply(next_, message_));
  message_ = std::string();
  held_ = next_;
  return absl::OkStatus();
}

void LoadProtocol::OnAssignment(const Assignment& assignment, Reaction* reaction) {
  // As a client does: no new work while an update waits for its verdict, nor from other weights than those it holds.
  if (pending_.has_value() || !held_.has_value() || held_->version != assignment.base_version) return;
  Pending update;
  update.round = assignment.round;
  update.message = &share_->pool->Take(client_index_, assignment.round);
  update.update_id = MakeUpdateId(lineage_, update.round, client_index_, prev_applied_, *update.message);
  pending_ = update;
  SayUpdate(&reaction->say);
}

void LoadProtocol::OnVerdict(const Verdict& verdict) {
  if (verdict.update_id != (pending_.has_value() ? pending_->update_id : Id128{})) return;
  if (verdict.outcome == Outcome::kReset) {
    ++share_->tally->resets;
    prev_applied_ = verdict.last_applied;
    pending_ = absl::nullopt;
    return;
  }
  if (!pending_.has_value() || verdict.outcome == Outcome::kPending) return;
  const bool applied = verdict.outcome == Outcome::kApplied;
  ++(applied ? share_->tally->applied : share_->tally->not_applied);
  if (applied) prev_applied_ = pending_->update_id;
  pending_ = absl::nullopt;
}

absl::StatusOr<std::vector<v1::ClientMessage>> LoadProtocol::OnCheckpoint(absl::string_view bytes) {
  TERSE_ASSIGN_OR_RETURN(Checkpoint checkpoint, ParseCheckpoint(bytes));
  ++share_->tally->downloads;
  held_ = HeldVersion{checkpoint.version, checkpoint.model_hash};
  if (leads_) TERSE_RETURN_IF_ERROR(share_->model->Hold(std::move(checkpoint)));
  return AskAgain();
}

std::vector<v1::ClientMessage> LoadProtocol::AskAgain() {
  std::vector<v1::ClientMessage> say;
  SayReady(&say);
  return say;
}

}  // namespace terse
