#include "coordinator/rpc/evaluator_setup.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "coordinator/log_components.h"
#include "core/cli/checks.h"
#include "core/log/log.h"
#include "core/status.h"
#include "trainer/external_evaluator.h"
#include "trainer/trainer_source.h"

namespace terse {
namespace {

// An evaluation waits so long for an evaluator that connects.
constexpr absl::Duration kAttachTime = absl::Seconds(2);

// The socket at which evaluators attach, for all runs: a run that has none asks for the next one that connects.
class EvaluatorSocket {
 public:
  static absl::StatusOr<std::shared_ptr<EvaluatorSocket>> At(const std::string& path, std::function<bool()> stop) {
    auto socket = std::make_shared<EvaluatorSocket>();
    socket->path_ = path;
    // The source asks only while it is called, which is under the mutex.
    const auto gives_up = [raw = socket.get(), stop = std::move(stop)]()
                              ABSL_NO_THREAD_SAFETY_ANALYSIS { return absl::Now() >= raw->until_ || stop(); };
    TERSE_ASSIGN_OR_RETURN(socket->source_, TrainerAtSocket(path, gives_up, [](const std::string&) {}));
    return socket;
  }

  absl::StatusOr<TrainerConnection> Take() {
    absl::MutexLock lock(&mutex_);
    until_ = absl::Now() + kAttachTime;
    absl::StatusOr<TrainerConnection> connection = source_();
    if (!absl::IsCancelled(connection.status())) return connection;
    return absl::UnavailableError(
        absl::StrCat("no evaluator is attached at ", path_, "; start one there (docs/PYTHON.md, terse.evaluate)"));
  }

 private:
  std::string path_;
  absl::Mutex mutex_;
  absl::Time until_ ABSL_GUARDED_BY(mutex_);
  TrainerSource source_;
};

absl::StatusOr<TrainerSource> SourceOf(const EvaluatorOptions& options, const std::function<bool()>& stop) {
  if (options.socket.empty()) return TrainerCommand(options.command);
  TERSE_ASSIGN_OR_RETURN(std::shared_ptr<EvaluatorSocket> socket, EvaluatorSocket::At(options.socket, stop));
  return TrainerSource([socket] { return socket->Take(); });
}

}  // namespace

void AddEvaluatorOptions(CLI::App& app, CoordinatorOptions* options) {
  EvaluatorOptions& evaluator = options->evaluator;
  CLI::Option* command = app.add_option(
      "--evaluator", evaluator.command,
      "command that starts an evaluator of your own, for each run of model.name = 'external': it says how "
      "good the weights are that a round ended with (docs/TRAINER.md)");
  app.add_option("--evaluator-socket", evaluator.socket,
                 "path of a Unix socket at which an evaluator of your own attaches, which may come and go")
      ->excludes(command);
  app.add_option("--evaluator-seconds", evaluator.seconds, "seconds that one evaluation of your own may take")
      ->check(Number(0.1, 2592000.0))
      ->capture_default_str();
}

absl::StatusOr<EvaluatorFactory> SetUpEvaluators(const CoordinatorOptions& options, const std::function<bool()>& stop) {
  const EvaluatorOptions& evaluator = options.evaluator;
  if (evaluator.command.empty() && evaluator.socket.empty()) return EvaluatorFactory();
  TERSE_ASSIGN_OR_RETURN(const TrainerSource source, SourceOf(evaluator, stop));
  return EvaluatorFactory([source, seconds = evaluator.seconds](const RunConfig& config, const Layout& layout) {
    PeerOptions peer;
    peer.seconds = seconds;
    peer.log = [run = config.name](const std::string& line) { Log(LogLevel::kInfo, kServerLog, {run}, line); };
    return MakeExternalEvaluator(source, std::move(peer), config, layout);
  });
}

}  // namespace terse
