#include "tests/faults/failpoint_plan.h"

#include "core/fault.h"

namespace terse {
namespace {

constexpr Side kCoordinator = Side::kCoordinator;
constexpr Side kClient = Side::kClient;

constexpr FailpointPlan kPlans[] = {
    {"file.write.before_sync", kCoordinator, 3},
    {"file.write.before_sync", kClient},
    {"file.replace.before_rename", kCoordinator, 3},
    {"file.replace.before_rename", kClient},
    {"file.replace.before_directory_sync", kCoordinator, 3},
    {"file.replace.before_directory_sync", kClient},
    {"client.restart.loaded", kClient, 1},
    {"client.checkin.before_send", kClient, 3, Provocation::kRestartPeers},
    {"client.welcome.received", kClient, 3, Provocation::kRestartPeers},
    {"client.resync.downloaded", kClient, 1, Provocation::kLoseModel},
    {"client.delta.before_apply", kClient},
    {"client.delta.applied", kClient},
    {"client.assignment.received", kClient},
    {"client.train.done", kClient},
    {"client.seal.before_blobs", kClient},
    {"client.seal.before_manifest", kClient},
    {"client.seal.done", kClient},
    {"client.upload.before_send", kClient},
    {"client.upload.between_chunks", kClient, 8, Provocation::kNone, FleetTrait::kChunks},
    {"client.upload.sent", kClient},
    {"client.receipt.received", kClient},
    {"client.verdict.received", kClient},
    {"client.settle.before_manifest", kClient},
    {"client.settle.done", kClient},
    {"client.reset.done", kClient, 1, Provocation::kLoseState},
    {"client.move.before_manifest", kClient, 1, Provocation::kNone, FleetTrait::kRelays},
    {"client.move.done", kClient, 1, Provocation::kNone, FleetTrait::kRelays},
    {"coordinator.restart.locked", kCoordinator, 1},
    {"coordinator.restart.epoch_bumped", kCoordinator, 1},
    {"coordinator.restart.replayed", kCoordinator, 1},
    {"coordinator.checkin.received", kCoordinator, 8, Provocation::kRestartPeers},
    {"coordinator.checkin.settled", kCoordinator, 8, Provocation::kRestartPeers},
    {"coordinator.round.before_open", kCoordinator, 2, Provocation::kStall},  // a commit opens the next round by itself
    {"coordinator.round.opened", kCoordinator},
    {"coordinator.update.received", kCoordinator},
    {"coordinator.update.accepted", kCoordinator},
    {"coordinator.close.before", kCoordinator},
    {"coordinator.close.done", kCoordinator},
    {"coordinator.commit.aggregated", kCoordinator},
    {"coordinator.commit.in_transaction", kCoordinator},
    {"coordinator.segment.synced", kCoordinator, 8, Provocation::kNone, FleetTrait::kChunks},
    {"coordinator.commit.done", kCoordinator},
    {"coordinator.batch.decided", kCoordinator, 20},
    {"coordinator.batch.committed", kCoordinator, 20},
    {"coordinator.announce.first", kCoordinator},
    {"coordinator.abort.before", kCoordinator, 2, Provocation::kStall},
    {"coordinator.abort.done", kCoordinator, 2, Provocation::kStall},
    {"coordinator.checkpoint.state_written", kCoordinator, 3, Provocation::kNone, FleetTrait::kServerState},
    {"coordinator.checkpoint.before_row", kCoordinator, 3},
    {"coordinator.checkpoint.recorded", kCoordinator, 3},
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

absl::string_view SideName(Side side) { return side == Side::kCoordinator ? "coordinator" : "client"; }

absl::Span<const FailpointPlan> FailpointPlans() { return kPlans; }

}  // namespace terse
