// A process that works in the sandbox, and the dialogue with it, for the process that asks and does not believe the
// answers.
#ifndef TERSE_SANDBOX_SANDBOX_PROCESS_H_
#define TERSE_SANDBOX_SANDBOX_PROCESS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/layout.h"
#include "sandbox/child_process.h"
#include "sandbox/messages.h"
#include "sandbox/sandbox.h"
#include "trainer/dialogue.h"

namespace terse {

// The confined process of a client's trainer, or of a model that a coordinator serves. It is killed with this object,
// and with the thread that started it. Not thread-safe.
class SandboxProcess {
 public:
  // Most bytes of an answer that holds a layout, and of one that holds a few numbers.
  static constexpr uint64_t kMostLayoutBytes = 16 << 20;
  static constexpr uint64_t kMostResultBytes = 64;

  // Starts the process and hears which confinement is in force. Statuses of TrySandbox.
  static absl::StatusOr<std::unique_ptr<SandboxProcess>> Start(const SandboxOptions& options);
  SandboxProcess(const SandboxProcess&) = delete;
  SandboxProcess& operator=(const SandboxProcess&) = delete;

  const Confinement& confinement() const { return confinement_; }
  // The memory file of SharedVectors.
  int memory() const { return memory_.fd(); }
  // From now on `stop` is asked in place of the options' own function.
  void StopWhen(std::function<bool()> stop) { dialogue_.StopWhen(std::move(stop)); }
  // Whether the process was lost. Every call then returns the reason.
  bool lost() const { return dialogue_.lost(); }

  // Calls of the dialogue with it.
  absl::StatusOr<std::string> Call(FrameKind kind, absl::string_view body, uint64_t most,
                                   const std::function<bool()>& keep_going = nullptr) {
    return dialogue_.Call(kind, body, most, keep_going);
  }
  absl::Status Nonsense(absl::string_view answer) { return dialogue_.Nonsense(answer); }

  // The layout that it answered. INTERNAL, as Nonsense, for one that is none; FAILED_PRECONDITION when its vectors do
  // not fit into the memory that the process has, which bounds what they take here.
  absl::StatusOr<Layout> TakeLayout(const std::vector<Layout::Entry>& entries);

 private:
  SandboxProcess(const SandboxOptions& options, OwnedFile socket);
  absl::Status Launch(int other_end);
  absl::Status Hear();
  std::string End(bool at_once);

  const SandboxOptions options_;
  OwnedFile memory_;
  std::unique_ptr<ChildProcess> process_;
  Dialogue dialogue_;
  Confinement confinement_;
};

}  // namespace terse

#endif  // TERSE_SANDBOX_SANDBOX_PROCESS_H_
