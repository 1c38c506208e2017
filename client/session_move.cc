// The lineages of one family: what the client says when it checks in, and how it moves from one to another
// (docs/PROTOCOL.md, "Moving between relays").
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/session.h"
#include "compression/bundle.h"
#include "core/fault.h"
#include "core/status.h"
#include "storage/parted_lineages.h"

namespace terse {
namespace {

bool SameShard(const Shard& a, const Shard& b) { return a.index == b.index && a.count == b.count; }

// The update that is lost when the client moves; null when none is.
const SealedUpdate* LostByMove(const StoredHead& stored, Id128 lineage) {
  size_t kept = stored.sealed.has_value() ? 1 : 0;
  const SealedUpdate* oldest = nullptr;
  for (const PartedLineage& one : stored.parted) {
    if (one.lineage == lineage || !one.sealed.has_value()) continue;
    if (oldest == nullptr) oldest = &*one.sealed;
    ++kept;
  }
  return kept > ClientState::kMostParted ? oldest : nullptr;
}

void SayKept(Id128 lineage, Id128 prev_applied, const absl::optional<SealedUpdate>& sealed, CheckIn* message) {
  message->lineage = lineage;
  message->prev_applied = prev_applied;
  if (!sealed.has_value()) return;
  message->pending_update_id = sealed->update_id;
  message->pending_round = sealed->round;
}

// For the log: what becomes of the updates when the client moves.
std::string Consequences(const StoredHead& stored, const PartedLineage* back) {
  std::string text;
  if (stored.sealed.has_value()) {
    absl::StrAppend(&text, "; the update of round ", stored.sealed->round,
                    ", whose verdict it has not heard, stays behind until it comes back");
  }
  if (back != nullptr && back->sealed.has_value()) {
    absl::StrAppend(&text, "; the update of round ", back->sealed->round,
                    ", which had stayed behind, is pending again");
  }
  return text;
}

}  // namespace

absl::Status ClientSession::CheckInWith(OutboundLink* link) {
  const StoredHead& stored = options_.state->state();
  CheckIn message;
  message.name = options_.name;
  message.run = options_.run;
  message.process = options_.process;
  message.connection = ++connections_;
  message.family = stored.family;
  // A coordinator that sent the client back hears what is kept for its lineage. The client moves when it is welcome.
  const Id128 sent_back_to = std::exchange(sent_back_to_, Id128());
  came_back_ = !sent_back_to.IsZero() && sent_back_to != stored.lineage;
  if (!came_back_) {
    SayKept(stored.lineage, stored.prev_applied, stored.sealed, &message);
  } else if (const PartedLineage* const parted = FindParted(stored.parted, sent_back_to)) {
    SayKept(parted->lineage, parted->prev_applied, parted->sealed, &message);
  } else {
    SayKept(sent_back_to, Id128(), absl::nullopt, &message);
  }
  message.residual_lost = options_.state->lost() || (options_.residual_lost && stored.lineage.IsZero());
  TERSE_FAILPOINT("client.checkin.before_send");
  return link->Send(message);
}

absl::Status ClientSession::OnRefusal(const Refusal& refusal) {
  if (!refusal.retry) return absl::FailedPreconditionError(refusal.reason);
  const Id128 lineage = options_.state->state().lineage;
  // Once: a coordinator that does not take what it asked for is tried again later.
  if (!came_back_ && !lineage.IsZero() && refusal.lineage != lineage) sent_back_to_ = refusal.lineage;
  return absl::UnavailableError(refusal.reason);
}

absl::Status ClientSession::MoveTo(const Welcome& welcome) {
  const absl::Status moved = TryMoveTo(welcome);
  if (!moved.ok()) work_ = absl::nullopt;
  return moved;
}

absl::Status ClientSession::TryMoveTo(const Welcome& welcome) {
  TERSE_RETURN_IF_ERROR(Wake());
  TERSE_RETURN_IF_ERROR(MoveState(welcome.lineage));
  Work& work = *work_;
  work.lineage = welcome.lineage;
  work.config = welcome.config;
  work.client_index = welcome.client_index;
  work.moved = true;
  work.BeginHistory();
  const Shard shard = ShardIn(welcome);
  if (!SameShard(shard, work.shard)) {
    work.shard = shard;
    Rest();  // the data are others
    TERSE_RETURN_IF_ERROR(Wake());
  }
  work.residual_norm = absl::nullopt;
  if (!work.feedback->pending()) work.residual_norm = work.feedback->Norm();
  return absl::OkStatus();
}

absl::Status ClientSession::MoveState(Id128 lineage) {
  const StoredHead& stored = options_.state->state();
  if (stored.sealed.has_value() && IsBundle(stored.sealed->message)) {
    return absl::UnavailableError(
        "a relay that forwards waits for the verdict on its update where it has sent it, and cannot go to another "
        "relay "
        "meanwhile");
  }
  const PartedLineage* const back = FindParted(stored.parted, lineage);
  const std::string line = absl::StrCat("moves from lineage ", stored.lineage.ToHex(), " to ", lineage.ToHex(),
                                        " of the same run, with its residual", Consequences(stored, back));
  const SealedUpdate* const oldest = LostByMove(stored, lineage);
  const double norm_lost = oldest == nullptr ? 0 : work_->codec->Measure(oldest->message).value_or(UpdateSize{}).norm;
  Feedback& feedback = *work_->feedback;
  bool is_zero = !stored.has_dense;
  if (feedback.pending()) TERSE_RETURN_IF_ERROR(feedback.Settle(/*applied=*/!Mutated(Mutant::kMoveCountsTwice)));
  if (back != nullptr && back->sealed.has_value()) {
    TERSE_RETURN_IF_ERROR(feedback.Rejoin(back->sealed->message));
    is_zero = false;
  }
  const absl::StatusOr<int64_t> lost =
      options_.state->Move(lineage, is_zero ? absl::Span<const float>() : feedback.dense());
  TERSE_RETURN_IF_ERROR(StoredStatus(lost.status()));
  Log(LogLevel::kInfo, 0, line);
  if (*lost == 0) return absl::OkStatus();
  Log(LogLevel::kWarn, 0,
      absl::StrFormat("the client has left more than %d lineages with an update whose verdict it has not heard: the "
                      "oldest, with %.3g in L2 norm, is lost",
                      ClientState::kMostParted, norm_lost));
  return absl::OkStatus();
}

}  // namespace terse
