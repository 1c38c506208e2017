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
#include "sandbox/channel.h"
#include "sandbox/child_process.h"
#include "sandbox/messages.h"
#include "sandbox/sandbox.h"

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
  ~SandboxProcess();
  SandboxProcess(const SandboxProcess&) = delete;
  SandboxProcess& operator=(const SandboxProcess&) = delete;

  const Confinement& confinement() const { return confinement_; }
  // The memory file of SharedVectors.
  int memory() const { return memory_; }
  // From now on `stop` is asked in place of the options' own function.
  void StopWhen(std::function<bool()> stop) { options_.stop = std::move(stop); }
  // Whether the process was lost. Every call then returns the reason.
  bool lost() const { return !lost_.ok(); }

  // Asks, and waits for the answer, of at most `most` bytes. `keep_going`, where it may be asked, answers the steps in
  // between. Statuses that the process answers, except codes that mean something else here, which become INTERNAL; and
  // UNAVAILABLE or INTERNAL as SandboxedTrainerFactory says.
  absl::StatusOr<std::string> Call(FrameKind kind, absl::string_view body, uint64_t most,
                                   const std::function<bool()>& keep_going = nullptr);

  // The process answered `answer`, which is wrong: it is ended, and not asked again. Returns INTERNAL.
  absl::Status Nonsense(absl::string_view answer);

  // The layout that it answered. INTERNAL, as Nonsense, for one that is none; FAILED_PRECONDITION when its vectors do
  // not fit into the memory that the process has, which bounds what they take here.
  absl::StatusOr<Layout> TakeLayout(const std::vector<Layout::Entry>& entries);

 private:
  class Deadline;

  SandboxProcess(const SandboxOptions& options, int socket) : options_(options), channel_(socket) {}
  absl::Status Launch(int other_end);
  absl::Status Hear();
  absl::StatusOr<std::string> Await(uint64_t most, const std::function<bool()>& keep_going, Deadline* deadline);
  absl::Status Failed(absl::string_view body, bool told_to_stop);
  absl::Status Lose(const absl::Status& status);

  SandboxOptions options_;
  Channel channel_;
  int memory_ = -1;
  std::unique_ptr<ChildProcess> process_;
  Confinement confinement_;
  absl::Status lost_;
};

}  // namespace terse

#endif  // TERSE_SANDBOX_SANDBOX_PROCESS_H_
