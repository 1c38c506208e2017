#include "trainer/external_trainer.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "core/session_messages.h"
#include "core/status.h"
#include "trainer/dialogue.h"
#include "trainer/failure_codes.h"
#include "trainer/messages.h"
#include "trainer/shared_vectors.h"
#include "trainer/take_result.h"

namespace terse {
namespace {

constexpr char kSubject[] = "the trainer";
constexpr uint64_t kMostHelloBytes = 16 << 20;
constexpr uint64_t kMostAnswerBytes = 64 << 10;
// Bounds a saved state: optimizers have up to two moments for each element, and there may be more beside them.
constexpr uint64_t kMostStateBytes = 64 << 20;
constexpr uint64_t kMostStateBytesPerElement = 64;
constexpr size_t kMostName = 100;
constexpr absl::Duration kLingers = absl::Seconds(1);  // a process whose end of the socket is closed

absl::optional<Dialogue::Refusal> ReadFailure(absl::string_view body) {
  absl::StatusOr<WireFailure> failure = FromJson<WireFailure>(body);
  if (!failure.ok()) return absl::nullopt;
  return Dialogue::Refusal{StatusCodeNamed(failure->code), absl::StrCat(kSubject, ": ", failure->message),
                           std::move(failure->details)};
}

absl::optional<TensorKind> KindNamed(absl::string_view name) {
  if (name == "parameter") return TensorKind::kParameter;
  if (name == "buffer") return TensorKind::kBuffer;
  return absl::nullopt;
}

class ExternalTrainer : public LocalTrainer {
 public:
  static absl::StatusOr<std::unique_ptr<LocalTrainer>> Make(TrainerConnection connection,
                                                            const ExternalTrainerOptions& options,
                                                            const OpenRequest& request) {
    std::unique_ptr<ExternalTrainer> trainer(new ExternalTrainer(std::move(connection), options));
    if (const absl::Status opened = trainer->Open(request); !opened.ok()) return trainer->OrNeverStarts(opened);
    TERSE_RETURN_IF_ERROR(trainer->ShareMemory());
    if (options.log) options.log(trainer->Introduction());
    return trainer;
  }
  ~ExternalTrainer() override {
    dialogue_ = nullptr;  // it sees that its end is gone
    if (process_ != nullptr) process_->End(absl::Seconds(kStopGraceSeconds));
  }

  const Layout& layout() const override { return layout_; }
  int64_t samples() const override { return hello_.samples; }
  std::string device() const override { return hello_.device; }

  std::vector<float> StartWeights() const override {
    if (!hello_.has_start) return {};
    const absl::StatusOr<std::string> answer = dialogue_->Call(FrameKind::kStart, "{}", kMostAnswerBytes);
    if (!answer.ok()) return {};
    const absl::StatusOr<WireStart> start = FromJson<WireStart>(*answer);
    if (!start.ok() || !start->has_weights) return {};
    return {vectors_.result().begin(), vectors_.result().end()};
  }

  absl::StatusOr<TrainResult> Train(absl::Span<const float> weights, const LocalPlan& plan,
                                    const std::function<bool()>& keep_going, absl::Span<float> delta) override {
    if (weights.size() != delta.size() || static_cast<int64_t>(delta.size()) != layout_.size()) {
      return absl::InvalidArgumentError(absl::StrCat("training wants weights and a result of ", layout_.size(),
                                                     " floats, got ", weights.size(), " and ", delta.size()));
    }
    GiveWeights(weights);
    // As other trainers, this one may be asked without a function to ask.
    const std::function<bool()> asks = keep_going ? keep_going : [] { return true; };
    TERSE_ASSIGN_OR_RETURN(const std::string answer,
                           dialogue_->Call(FrameKind::kTrain, ToJson(plan), kMostAnswerBytes, asks));
    const absl::StatusOr<WireResult> result = FromJson<WireResult>(answer);
    if (!result.ok()) return Unreadable("training", result.status());
    if (result->samples < 0) return dialogue_->Nonsense("with a negative number of samples");
    const auto loss = static_cast<float>(result->loss);
    if (!std::isfinite(loss)) return NotFinite("a loss that is not finite");
    const absl::Span<const float> less = is_delta_ ? absl::Span<const float>() : weights;
    if (!TakeResult(vectors_.result(), less, delta)) return NotFinite(WhereNotFinite(delta));
    return TrainResult{loss, result->samples};
  }

  // One that fails is seen at the next call, since the trainer is lost.
  void MaskMomentum(absl::Span<const int64_t> positions) override {
    if (!hello_.has_momentum) return;
    const absl::string_view bytes(reinterpret_cast<const char*>(positions.data()), positions.size() * sizeof(int64_t));
    dialogue_->Call(FrameKind::kMask, bytes, kMostAnswerBytes).status().IgnoreError();
  }

  absl::StatusOr<std::string> SaveState() override {
    if (!hello_.has_state) return std::string();
    return dialogue_->Call(FrameKind::kSave, "", kMostStateBytes + kMostStateBytesPerElement * layout_.size());
  }
  absl::Status RestoreState(absl::string_view state) override {
    if (!hello_.has_state) return absl::OkStatus();
    return dialogue_->Call(FrameKind::kRestore, state, kMostAnswerBytes).status();
  }

  void OnSealed(int64_t round) override {
    dialogue_->Tell(FrameKind::kSealed, ToJson(SealedNotice{round})).IgnoreError();
  }
  void OnFinished(absl::string_view reason, absl::Span<const float> weights) override {
    GiveWeights(weights);
    dialogue_->Tell(FrameKind::kFinished, ToJson(FinishedNotice{std::string(reason)})).IgnoreError();
  }

 private:
  ExternalTrainer(TrainerConnection connection, const ExternalTrainerOptions& options)
      : process_(std::move(connection.process)) {
    const int fd = connection.socket.fd();
    Dialogue::Options dialogue;
    dialogue.seconds = options.seconds;
    dialogue.stop = options.stop;
    dialogue.end = [this, fd](bool at_once) { return End(fd, at_once); };
    dialogue.read_failure = ReadFailure;
    dialogue.write_go_on = [](bool go_on) { return ToJson(GoOn{go_on}); };
    dialogue.read_progress = [](absl::string_view body) { return FromJson<ProgressReport>(body).ok(); };
    dialogue_ = std::make_unique<Dialogue>(std::move(connection.socket), std::move(dialogue));
  }

  void GiveWeights(absl::Span<const float> weights) {
    std::copy(weights.begin(), weights.end(), hello_.in_place ? vectors_.result().begin() : vectors_.weights().begin());
  }

  std::string Introduction() const {
    return absl::StrCat(kSubject, " is ", hello_.trainer, ": ", layout_.size(), " elements in ",
                        layout_.tensors().size(), " tensors, ", hello_.samples, " samples",
                        hello_.device.empty() ? "" : absl::StrCat(", on ", hello_.device));
  }

  std::string End(int socket, bool at_once) {
    shutdown(socket, SHUT_RDWR);
    if (process_ == nullptr) return "closed the connection";
    return HowItEnded(process_->End(at_once ? absl::ZeroDuration() : kLingers));
  }

  absl::Status Open(const OpenRequest& request) {
    TERSE_ASSIGN_OR_RETURN(const std::string answer,
                           dialogue_->Call(FrameKind::kOpen, ToJson(request), kMostHelloBytes));
    absl::StatusOr<Hello> hello = FromJson<Hello>(answer);
    if (!hello.ok()) return Unreadable("opening the run", hello.status());
    hello_ = *std::move(hello);
    hello_.trainer = Printable(absl::string_view(hello_.trainer).substr(0, kMostName), /*lines=*/false);
    TERSE_RETURN_IF_ERROR(CheckHello());
    return TakeLayout();
  }

  // A command that cannot be started is not worth trying again.
  absl::Status OrNeverStarts(const absl::Status& status) {
    if (!absl::IsUnavailable(status) || process_ == nullptr) return status;
    const int ended = process_->End(kLingers);
    const bool is_none = WIFEXITED(ended) && (WEXITSTATUS(ended) == 126 || WEXITSTATUS(ended) == 127);
    if (!is_none) return status;
    return absl::FailedPreconditionError(
        "the command of --trainer cannot be started, as the line above says; correct it");
  }

  absl::Status CheckHello() {
    if (hello_.protocol != kTrainerProtocol) {
      return absl::FailedPreconditionError(absl::StrCat(kSubject, " ", hello_.trainer, " speaks version ",
                                                        hello_.protocol, " of the trainer protocol, and this client ",
                                                        kTrainerProtocol, "; install releases that fit each other"));
    }
    if (hello_.dtype != "float32") {
      return absl::FailedPreconditionError(absl::StrCat(kSubject, " wants its weights as '",
                                                        Printable(hello_.dtype.substr(0, kMostName), false),
                                                        "'; they are shared as 'float32', whatever it computes with"));
    }
    if (hello_.samples < 1) return dialogue_->Nonsense(absl::StrCat("that it has ", hello_.samples, " samples"));
    if (!hello_.device.empty() && !IsDeviceName(hello_.device)) return dialogue_->Nonsense("with a device of no name");
    is_delta_ = hello_.result == "delta";
    if (!is_delta_ && hello_.result != "weights") {
      return dialogue_->Nonsense("that its result is neither 'weights' nor 'delta'");
    }
    return absl::OkStatus();
  }

  absl::Status TakeLayout() {
    std::vector<Layout::Entry> entries;
    for (WireTensor& tensor : hello_.layout) {
      const absl::optional<TensorKind> kind = KindNamed(tensor.kind);
      if (!kind.has_value()) return dialogue_->Nonsense("with a tensor that is neither 'parameter' nor 'buffer'");
      entries.push_back({std::move(tensor.name), std::move(tensor.shape), *kind});
    }
    hello_.layout.clear();
    absl::StatusOr<Layout> layout = Layout::Create(entries);
    if (!layout.ok()) {
      return absl::FailedPreconditionError(absl::StrCat(
          kSubject, " has no model that a run can have: ", Printable(layout.status().message(), /*lines=*/false)));
    }
    layout_ = *std::move(layout);
    return absl::OkStatus();
  }

  absl::Status ShareMemory() {
    const OwnedFile memory(memfd_create("terse-trainer", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (memory.fd() < 0) {
      return absl::ResourceExhaustedError(absl::StrCat("no memory to share: ", std::strerror(errno)));
    }
    TERSE_RETURN_IF_ERROR(vectors_.Create(memory.fd(), layout_.size()));
    const std::string body = ToJson(MemoryRequest{layout_.size(), SharedVectors::Bytes(layout_.size())});
    return dialogue_->Call(FrameKind::kMemory, body, kMostAnswerBytes, nullptr, memory.fd()).status();
  }

  absl::Status Unreadable(absl::string_view question, const absl::Status& why) {
    return dialogue_->Nonsense(
        absl::StrCat(question, " with what cannot be read: ", Printable(why.message(), /*lines=*/false)));
  }

  static absl::Status NotFinite(absl::string_view finding) {
    return absl::FailedPreconditionError(absl::StrCat(
        kSubject, " left ", finding, "; lower its learning rate, or look for what in the data makes it diverge"));
  }

  std::string WhereNotFinite(absl::Span<const float> delta) const {
    for (const TensorSpec& tensor : layout_.tensors()) {
      const absl::Span<const float> values = delta.subspan(tensor.offset, tensor.size);
      const int64_t bad =
          std::count_if(values.begin(), values.end(), [](float value) { return !std::isfinite(value); });
      if (bad == 0) continue;
      return absl::StrCat(bad, " of the ", tensor.size, " values of tensor '", Printable(tensor.name, false),
                          "' that are not finite");
    }
    return "values that are not finite";
  }

  std::unique_ptr<ChildProcess> process_;
  std::unique_ptr<Dialogue> dialogue_;
  Hello hello_;
  bool is_delta_ = false;
  Layout layout_;
  SharedVectors vectors_;
};

OpenRequest RequestFor(const RunConfig& config, const Shard& shard) {
  OpenRequest request;
  request.protocol = kTrainerProtocol;
  request.run = config.name;
  request.model = config.model.name;
  request.seed = static_cast<int64_t>(config.seed);
  request.shard = shard;
  request.rounds = config.rounds.count;
  request.local_steps = config.train.local_steps;
  request.batch_size = config.train.batch_size;
  request.buffers = config.model.buffers;
  request.momentum_masking = config.train.optimizer.momentum_masking;
  return request;
}

}  // namespace

TrainerFactory ExternalTrainerFactory(ExternalTrainerOptions options) {
  return [options = std::move(options)](const RunConfig& config, const Shard& shard,
                                        absl::string_view) -> absl::StatusOr<std::unique_ptr<LocalTrainer>> {
    TERSE_ASSIGN_OR_RETURN(TrainerConnection connection, options.source());
    return ExternalTrainer::Make(std::move(connection), options, RequestFor(config, shard));
  };
}

}  // namespace terse
