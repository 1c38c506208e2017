// The coordinator's side. The process's answers are not believed.
#include "coordinator/rpc/sandboxed_learning.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "coordinator/log_components.h"
#include "core/log/log_details.h"
#include "core/status.h"
#include "sandbox/sandboxed_peer.h"
#include "trainer/external_evaluator.h"

namespace terse {
namespace {

// The archive of an exported file takes this much beside the module and the weights.
constexpr uint64_t kMostArchiveBytes = 16 << 20;
constexpr uint64_t kMostVocabularyBytes = 64 << 20;
constexpr size_t kMostSymbols = 1 << 20;

bool AllFinite(absl::Span<const float> values) {
  return std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); });
}

// UNAVAILABLE would say to a caller that the coordinator is away, and not that the model's process ended.
absl::Status NotAway(const absl::Status& status, absl::StatusCode code) {
  return absl::IsUnavailable(status) ? absl::Status(code, status.message()) : status;
}

// A process that has made the model, and the thread with which it dies.
class ModelProcess {
 public:
  // Statuses of MakeSandboxedLearning.
  static absl::StatusOr<std::unique_ptr<ModelProcess>> Start(const SandboxOptions& options, const SandboxedRun& run) {
    TERSE_ASSIGN_OR_RETURN(SandboxedPeer sandboxed, StartSandboxedPeer(options));
    if (!sandboxed.confinement.landlock) {
      return absl::FailedPreconditionError(
          "there is no Landlock here (Linux 5.13, and allowed to this process), so a user's model could read every "
          "file of the coordinator, its key too: it is not loaded; serve such runs on a machine that has Landlock");
    }
    TERSE_RETURN_IF_ERROR(OpenSandboxedRun(run, sandboxed.peer.get()));
    return std::make_unique<ModelProcess>(std::move(sandboxed.peer));
  }

  explicit ModelProcess(std::unique_ptr<TrainerPeer> peer) : peer_(std::move(peer)), thread_(syscall(SYS_gettid)) {}

  const Layout& layout() const { return peer_->layout(); }
  bool usable() const { return !peer_->dialogue().lost() && thread_ == syscall(SYS_gettid); }

  void StopWhen(const std::function<bool()>& stop) { peer_->dialogue().StopWhen(stop); }

  absl::StatusOr<Evaluation> Evaluate(int64_t round, absl::Span<const float> weights) {
    return AskForEvaluation(round, weights, nullptr, peer_.get());
  }

  // The bytes of a file, at most `most`.
  absl::StatusOr<std::string> Export(absl::Span<const float> weights, uint64_t most) {
    peer_->GiveWeights(weights);
    return peer_->dialogue().Call(FrameKind::kExport, "", most);
  }

  absl::StatusOr<std::vector<std::string>> Vocabulary() {
    TERSE_ASSIGN_OR_RETURN(const std::string answer,
                           peer_->dialogue().Call(FrameKind::kVocabulary, "", kMostVocabularyBytes));
    absl::StatusOr<std::vector<std::string>> symbols = UnpackSymbols(answer, kMostSymbols);
    if (!symbols.ok()) return peer_->Unreadable("the vocabulary", symbols.status());
    return symbols;
  }

  absl::StatusOr<std::vector<float>> StartWeights() {
    TERSE_ASSIGN_OR_RETURN(std::vector<float> weights, peer_->StartWeights());
    if (weights.empty()) return Nonsense("without the weights that it starts from");
    if (AllFinite(weights)) return weights;
    return absl::InvalidArgumentError("the model's file has weights that are not finite; save a sound one");
  }

  absl::Status Nonsense(absl::string_view answer) { return peer_->dialogue().Nonsense(answer); }

 private:
  const std::unique_ptr<TrainerPeer> peer_;
  const int64_t thread_;
};

class SandboxedLearning : public RunLearning, private Evaluator {
 public:
  SandboxedLearning(SandboxOptions options, SandboxedRun run, std::unique_ptr<ModelProcess> process)
      : options_(std::move(options)), run_(std::move(run)), layout_(process->layout()), process_(std::move(process)) {}

  const Layout& layout() const override { return layout_; }
  Evaluator* evaluator() override { return this; }

  absl::StatusOr<std::vector<float>> InitialWeights() const override {
    absl::MutexLock lock(&mutex_);
    TERSE_ASSIGN_OR_RETURN(ModelProcess* const process, UsableProcess());
    return process->StartWeights();
  }

  absl::StatusOr<std::string> ExportTorchScript(absl::Span<const float> weights) const override {
    TERSE_RETURN_IF_ERROR(CheckSize(weights));
    absl::MutexLock lock(&export_mutex_);
    const absl::StatusOr<std::unique_ptr<ModelProcess>> process = StartAgain();
    if (!process.ok()) return NotAway(process.status(), absl::StatusCode::kFailedPrecondition);
    const uint64_t most = weights.size() * sizeof(float) + 2 * run_.module.size() + kMostArchiveBytes;
    absl::StatusOr<std::string> file = (*process)->Export(weights, most);
    if (!file.ok()) return NotAway(file.status(), absl::StatusCode::kFailedPrecondition);
    return file;
  }

  // Asked once, since the answer stays and a process of its own reads the data for it.
  absl::StatusOr<std::vector<std::string>> Vocabulary() const override {
    absl::MutexLock lock(&export_mutex_);
    if (vocabulary_.has_value()) return *vocabulary_;
    const absl::StatusOr<std::unique_ptr<ModelProcess>> process = StartAgain();
    if (!process.ok()) return NotAway(process.status(), absl::StatusCode::kFailedPrecondition);
    absl::StatusOr<std::vector<std::string>> symbols = (*process)->Vocabulary();
    if (!symbols.ok()) return NotAway(symbols.status(), absl::StatusCode::kFailedPrecondition);
    vocabulary_ = *symbols;
    return symbols;
  }

 private:
  absl::StatusOr<Evaluation> Evaluate(absl::Span<const float> weights) override {
    return EvaluateRound(0, weights, [] { return true; });
  }

  absl::StatusOr<Evaluation> EvaluateRound(int64_t round, absl::Span<const float> weights,
                                           const std::function<bool()>& /*keep_going*/) override {
    absl::StatusOr<Evaluation> evaluation = TryEvaluate(round, weights);
    LogDetails(kRunLog, {run_.config.name}, evaluation.status());
    return evaluation;
  }

  absl::StatusOr<Evaluation> TryEvaluate(int64_t round, absl::Span<const float> weights) {
    TERSE_RETURN_IF_ERROR(CheckSize(weights));
    absl::MutexLock lock(&mutex_);
    TERSE_ASSIGN_OR_RETURN(ModelProcess* const process, UsableProcess());
    return process->Evaluate(round, weights);
  }

  // The process that evaluates, of this thread.
  absl::StatusOr<ModelProcess*> UsableProcess() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (process_ == nullptr || !process_->usable()) {
      process_ = nullptr;  // before another takes memory
      TERSE_ASSIGN_OR_RETURN(process_, StartAgain());
    }
    return process_.get();
  }

  absl::StatusOr<std::unique_ptr<ModelProcess>> StartAgain() const {
    TERSE_ASSIGN_OR_RETURN(std::unique_ptr<ModelProcess> process, ModelProcess::Start(options_, run_));
    if (process->layout().Hash() == layout_.Hash()) return process;
    return process->Nonsense("with another model than before");
  }

  absl::Status CheckSize(absl::Span<const float> weights) const {
    if (static_cast<int64_t>(weights.size()) == layout_.size()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("the model has ", layout_.size(), " weights, got ", weights.size()));
  }

  const SandboxOptions options_;
  const SandboxedRun run_;
  const Layout layout_;
  mutable absl::Mutex export_mutex_;
  mutable absl::optional<std::vector<std::string>> vocabulary_ ABSL_GUARDED_BY(export_mutex_);
  mutable absl::Mutex mutex_;
  mutable std::unique_ptr<ModelProcess> process_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::StatusOr<std::unique_ptr<RunLearning>> MakeSandboxedLearning(const SandboxOptions& options,
                                                                   const RunConfig& config, const std::string& module,
                                                                   const std::function<bool()>& cancelled) {
  SandboxedRun run = {config, {}, module};
  SandboxOptions cancellable = options;
  cancellable.stop = [&] { return (cancelled && cancelled()) || (options.stop && options.stop()); };
  absl::StatusOr<std::unique_ptr<ModelProcess>> process = ModelProcess::Start(cancellable, run);
  if (!process.ok()) return NotAway(process.status(), absl::StatusCode::kInvalidArgument);
  (*process)->StopWhen(options.stop);  // who may cancel this call does not outlive it
  return std::make_unique<SandboxedLearning>(options, std::move(run), *std::move(process));
}

}  // namespace terse
