#include "trainer/conformance.h"

#include <sys/wait.h>

#include <csignal>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/random.h"
#include "core/status.h"
#include "trainer/channel.h"
#include "trainer/external_trainer.h"
#include "trainer/messages.h"

namespace terse {
namespace {

constexpr uint64_t kSeed = 0x7e25e;
constexpr absl::Duration kFarewell = absl::Seconds(5);
constexpr FrameKind kUnknownKind = static_cast<FrameKind>(31);

RunConfig SomeRun() {
  RunConfig config;
  config.name = "check";
  config.model.name = std::string(kExternalModel);
  config.seed = 1;
  config.rounds.count = 10;
  config.train.local_steps = 2;
  config.train.batch_size = 16;
  return config;
}

// The result of a training, or why there is none; and the state that the client would store with it.
struct Trained {
  absl::Status status;
  std::vector<float> delta;
  absl::StatusOr<std::string> state = absl::UnknownError("nothing was trained");
};

class Conformance {
 public:
  explicit Conformance(const ConformanceOptions& options) : options_(options) {}

  std::vector<TrainerFinding> Run() {
    absl::StatusOr<std::unique_ptr<LocalTrainer>> first = Start();
    if (!Note("answers open and takes the memory", first.status())) return std::move(findings_);
    weights_ = SomeWeights(**first);
    if (!TryTraining(**first)) return std::move(findings_);
    TryStopping(**first);
    TryMask(**first);
    TryState(**first);
    first->reset();
    TryUnknownRequestAndEnd();
    return std::move(findings_);
  }

 private:
  absl::StatusOr<std::unique_ptr<LocalTrainer>> Start() const {
    ExternalTrainerOptions trainer;
    trainer.source = TrainerCommand(options_.command);
    trainer.seconds = options_.seconds;
    return ExternalTrainerFactory(std::move(trainer))(SomeRun(), {0, 2}, "");
  }

  // Whether it passed.
  bool Note(std::string check, const absl::Status& status) {
    findings_.push_back({status.ok() ? TrainerFinding::Kind::kPassed : TrainerFinding::Kind::kFailed, std::move(check),
                         std::string(status.message())});
    return status.ok();
  }
  void NoteOnly(std::string check, std::string detail) {
    findings_.push_back({TrainerFinding::Kind::kNote, std::move(check), std::move(detail)});
  }

  // Its own, or small numbers as weights have them.
  static std::vector<float> SomeWeights(const LocalTrainer& trainer) {
    std::vector<float> weights = trainer.StartWeights();
    if (!weights.empty()) return weights;
    weights.resize(trainer.layout().size());
    Random random(kSeed, 0);
    for (float& weight : weights) weight = static_cast<float>(random.Below(2001)) * 1e-4f - 0.1f;
    return weights;
  }

  Trained Train(LocalTrainer& trainer, const std::function<bool()>& keep_going) {
    Trained trained;
    trained.delta.resize(weights_.size());
    ++round_;
    const LocalPlan plan = {options_.steps, (round_ - 1) * options_.steps, round_, round_ - 1};
    trained.status = trainer.Train(weights_, plan, keep_going, absl::MakeSpan(trained.delta)).status();
    if (!trained.status.ok()) return trained;
    trained.state = trainer.SaveState();
    trainer.OnSealed(round_);
    return trained;
  }

  bool TryTraining(LocalTrainer& trainer) {
    const Trained trained = Train(trainer, [] { return true; });
    if (!Note("trains, with a result that is finite", trained.status)) return false;
    double squares = 0;
    for (const float value : trained.delta) squares += static_cast<double>(value) * value;
    if (squares == 0) NoteOnly("changes the weights", "the result is what the round began with");
    return true;
  }

  void TryStopping(LocalTrainer& trainer) {
    bool asked = false;
    const Trained stopped = Train(trainer, [&asked] {
      asked = true;
      return false;
    });
    if (!asked) {
      NoteOnly("stops when asked", "it sends no progress, so that a stop waits for the end of a round, at most 5 s");
    } else if (absl::IsCancelled(stopped.status)) {
      Note("stops when asked", absl::OkStatus());
    } else {
      Note("stops when asked",
           stopped.status.ok() ? absl::InternalError("it went on after a go_on that said no") : stopped.status);
    }
  }

  void TryMask(LocalTrainer& trainer) {
    trainer.MaskMomentum({0, trainer.layout().parameters() - 1});
    Note("takes positions whose momentum becomes zero, or needs none", Train(trainer, [] { return true; }).status);
  }

  // A process that is killed must go on as if it had not been.
  void TryState(LocalTrainer& trainer) {
    const Trained before = Train(trainer, [] { return true; });
    if (!Note("saves its state", before.state.status())) return;
    if (before.state->empty()) {
      NoteOnly("restores its state", "it has none: after a restart it begins anew");
      return;
    }
    const int64_t round = round_;
    const Trained here = Train(trainer, [] { return true; });
    absl::StatusOr<std::unique_ptr<LocalTrainer>> other = Start();
    if (!Note("starts again", other.status())) return;
    if (!Note("restores its state in another process", (*other)->RestoreState(*before.state))) return;
    round_ = round;
    const Trained there = Train(**other, [] { return true; });
    if (!Note("trains after that", there.status)) return;
    if (here.status.ok() && here.delta != there.delta) {
      NoteOnly("goes on bit for bit", "the next result differs from that of the process that was not restarted");
    } else {
      Note("goes on bit for bit", here.status);
    }
  }

  absl::StatusOr<Channel::Frame> Ask(Channel* channel, FrameKind kind, const std::string& body) const {
    const absl::Time until = absl::Now() + absl::Seconds(options_.seconds);
    const Channel::Patience patience = [until] {
      return absl::Now() < until ? absl::OkStatus() : absl::DeadlineExceededError("no answer came");
    };
    TERSE_RETURN_IF_ERROR(channel->Send(kind, body, patience));
    return channel->Receive(kMostBytes, patience);
  }

  void TryUnknownRequestAndEnd() {
    absl::StatusOr<TrainerConnection> connection = TrainerCommand(options_.command)();
    if (!connection.ok()) return;
    {
      Channel channel(std::move(connection->socket));
      TryUnknownRequest(&channel);
    }
    const int status = connection->process->End(kFarewell);
    Note("ends when its client is gone", WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL
                                             ? absl::InternalError("it had to be killed after 5 s")
                                             : absl::OkStatus());
  }

  void TryUnknownRequest(Channel* channel) {
    OpenRequest open;
    open.protocol = kTrainerProtocol;
    open.run = "check";
    open.model = std::string(kExternalModel);
    open.buffers = "averaged";
    const auto first = Ask(channel, FrameKind::kOpen, ToJson(open));
    const auto unknown = Ask(channel, kUnknownKind, "{}");
    if (!Note("answers a request that it does not know", unknown.status())) return;
    const absl::StatusOr<WireFailure> failure = FromJson<WireFailure>(unknown->body);
    const bool refused = unknown->kind == FrameKind::kFailed && failure.ok();
    Note("with failed", refused ? absl::OkStatus() : absl::InternalError("it answered something else"));
    const auto again = Ask(channel, FrameKind::kOpen, ToJson(open));
    const bool same = first.ok() && again.ok() && again->kind == FrameKind::kDone && again->body == first->body;
    Note("may be opened again", same ? absl::OkStatus() : absl::InternalError("the second hello is another one"));
  }

  static constexpr uint64_t kMostBytes = 16 << 20;
  const ConformanceOptions& options_;
  std::vector<TrainerFinding> findings_;
  std::vector<float> weights_;
  int64_t round_ = 0;
};

}  // namespace

std::vector<TrainerFinding> CheckTrainer(const ConformanceOptions& options) { return Conformance(options).Run(); }

}  // namespace terse
