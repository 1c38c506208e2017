// The confined end of the channel: answers what it is asked. Internal to those who work in a sandboxed process.
#ifndef TERSE_SANDBOX_SERVICE_H_
#define TERSE_SANDBOX_SERVICE_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "trainer/channel.h"

namespace terse {

// Sends `answer`: kDone with its bytes, or kFailed with its status and details. ABORTED when the other end is gone.
absl::Status AnswerFrame(const absl::StatusOr<std::string>& answer, Channel* channel);

// Answers every request with what `answer` says, until the other end is gone. Requests are believed.
void ServeFrames(Channel* channel,
                 const std::function<absl::StatusOr<std::string>(const Channel::Frame& request)>& answer);

// The status of a request that its service does not know.
absl::Status UnknownRequest();

}  // namespace terse

#endif  // TERSE_SANDBOX_SERVICE_H_
