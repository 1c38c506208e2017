// Work in a process of its own, which cannot reach the network, other programs or this machine's secrets: for models
// that are code, such as a run's TorchScript. docs/SECURITY.md, "Sandboxed training", says what the sandbox guards
// against, and what it does not. The process speaks the trainer protocol (docs/TRAINER.md).
//
// The process is this program again, with the same command line and kSandboxFlag behind it. Its main must then begin
// with EnterSandbox and come to what serves the other end: for a trainer ServeSandbox, with the same factory that it
// would train with.
#ifndef TERSE_SANDBOX_SANDBOX_H_
#define TERSE_SANDBOX_SANDBOX_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/trainer.h"
#include "trainer/messages.h"
#include "trainer/serve_peer.h"
#include "trainer/trainer_peer.h"

namespace terse {

// Ends messages about answers that cannot be.
inline constexpr char kSandboxDistrust[] = "; its model or its code is not to be trusted";

// The flag that ends the command line of a sandboxed process, and the word that follows it: whether the process has a
// network namespace of its own.
inline constexpr char kSandboxFlag[] = "--sandboxed";
inline constexpr char kOwnNetwork[] = "own-network";
inline constexpr char kSharedNetwork[] = "shared-network";

// The trainers of a client. Options that begin with "--sandbox" set their limits.
inline constexpr PeerRole kSandboxedTrainerRole = {"trainer", "the sandboxed trainer", "--sandbox", "this client",
                                                   kSandboxDistrust};

struct SandboxOptions {
  std::vector<std::string> command_line;  // of this process, with its name
  int64_t memory_mb = 4096;               // that a trainer may take beyond the program itself, in units of 2^20 bytes
  double seconds = 600;                   // that one call of a trainer, or making it, may last
  // Whether the process should stop, asked while a trainer works; it then has kStopGraceSeconds left. May be empty.
  std::function<bool()> stop;
  PeerRole role = kSandboxedTrainerRole;
};

// Starts a trainer's process and ends it, and returns the parts of the confinement that are in force on this machine.
// FAILED_PRECONDITION when the essential parts are not (no sockets, programs and processes; limits); UNAVAILABLE when
// the process does not start.
absl::StatusOr<Confinement> TrySandbox(const SandboxOptions& options);

// FAILED_PRECONDITION when a file or folder of `secrets` is below `data`, which the sandbox may read; empty ones are
// none. The message names `reader` ("sandboxed training") and, beside keeping the secret elsewhere, `remedy`.
absl::Status CheckOutOfReach(const std::string& data, const std::vector<std::string>& secrets, absl::string_view reader,
                             absl::string_view remedy);

// Trainers that work in a process of their own, which is killed with them. Statuses of theirs are passed on, and beside
// them every method that returns one may return
//   UNAVAILABLE   the process ended, was out of memory or time, or did not stop when asked: the trainer is lost, and
//                 all later calls say so too. A new one can go on from the last state that was saved.
//   INTERNAL      the process answered what no trainer answers, deltas that are not finite included; as above. Also
//                 UNKNOWN and a CANCELLED that nobody asked for, which mean something else here.
// StartWeights of a lost trainer is empty. The process dies with the thread that made the trainer.
TrainerFactory SandboxedTrainerFactory(SandboxOptions options);

// The settings of a trainer's process.
struct SandboxChild {
  std::vector<std::string> readable;  // folders and files that training reads, beside the system's libraries
  int64_t memory_mb = 4096;
  bool own_network = false;
};

// Confines the trainer's process, from inside it and for good, and tells the client. The process should end unless that
// is OK: FAILED_PRECONDITION as TrySandbox, and when the process has a second thread already; ABORTED when the client
// is gone.
absl::Status EnterSandbox(const SandboxChild& child);

// Runs in the sandboxed process, after EnterSandbox: serves the process that started it until that is gone.
void ServeSandboxed(PeerService* service);

// Likewise for a trainer: makes the trainer that it is asked for. Returns the exit code of the process.
int ServeSandbox(const TrainerFactory& make_trainer);

}  // namespace terse

#endif  // TERSE_SANDBOX_SANDBOX_H_
