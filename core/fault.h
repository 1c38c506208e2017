// Faults on demand, for tests: failpoints, where a process can be made to die, fail or wait, and mutants, known errors
// of the update protocol that a test switches on to prove that it would notice them. Compiled in only where
// TERSE_FAULTS is defined (CMake option TERSE_FAULTS; presets faults, asan, tsan and dev). In a release build every
// call below is a constant and the binary holds neither the names nor the code.
//
// A process of a test build reads its environment once, at the first failpoint or mutant that it meets:
//
//   TERSE_FAILPOINTS=NAME=ACTION[@N][,NAME=ACTION[@N]...]
//     ACTION  kill        SIGKILL to the process itself
//             error       the enclosing function returns UNAVAILABLE
//             sleep:MS    waits so many milliseconds, then goes on
//     @N      at the N-th time that the process comes by; default 1. `sleep` acts at that time and all later ones.
//   TERSE_MUTANT=NAME
//
// A specification that makes no sense ends the process with exit code 2 and the reason on stderr.
#ifndef TERSE_CORE_FAULT_H_
#define TERSE_CORE_FAULT_H_

#include <cstddef>
#include <cstdint>
#include <iterator>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/status.h"

namespace terse {

// Every failpoint, in the order in which a round meets them (docs/PROTOCOL.md, "Exactly once" and "Relays"). The
// campaigns of tests/faults fail when one of them was never hit.
inline constexpr absl::string_view kFailpoints[] = {
    // Files, on both sides: what ReplaceFile and WriteFilesSynced do.
    "file.write.before_sync",
    "file.replace.before_rename",
    "file.replace.before_directory_sync",
    // The failpoints of the client, which a relay comes by as a client of the coordinator above.
    "client.restart.loaded",
    "client.checkin.before_send",
    "client.welcome.received",
    "client.resync.downloaded",
    "client.delta.before_apply",
    "client.delta.applied",
    "client.assignment.received",
    "client.train.done",
    "client.seal.before_blobs",
    "client.seal.before_manifest",
    "client.seal.done",
    "client.upload.before_send",
    "client.upload.between_chunks",
    "client.upload.sent",
    "client.receipt.received",
    "client.verdict.received",
    "client.settle.before_manifest",
    "client.settle.done",
    "client.reset.done",
    "client.move.before_manifest",
    "client.move.done",
    // The failpoints of the coordinator, which a relay comes by as the coordinator of its own clients.
    "coordinator.restart.locked",
    "coordinator.restart.epoch_bumped",
    "coordinator.restart.replayed",
    "coordinator.checkin.received",
    "coordinator.checkin.settled",
    "coordinator.round.before_open",
    "coordinator.round.opened",
    "coordinator.update.received",
    "coordinator.update.accepted",
    "coordinator.close.before",
    "coordinator.close.done",
    "coordinator.commit.aggregated",
    "coordinator.commit.in_transaction",
    "coordinator.segment.synced",
    "coordinator.commit.done",
    "coordinator.batch.decided",
    "coordinator.batch.committed",
    "coordinator.announce.first",
    "coordinator.abort.before",
    "coordinator.abort.done",
    "coordinator.checkpoint.state_written",
    "coordinator.checkpoint.before_row",
    "coordinator.checkpoint.recorded",
    // The failpoints that only a relay has: where its two halves meet.
    "relay.order.received",
    "relay.result.handed_up",
    "relay.result.sealed",
    "relay.commit.before",
    "relay.commit.done",
    "relay.model.moved",
    "relay.restart.closed_round",
};

// The mutants of the protocol. Each breaks an invariant. The simulation proves that it is caught, if it has what the
// mutant harms (IsSimulated); the kill campaign catches those of relays, and the store's tests the missing fence.
enum class Mutant {
  kNone,
  kSettleOnReceipt,     // the client takes the receipt for the verdict
  kRenameBeforeSync,    // the manifest is renamed before what it names is synced
  kTimeoutIsReject,     // the client takes a lost connection for NOT_APPLIED
  kSplitTransaction,    // the head and the ledger of applied updates move in two transactions
  kNoDeduplication,     // an update that comes twice counts twice
  kSyncNormal,          // SQLite with synchronous=NORMAL
  kReopenClosed,        // a restart turns a CLOSED round back into OPEN
  kNoPredecessorCheck,  // nobody compares the client's last applied update
  kForgetServerState,   // a restart begins with a fresh residual and optimizer of the server
  kForgetRounds,        // a restarted coordinator's controller has not seen the rounds before
  kForgetHistory,       // a restarted client begins with a history of no updates
  kKeepHistory,         // a RESET leaves the coordinator the client's history
  kSpeakBeforeCommit,   // what a batch decides is said before it is durable
  kRelaySettlesFirst,   // a relay settles its round before the round's result is sealed in its own update
  kMoveCountsTwice,     // a client that moves keeps in its residual the update that it parts with
  kNoFencing            // a store writes although another coordinator has opened it since
};
inline constexpr absl::string_view kMutantNames[] = {
    "none",
    "settle_on_receipt",
    "rename_before_sync",
    "timeout_is_reject",
    "split_transaction",
    "no_dedupe",
    "sync_normal",
    "reopen_closed",
    "no_predecessor_check",
    "forget_server_state",
    "forget_rounds",
    "forget_history",
    "keep_history",
    "speak_before_commit",
    "relay_settles_first",
    "move_counts_twice",
    "no_fencing",
};
static_assert(std::size(kMutantNames) == static_cast<size_t>(Mutant::kNoFencing) + 1);

// Whether the mutant can do harm in the simulation (tests/simulation), which has one coordinator and no relays.
constexpr bool IsSimulated(Mutant mutant) {
  return mutant != Mutant::kRelaySettlesFirst && mutant != Mutant::kMoveCountsTwice && mutant != Mutant::kNoFencing;
}

constexpr int FailpointIndex(absl::string_view name) {
  for (size_t i = 0; i < std::size(kFailpoints); ++i) {
    if (kFailpoints[i] == name) return static_cast<int>(i);
  }
  return -1;
}

#ifdef TERSE_FAULTS

// The hook takes the place of the environment, for simulations that run many processes' code in one process: it is
// asked at every failpoint that the calling thread meets. An error makes the enclosing function return it. nullptr
// restores the environment's. Not owned.
class FailpointHook {
 public:
  virtual ~FailpointHook() = default;
  virtual absl::Status OnFailpoint(absl::string_view name) = 0;
};
void SetThreadFailpointHook(FailpointHook* hook);

// Returns how often the process came by the failpoint, hook or not. Thread-safe.
int64_t FailpointHits(int index);

// Switches a mutant on for the whole process; kNone switches all off. Thread-safe.
void SetMutant(Mutant mutant);
bool Mutated(Mutant mutant);

absl::Status MeetFailpoint(int index);

#else

inline constexpr bool Mutated(Mutant) { return false; }
inline absl::Status MeetFailpoint(int) { return absl::OkStatus(); }

#endif

}  // namespace terse

// A place where a test can make the process die, or the enclosing function (absl::Status or StatusOr) return an error.
// `name` is a row of kFailpoints; any other does not compile.
#define TERSE_FAILPOINT(name)                                                             \
  do {                                                                                    \
    static_assert(::terse::FailpointIndex(name) >= 0, "not a row of kFailpoints: " name); \
    TERSE_RETURN_IF_ERROR(::terse::MeetFailpoint(::terse::FailpointIndex(name)));         \
  } while (false)

#endif  // TERSE_CORE_FAULT_H_
