#include "trainer/trainer_peer.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "core/session_messages.h"
#include "core/status.h"
#include "trainer/failure_codes.h"

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
    : role_(role), process_(std::move(connection.process)) {
  const int fd = connection.socket.fd();
  Dialogue::Options dialogue;
  dialogue.subject = role.subject;
  dialogue.time_option = absl::StrCat(role.option, "-seconds");
  dialogue.seconds = options.seconds;
  dialogue.stop = options.stop;
  dialogue.end = [this, fd](bool at_once) { return End(fd, at_once); };
  dialogue.read_failure = [role](absl::string_view body) -> absl::optional<Dialogue::Refusal> {
    absl::StatusOr<WireFailure> failure = FromJson<WireFailure>(body);
    if (!failure.ok()) return absl::nullopt;
    return Dialogue::Refusal{StatusCodeNamed(failure->code), absl::StrCat(role.subject, ": ", failure->message),
                             std::move(failure->details)};
  };
  dialogue.write_go_on = [](bool go_on) { return ToJson(GoOn{go_on}); };
  dialogue.read_progress = [](absl::string_view body) { return FromJson<ProgressReport>(body).ok(); };
  dialogue_ = std::make_unique<Dialogue>(std::move(connection.socket), std::move(dialogue));
}

TrainerPeer::~TrainerPeer() {
  dialogue_ = nullptr;  // it sees that its end is gone
  if (process_ != nullptr) process_->End(absl::Seconds(kStopGraceSeconds));
}

absl::StatusOr<std::unique_ptr<TrainerPeer>> TrainerPeer::Open(TrainerConnection connection, const PeerRole& role,
                                                               const PeerOptions& options, const OpenRequest& request) {
  std::unique_ptr<TrainerPeer> peer(new TrainerPeer(std::move(connection), role, options));
  if (const absl::Status opened = peer->SayOpen(request); !opened.ok()) return peer->OrNeverStarts(opened);
  TERSE_RETURN_IF_ERROR(peer->ShareMemory());
  if (options.log) options.log(peer->Introduction());
  return peer;
}

void TrainerPeer::GiveWeights(absl::Span<const float> weights) {
  std::copy(weights.begin(), weights.end(), hello_.in_place ? vectors_.result().begin() : vectors_.weights().begin());
}

std::string TrainerPeer::Introduction() const {
  return absl::StrCat(role_.subject, " is ", hello_.trainer, ": ", layout_.size(), " elements in ",
                      layout_.tensors().size(), " tensors, ", hello_.samples, " samples",
                      hello_.device.empty() ? "" : absl::StrCat(", on ", hello_.device));
}

std::string TrainerPeer::End(int socket, bool at_once) {
  shutdown(socket, SHUT_RDWR);
  if (process_ == nullptr) return "closed the connection";
  return HowItEnded(process_->End(at_once ? absl::ZeroDuration() : kLingers));
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
  if (!absl::IsUnavailable(status) || process_ == nullptr) return status;
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
  if (hello_.dtype != "float32") {
    return absl::FailedPreconditionError(absl::StrCat(role_.subject, " wants its weights as '", Shortened(hello_.dtype),
                                                      "'; they are shared as 'float32', whatever it computes with"));
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
  const OwnedFile memory(memfd_create("terse-trainer", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (memory.fd() < 0) {
    return absl::ResourceExhaustedError(absl::StrCat("no memory to share: ", std::strerror(errno)));
  }
  TERSE_RETURN_IF_ERROR(vectors_.Create(memory.fd(), layout_.size()));
  const std::string body = ToJson(MemoryRequest{layout_.size(), SharedVectors::Bytes(layout_.size())});
  return dialogue_->Call(FrameKind::kMemory, body, kMostAnswerBytes, nullptr, memory.fd()).status();
}

absl::Status TrainerPeer::Unreadable(absl::string_view question, const absl::Status& why) {
  return dialogue_->Nonsense(
      absl::StrCat(question, " with what cannot be read: ", Printable(why.message(), /*lines=*/false)));
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
    return absl::FailedPreconditionError(
        absl::StrCat(role_.subject, " reports what is no metric: ", Printable(sound.message(), /*lines=*/false)));
  }
  return metrics;
}

}  // namespace terse
