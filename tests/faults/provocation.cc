#include "tests/faults/provocation.h"

#include <algorithm>
#include <csignal>
#include <vector>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "core/status.h"

namespace terse {
namespace {

constexpr absl::Duration kFirstPause = absl::Milliseconds(200);
// The same for a tree, whose clients find their way to another relay first.
constexpr absl::Duration kFirstTreePause = absl::Milliseconds(400);
// In deadlines of a round: long enough that the one of an open round passes, grace included.
constexpr double kStallFor = 2;
// Relays that clients are to leave for good stay away for so long.
constexpr absl::Duration kAwayFor = absl::Milliseconds(600);

}  // namespace

absl::Duration Provoker::NextPause() {
  if (stalled_) return kStallFor * absl::Seconds(fleet_->settings().deadline_seconds);
  const absl::Duration first = fleet_->settings().relays > 0 ? kFirstTreePause : kFirstPause;
  pause_ = pause_ == absl::ZeroDuration() ? first : 2 * pause_;
  return pause_;
}

void Provoker::Calm() {
  pause_ = absl::ZeroDuration();
  if (stalled_) Resume();
}

void Provoker::Resume() {
  stalled_ = false;
  for (int member = 1; member < fleet_->members(); ++member) fleet_->Signal(member, SIGCONT);
}

void Provoker::Revive() {
  for (int member = 0; member < fleet_->members(); ++member) {
    const auto held = held_.find(member);
    if (fleet_->alive(member) || (held != held_.end() && absl::Now() < held->second)) continue;
    fleet_->Start(member);
  }
}

absl::Status Provoker::KillUnlessArmed(int member) {
  // One that is to die at a failpoint of its own does so sooner or later.
  return fleet_->armed(member) ? absl::OkStatus() : fleet_->Kill(member);
}

int Provoker::OneOf(Side side) {
  const std::vector<int> members = fleet_->MembersOf(side);
  return members[random_->Below(members.size())];
}

int Provoker::PeerOf(const Shot& shot) {
  const bool has_relays = fleet_->settings().relays > 0;
  switch (shot.plan->side) {
    case Side::kCoordinator:
      return OneOf(has_relays ? Side::kRelay : Side::kClient);
    case Side::kRelay:
      return absl::StartsWith(shot.plan->name, "client.") ? 0 : OneOf(Side::kClient);
    case Side::kClient:
      break;
  }
  return fleet_->settings().moves() ? OneOf(Side::kRelay) : fleet_->ServerOf(shot.member);
}

// The relays stand still for a shot at the coordinator, unless one of them is to die meanwhile; otherwise the clients,
// so that no relay has an update either.
bool Provoker::StallFor(absl::Span<const Shot> shots) {
  bool wanted = false, relays = fleet_->settings().relays > 0;
  for (const Shot& shot : shots) {
    if (!fleet_->armed(shot.member)) continue;
    wanted = wanted || shot.plan->provocation == Provocation::kStall;
    relays = relays && shot.plan->side != Side::kRelay;
  }
  if (!wanted) return false;
  stalled_ = true;
  for (const int member : fleet_->MembersOf(relays ? Side::kRelay : Side::kClient)) fleet_->Signal(member, SIGSTOP);
  return true;
}

absl::Status Provoker::GatherClients() {
  if (!fleet_->settings().moves()) return absl::OkStatus();
  for (const int client : fleet_->MembersOf(Side::kClient)) {
    if (!fleet_->Ready(fleet_->ServerOf(client)) || fleet_->IsAtHome(client)) continue;
    TERSE_RETURN_IF_ERROR(KillUnlessArmed(client));
  }
  return absl::OkStatus();
}

absl::Status Provoker::ProvokeOne(const Shot& shot) {
  switch (shot.plan->provocation) {
    case Provocation::kRestartPeers:
      TERSE_RETURN_IF_ERROR(KillUnlessArmed(PeerOf(shot)));
      break;  // a relay without clients checks in with nobody
    case Provocation::kMove: {
      // Its own, which it then leaves; where it has moved before, nobody knows to which one.
      const int relay = fleet_->IsAtHome(shot.member) ? fleet_->ServerOf(shot.member) : OneOf(Side::kRelay);
      TERSE_RETURN_IF_ERROR(KillUnlessArmed(relay));
      if (!fleet_->alive(relay)) Hold(relay, absl::Now() + kAwayFor);
      return absl::OkStatus();
    }
    case Provocation::kNone:
    case Provocation::kStall:
    case Provocation::kLoseModel:
    case Provocation::kLoseState:
    case Provocation::kLeaveClosed:
      break;
  }
  return GatherClients();
}

absl::Status Provoker::Provoke(absl::Span<const Shot> shots) {
  if (stalled_) {
    Resume();
  } else if (StallFor(shots)) {
    return absl::OkStatus();
  }
  for (const Shot& shot : shots) {
    if (fleet_->armed(shot.member)) TERSE_RETURN_IF_ERROR(ProvokeOne(shot));
  }
  return absl::OkStatus();
}

}  // namespace terse
