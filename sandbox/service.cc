#include "sandbox/service.h"

#include <cstdint>

#include "core/status_details.h"
#include "sandbox/messages.h"

namespace terse {
namespace {

constexpr size_t kMostTextBytes = 7 << 10;  // two of them are within what the other end takes

}  // namespace

absl::Status AnswerFrame(const absl::StatusOr<std::string>& answer, Channel* channel) {
  if (answer.ok()) return channel->Send(FrameKind::kDone, *answer, nullptr);
  const absl::Status& status = answer.status();
  const Failure failure = {static_cast<int32_t>(status.code()), std::string(status.message().substr(0, kMostTextBytes)),
                           DetailsOf(status).substr(0, kMostTextBytes)};
  return channel->Send(FrameKind::kFailed, EncodeMessage(failure), nullptr);
}

void ServeFrames(Channel* channel,
                 const std::function<absl::StatusOr<std::string>(const Channel::Frame& request)>& answer) {
  while (true) {
    const absl::StatusOr<Channel::Frame> request = channel->Receive(kAnySize, nullptr);
    if (!request.ok() || !AnswerFrame(answer(*request), channel).ok()) return;
  }
}

absl::Status UnknownRequest() { return absl::InternalError("the sandbox was asked for what it does not know"); }

}  // namespace terse
