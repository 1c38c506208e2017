#include "trainer/serve_peer.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "core/status_details.h"

namespace terse {
namespace {

constexpr size_t kMostTextBytes = 4 << 10;

class PeerServer {
 public:
  PeerServer(OwnedFile socket, OwnedFile memory, PeerService* service)
      : channel_(std::move(socket), memory.fd() >= 0 ? Channel::Files::kRefused : Channel::Files::kTaken),
        memory_(std::move(memory)),
        service_(service) {}

  void Serve() {
    while (true) {
      const absl::StatusOr<Channel::Frame> request = channel_.Receive(kAnySize, nullptr);
      if (!request.ok()) return;
      if (request->kind == FrameKind::kSealed || request->kind == FrameKind::kFinished) {
        if (is_open_) service_->Hear(*request, *vectors_);
      } else if (!SendAnswer(Do(*request), &channel_).ok()) {
        return;
      }
    }
  }

 private:
  absl::StatusOr<std::string> Do(const Channel::Frame& request) {
    switch (request.kind) {
      case FrameKind::kSettings: {
        TERSE_ASSIGN_OR_RETURN(opening_.settings, FromJson<RunConfig>(request.body));
        return "{}";
      }
      case FrameKind::kModule:
        opening_.module = request.body;
        return "{}";
      case FrameKind::kOpen:
        return Open(request.body);
      default:
        break;
    }
    if (!is_open_) return absl::FailedPreconditionError("no run was opened");
    if (request.kind == FrameKind::kMemory) return Map(request);
    return service_->Answer(request, *vectors_, [this](int64_t steps) { return MayGoOn(steps); });
  }

  absl::StatusOr<std::string> Open(const std::string& body) {
    is_open_ = false;
    TERSE_ASSIGN_OR_RETURN(opening_.request, FromJson<OpenRequest>(body));
    vectors_ = std::make_unique<SharedVectors>();
    TERSE_ASSIGN_OR_RETURN(const Hello hello, service_->Open(opening_));
    is_open_ = true;
    return ToJson(hello);
  }

  absl::StatusOr<std::string> Map(const Channel::Frame& request) {
    TERSE_ASSIGN_OR_RETURN(const MemoryRequest memory, FromJson<MemoryRequest>(request.body));
    TERSE_RETURN_IF_ERROR(vectors_->Map(memory_.fd() >= 0 ? memory_.fd() : request.file.fd(), memory.elements));
    return "{}";
  }

  // A process that is gone is one that wants no more.
  bool MayGoOn(int64_t steps) {
    if (!channel_.Send(FrameKind::kProgress, ToJson(ProgressReport{steps}), nullptr).ok()) return false;
    const absl::StatusOr<Channel::Frame> frame = channel_.Receive(kAnySize, nullptr);
    if (!frame.ok() || frame->kind != FrameKind::kGoOn) return false;
    const absl::StatusOr<GoOn> answer = FromJson<GoOn>(frame->body);
    return answer.ok() && answer->go_on;
  }

  Channel channel_;
  const OwnedFile memory_;
  PeerService* const service_;
  RunOpening opening_;
  std::unique_ptr<SharedVectors> vectors_;
  bool is_open_ = false;
};

}  // namespace

void ServePeer(OwnedFile socket, OwnedFile memory, PeerService* service) {
  PeerServer(std::move(socket), std::move(memory), service).Serve();
}

absl::Status SendAnswer(const absl::StatusOr<std::string>& answer, Channel* channel) {
  if (answer.ok()) return channel->Send(FrameKind::kDone, *answer, nullptr);
  const absl::Status& status = answer.status();
  const WireFailure failure = {absl::StatusCodeToString(status.code()),
                               std::string(status.message().substr(0, kMostTextBytes)),
                               DetailsOf(status).substr(0, kMostTextBytes)};
  return channel->Send(FrameKind::kFailed, ToJson(failure), nullptr);
}

std::vector<WireTensor> ToWire(const Layout& layout) {
  std::vector<WireTensor> wire;
  for (const TensorSpec& tensor : layout.tensors()) {
    const bool is_buffer = tensor.kind == TensorKind::kBuffer;
    wire.push_back({tensor.name, tensor.shape, is_buffer ? "buffer" : "parameter"});
  }
  return wire;
}

std::string AnswerStart(const std::vector<float>& weights, const SharedVectors& vectors) {
  const bool has_weights = !weights.empty() && weights.size() == vectors.result().size();
  if (has_weights) std::copy(weights.begin(), weights.end(), vectors.result().begin());
  return ToJson(WireStart{has_weights});
}

absl::Status UnknownRequest(const Channel::Frame& request) {
  return absl::UnimplementedError(
      absl::StrCat("this program does not know requests of kind ", static_cast<uint32_t>(request.kind)));
}

}  // namespace terse
