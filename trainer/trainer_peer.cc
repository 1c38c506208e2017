#include "trainer/trainer_peer.h"

#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "core/session_messages.h"
#include "core/status.h"
#include "trainer/failure_codes.h"
#include "trainer/take_result.h"

namespace terse {
namespace {

constexpr uint64_t kMostHelloBytes = 16 << 20;
constexpr size_t kMostName = 100;
constexpr absl::Duration kLingers = absl::Seconds(1);  // a process whose end of the socket is closed

absl::optional<TensorKind> KindNamed(absl::string_view name) {
  if (name == "parameter") return TensorKind::kParameter;
  if (name == "buffer") return TensorKind::kBuffer;
  return absl::nullopt;
}

std::string Shortened(absl::string_view text) { return Printable(text.substr(0, kMostName), /*lines=*/false); }

}  // namespace

OpenRequest RequestFor(const RunConfig& config, const Shard& shard, const PeerRole& role) {
  OpenRequest request;
  request.protocol = kTrainerProtocol;
  request.role = role.name;
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

TrainerPeer::TrainerPeer(TrainerConnection connection, const PeerRole& role, const PeerOptions& options)
    : role_(role), options_(options), memory_(std::move(connection.memory)), process_(std::move(connection.process)) {
  const int fd = connection.socket.fd();
  Dialogue::Options dialogue;
  dialogue.subject = role.subject;
  if (role.is_confined()) dialogue.distrust = role.distrust;
  dialogue.time_option = absl::StrCat(role.option, "-seconds");
  dialogue.seconds = options.seconds;
  dialogue.stop = options.stop;
  dialogue.end = [this, fd](bool at_once) { return End(fd, at_once); };
  dialogue.read_failure = [role](absl::string_view body) -> absl::optional<Dialogue::Refusal> {
    absl::StatusOr<WireFailure> failure = FromJson<WireFailure>(body);
    if (!failure.ok()) return absl::nullopt;
    std::string message =
        role.is_confined() ? std::move(failure->message) : absl::StrCat(role.subject, ": ", failure->message);
    return Dialogue::Refusal{StatusCodeNamed(failure->code), std::move(message), std::move(failure->details)};
  };
  dialogue.write_go_on = [](bool go_on) { return ToJson(GoOn{go_on}); };
  dialogue.read_progress = [](absl::string_view body) { return FromJson<ProgressReport>(body).ok(); };
  dialogue_ = std::make_unique<Dialogue>(std::move(connection.socket), std::move(dialogue));
}

TrainerPeer::~TrainerPeer() {
  dialogue_ = nullptr;  // it sees that its end is gone
  if (process_ != nullptr && !role_.is_confined()) process_->End(absl::Seconds(kStopGraceSeconds));
}

absl::StatusOr<std::unique_ptr<TrainerPeer>> TrainerPeer::Open(TrainerConnection connection, const PeerRole& role,
                                                               const PeerOptions& options, const OpenRequest& request) {
  auto peer = std::make_unique<TrainerPeer>(std::move(connection), role, options);
  TERSE_RETURN_IF_ERROR(peer->OpenRun(request));
  return peer;
}

absl::Status TrainerPeer::OpenRun(const OpenRequest& request) {
  if (const absl::Status opened = SayOpen(request); !opened.ok()) return OrNeverStarts(opened);
  if (options_.fits) TERSE_RETURN_IF_ERROR(options_.fits(layout_));
  TERSE_RETURN_IF_ERROR(ShareMemory());
  if (options_.log) options_.log(Introduction());
  return absl::OkStatus();
}

void TrainerPeer::GiveWeights(absl::Span<const float> weights) {
  if (vectors_.type() == VectorType::kBfloat16) {
    RoundToBfloat16(weights, hello_.in_place ? vectors_.result16() : vectors_.weights16());
  } else {
    std::copy(weights.begin(), weights.end(), hello_.in_place ? vectors_.result().begin() : vectors_.weights().begin());
  }
}

void TrainerPeer::GiveSnapshot(absl::Span<const float> snapshot) {
  std::copy(snapshot.begin(), snapshot.end(), vectors_.snapshot().begin());
}

bool TrainerPeer::TakeResult(absl::Span<const float> weights, absl::Span<float> delta) const {
  if (hello_.result == "delta") weights = {};
  return vectors_.type() == VectorType::kBfloat16 ? terse::TakeResult(vectors_.result16(), weights, delta)
                                                  : terse::TakeResult(vectors_.result(), weights, delta);
}

absl::StatusOr<std::vector<float>> TrainerPeer::StartWeights() {
  if (!hello_.has_start) return std::vector<float>();
  TERSE_ASSIGN_OR_RETURN(const std::string answer, dialogue_->Call(FrameKind::kStart, "{}", kMostAnswerBytes));
  const absl::StatusOr<WireStart> start = FromJson<WireStart>(answer);
  if (!start.ok()) return Unreadable("the start", start.status());
  if (!start->has_weights) return std::vector<float>();
  std::vector<float> weights(layout_.size());
  TakeResult({}, absl::MakeSpan(weights));
  return weights;
}

std::string TrainerPeer::Introduction() const {
  return absl::StrCat(role_.subject, " is ", hello_.trainer, ": ", layout_.size(), " elements in ",
                      layout_.tensors().size(), " tensors, ", hello_.samples, " samples",
                      hello_.device.empty() ? "" : absl::StrCat(", on ", hello_.device));
}

std::string TrainerPeer::End(int socket, bool at_once) {
  shutdown(socket, SHUT_RDWR);
  if (process_ == nullptr) return "closed the connection";
  return options_.how_it_ended(process_->End(at_once ? absl::ZeroDuration() : kLingers));
}

absl::Status TrainerPeer::SayOpen(const OpenRequest& request) {
  TERSE_ASSIGN_OR_RETURN(const std::string answer, dialogue_->Call(FrameKind::kOpen, ToJson(request), kMostHelloBytes));
  absl::StatusOr<Hello> hello = FromJson<Hello>(answer);
  if (!hello.ok()) return Unreadable("opening the run", hello.status());
  hello_ = *std::move(hello);
  hello_.trainer = Shortened(hello_.trainer);
  TERSE_RETURN_IF_ERROR(CheckHello());
  return TakeLayout();
}

// A command that cannot be started is not worth trying again.
absl::Status TrainerPeer::OrNeverStarts(const absl::Status& status) {
  if (!absl::IsUnavailable(status) || process_ == nullptr || role_.is_confined()) return status;
  const int ended = process_->End(kLingers);
  const bool is_none = WIFEXITED(ended) && (WEXITSTATUS(ended) == 126 || WEXITSTATUS(ended) == 127);
  if (!is_none) return status;
  return absl::FailedPreconditionError(
      absl::StrCat("the command of ", role_.option, " cannot be started, as the line above says; correct it"));
}

absl::Status TrainerPeer::CheckHello() const {
  if (hello_.protocol != kTrainerProtocol) {
    return absl::FailedPreconditionError(absl::StrCat(role_.subject, " ", hello_.trainer, " speaks version ",
                                                      hello_.protocol, " of the trainer protocol, and ", role_.asker,
                                                      " ", kTrainerProtocol, "; install releases that fit each other"));
  }
  const bool is_known = hello_.dtype == "float32" || (hello_.dtype == "bfloat16" && !role_.is_confined());
  if (!is_known) {
    return absl::FailedPreconditionError(
        absl::StrCat(role_.subject, " wants its weights as '", Shortened(hello_.dtype),
                     "'; they are shared as 'float32' or 'bfloat16', whatever it computes with"));
  }
  if (hello_.samples < 1) return dialogue_->Nonsense(absl::StrCat("that it has ", hello_.samples, " samples"));
  if (!hello_.device.empty() && !IsDeviceName(hello_.device)) return dialogue_->Nonsense("with a device of no name");
  if (hello_.result != "delta" && hello_.result != "weights") {
    return dialogue_->Nonsense("that its result is neither 'weights' nor 'delta'");
  }
  return absl::OkStatus();
}

absl::Status TrainerPeer::TakeLayout() {
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
        role_.subject, " has no model that a run can have: ", Printable(layout.status().message(), /*lines=*/false)));
  }
  layout_ = *std::move(layout);
  return absl::OkStatus();
}

absl::Status TrainerPeer::ShareMemory() {
  const bool has_file = memory_.fd() >= 0;
  TERSE_ASSIGN_OR_RETURN(const OwnedFile memory, has_file ? std::move(memory_) : MakeMemoryFile());
  const VectorType type = hello_.dtype == "bfloat16" ? VectorType::kBfloat16 : VectorType::kFloat32;
  TERSE_RETURN_IF_ERROR(vectors_.Create(memory.fd(), layout_.size(), type));
  const std::string body = ToJson(MemoryRequest{layout_.size(), SharedVectors::Bytes(layout_.size(), type)});
  return dialogue_->Call(FrameKind::kMemory, body, kMostAnswerBytes, nullptr, has_file ? -1 : memory.fd()).status();
}

absl::Status TrainerPeer::Unreadable(absl::string_view question, const absl::Status& why) {
  return dialogue_->Nonsense(
      absl::StrCat(question, " with what cannot be read: ", Printable(why.message(), /*lines=*/false)));
}

absl::Status TrainerPeer::Mistaken(absl::string_view mistake) {
  if (role_.is_confined()) return dialogue_->Nonsense(absl::StrCat("wrongly: it ", mistake));
  return absl::FailedPreconditionError(absl::StrCat(role_.subject, " ", mistake));
}

absl::StatusOr<std::vector<NamedMetric>> TrainerPeer::ReadMetrics(const std::vector<WireMetric>& wire,
                                                                  absl::Span<const MetricKind> kinds) {
  std::vector<NamedMetric> metrics;
  for (const WireMetric& metric : wire) {
    const absl::optional<MetricKind> kind = MetricKindNamed(metric.kind);
    if (!kind.has_value() || std::find(kinds.begin(), kinds.end(), *kind) == kinds.end()) {
      return dialogue_->Nonsense(absl::StrCat("with a metric of the kind '", Shortened(metric.kind), "'"));
    }
    metrics.push_back({*kind, metric.name, metric.value, metric.samples});
  }
  if (const absl::Status sound = CheckMetrics(metrics); !sound.ok()) {
    return Mistaken(absl::StrCat("reports what is no metric: ", Printable(sound.message(), /*lines=*/false)));
  }
  return metrics;
}

}  // namespace terse
