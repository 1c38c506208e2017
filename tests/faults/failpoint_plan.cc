#include "tests/faults/failpoint_plan.h"

#include "core/fault.h"

namespace terse {
namespace {

constexpr Side kCoordinator = Side::kCoordinator;
constexpr Side kRelay = Side::kRelay;
constexpr Side kClient = Side::kClient;

constexpr FailpointPlan kPlans[] = {
    {"file.write.before_sync", kCoordinator, 3},
    {"file.write.before_sync", kRelay, 6},
    {"file.write.before_sync", kClient},
    {"file.replace.before_rename", kCoordinator, 3},
    {"file.replace.before_rename", kRelay, 6},
    {"file.replace.before_rename", kClient},
    {"file.replace.before_directory_sync", kCoordinator, 3},
    {"file.replace.before_directory_sync", kRelay, 6},
    {"file.replace.before_directory_sync", kClient},
    {"client.restart.loaded", kClient, 1},
    {"client.restart.loaded", kRelay, 2},
    {"client.checkin.before_send", kClient, 3, Provocation::kRestartPeers},
    {"client.checkin.before_send", kRelay, 3, Provocation::kRestartPeers},
    {"client.welcome.received", kClient, 3, Provocation::kRestartPeers},
    {"client.welcome.received", kRelay, 3, Provocation::kRestartPeers},
    {"client.resync.downloaded", kClient, 1, Provocation::kLoseModel},
    {"client.resync.downloaded", kRelay, 1, Provocation::kLoseModel},
    {"client.delta.before_apply", kClient},
    {"client.delta.before_apply", kRelay, 4},
    {"client.delta.applied", kClient},
    {"client.delta.applied", kRelay, 4},
    {"client.assignment.received", kClient},
    {"client.assignment.received", kRelay, 4},
    {"client.train.done", kClient},
    {"client.train.done", kRelay, 4},
    {"client.seal.before_blobs", kClient},
    {"client.seal.before_blobs", kRelay, 4},
    {"client.seal.before_manifest", kClient},
    {"client.seal.before_manifest", kRelay, 4},
    {"client.seal.done", kClient},
    {"client.seal.done", kRelay, 4},
    {"client.upload.before_send", kClient},
    {"client.upload.before_send", kRelay, 4},
    {"client.upload.between_chunks", kClient, 8, Provocation::kNone, FleetTrait::kChunks},
    {"client.upload.sent", kClient},
    {"client.upload.sent", kRelay, 4},
    {"client.receipt.received", kClient},
    {"client.receipt.received", kRelay, 4},
    {"client.verdict.received", kClient},
    {"client.verdict.received", kRelay, 4},
    {"client.settle.before_manifest", kClient},
    {"client.settle.before_manifest", kRelay, 4},
    {"client.settle.done", kClient},
    {"client.settle.done", kRelay, 4},
    {"client.reset.done", kClient, 1, Provocation::kLoseState},
    {"client.reset.done", kRelay, 1, Provocation::kLoseState},
    {"client.move.before_manifest", kClient, 1, Provocation::kMove, FleetTrait::kMoves},
    {"client.move.done", kClient, 1, Provocation::kMove, FleetTrait::kMoves},
    {"coordinator.restart.locked", kCoordinator, 1},
    {"coordinator.restart.locked", kRelay, 1},
    {"coordinator.restart.epoch_bumped", kCoordinator, 1},
    {"coordinator.restart.epoch_bumped", kRelay, 1},
    {"coordinator.restart.replayed", kCoordinator, 1},
    {"coordinator.restart.replayed", kRelay, 1},
    {"coordinator.checkin.received", kCoordinator, 8, Provocation::kRestartPeers},
    {"coordinator.checkin.received", kRelay, 4, Provocation::kRestartPeers},
    {"coordinator.checkin.settled", kCoordinator, 8, Provocation::kRestartPeers},
    {"coordinator.checkin.settled", kRelay, 4, Provocation::kRestartPeers},
    {"coordinator.round.before_open", kCoordinator, 2, Provocation::kStall},  // a commit opens the next round by itself
    {"coordinator.round.before_open", kRelay, 4},
    {"coordinator.round.opened", kCoordinator},
    {"coordinator.round.opened", kRelay, 4},
    {"coordinator.update.received", kCoordinator},
    {"coordinator.update.received", kRelay, 6},
    {"coordinator.update.accepted", kCoordinator},
    {"coordinator.update.accepted", kRelay, 6},
    {"coordinator.close.before", kCoordinator},
    {"coordinator.close.before", kRelay, 4},
    {"coordinator.close.done", kCoordinator},
    {"coordinator.close.done", kRelay, 4},
    {"coordinator.commit.aggregated", kCoordinator},
    {"coordinator.commit.in_transaction", kCoordinator},
    {"coordinator.commit.in_transaction", kRelay, 4},
    {"coordinator.segment.synced", kCoordinator, 8, Provocation::kNone, FleetTrait::kChunks},
    {"coordinator.commit.done", kCoordinator},
    {"coordinator.batch.decided", kCoordinator, 20},
    {"coordinator.batch.decided", kRelay, 20},
    {"coordinator.batch.committed", kCoordinator, 20},
    {"coordinator.batch.committed", kRelay, 20},
    {"coordinator.announce.first", kCoordinator},
    {"coordinator.announce.first", kRelay, 6},
    {"coordinator.abort.before", kCoordinator, 2, Provocation::kStall},
    {"coordinator.abort.before", kRelay, 2, Provocation::kStall},
    {"coordinator.abort.done", kCoordinator, 2, Provocation::kStall},
    {"coordinator.abort.done", kRelay, 2, Provocation::kStall},
    {"coordinator.checkpoint.state_written", kCoordinator, 3, Provocation::kNone, FleetTrait::kServerState},
    {"coordinator.checkpoint.before_row", kCoordinator, 3},
    {"coordinator.checkpoint.before_row", kRelay, 2},
    {"coordinator.checkpoint.recorded", kCoordinator, 3},
    {"coordinator.checkpoint.recorded", kRelay, 2},
    {"relay.order.received", kRelay, 4},
    {"relay.result.handed_up", kRelay, 4},
    {"relay.result.sealed", kRelay, 4},
    {"relay.commit.before", kRelay, 4},
    {"relay.commit.done", kRelay, 4},
    {"relay.model.moved", kRelay, 4},
    {"relay.restart.closed_round", kRelay, 1, Provocation::kLeaveClosed},
};

constexpr bool Planned(absl::string_view name) {
  for (const FailpointPlan& plan : kPlans) {
    if (plan.name == name) return true;
  }
  return false;
}

constexpr bool PlansMatchFailpoints() {
  for (const absl::string_view name : kFailpoints) {
    if (!Planned(name)) return false;
  }
  for (const FailpointPlan& plan : kPlans) {
    if (FailpointIndex(plan.name) < 0) return false;
  }
  return true;
}
static_assert(PlansMatchFailpoints(), "every row of kFailpoints needs a plan, and no plan is for another");

}  // namespace

absl::string_view SideName(Side side) {
  switch (side) {
    case Side::kCoordinator:
      return "coordinator";
    case Side::kRelay:
      return "relay";
    case Side::kClient:
      return "client";
  }
  return "";
}

bool ComesBy(const FailpointPlan& plan, Topology topology) {
  if (topology == Topology::kTree) return plan.trait == FleetTrait::kNone || plan.trait == FleetTrait::kMoves;
  return plan.side != Side::kRelay && plan.trait != FleetTrait::kMoves;
}

absl::Span<const FailpointPlan> FailpointPlans() { return kPlans; }

}  // namespace terse
