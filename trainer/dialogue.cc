#include "trainer/dialogue.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/status.h"
#include "core/status_details.h"

namespace terse {
namespace {

constexpr uint64_t kMostFailureBytes = 64 << 10;
constexpr size_t kMostMessage = 1000;

}  // namespace

std::string Printable(absl::string_view text, bool lines) {
  std::string printable(text);
  for (char& c : printable) {
    if (!absl::ascii_isprint(static_cast<unsigned char>(c)) && !(lines && c == '\n')) c = '?';
  }
  return printable;
}

// How long one call may last.
class Dialogue::Deadline {
 public:
  explicit Deadline(const Options& options) : options_(options), until_(absl::Now() + absl::Seconds(options.seconds)) {}

  // The other end was told to stop.
  void BeginGrace() {
    if (stopping_) return;
    stopping_ = true;
    until_ = std::min(until_, absl::Now() + absl::Seconds(kStopGraceSeconds));
  }
  // For Channel: OK while there is time.
  absl::Status Check() {
    if (options_.stop && options_.stop()) BeginGrace();
    if (absl::Now() < until_) return absl::OkStatus();
    return absl::DeadlineExceededError(
        stopping_ ? absl::StrCat("did not stop within ", kStopGraceSeconds, " seconds")
                  : absl::StrCat("took more than the ", options_.seconds, " seconds of ", options_.time_option));
  }

 private:
  const Options& options_;
  absl::Time until_;
  bool stopping_ = false;
};

absl::StatusOr<std::string> Dialogue::Call(FrameKind kind, absl::string_view body, uint64_t most,
                                           const std::function<bool()>& keep_going, int file) {
  TERSE_RETURN_IF_ERROR(lost_);
  Deadline deadline(options_);
  const Channel::Patience patience = [&] { return deadline.Check(); };
  if (const absl::Status sent = channel_.Send(kind, body, patience, file); !sent.ok()) return Lose(sent);
  return Await(most, keep_going, &deadline);
}

absl::Status Dialogue::Tell(FrameKind kind, absl::string_view body) {
  TERSE_RETURN_IF_ERROR(lost_);
  Deadline deadline(options_);
  const absl::Status sent = channel_.Send(kind, body, [&] { return deadline.Check(); });
  return sent.ok() ? sent : Lose(sent);
}

absl::Status Dialogue::Nonsense(absl::string_view answer) {
  if (options_.end) options_.end(/*at_once=*/true);
  return lost_ = absl::InternalError(absl::StrCat(options_.subject, " answered ", answer, options_.distrust));
}

absl::StatusOr<std::string> Dialogue::Await(uint64_t most, const std::function<bool()>& keep_going,
                                            Deadline* deadline) {
  const Channel::Patience patience = [&] { return deadline->Check(); };
  bool told_to_stop = false;
  while (true) {
    absl::StatusOr<Channel::Frame> frame = channel_.Receive(std::max(most, kMostFailureBytes), patience);
    if (!frame.ok()) return Lose(frame.status());
    if (frame->kind == FrameKind::kProgress && keep_going && !told_to_stop && options_.read_progress(frame->body)) {
      told_to_stop = !keep_going();
      if (told_to_stop) deadline->BeginGrace();
      const std::string answer = options_.write_go_on(!told_to_stop);
      if (const absl::Status sent = channel_.Send(FrameKind::kGoOn, answer, patience); !sent.ok()) return Lose(sent);
    } else if (frame->kind == FrameKind::kDone && frame->body.size() <= most) {
      return std::move(frame->body);
    } else if (frame->kind == FrameKind::kFailed) {
      return Failed(frame->body, told_to_stop);
    } else {
      return Nonsense("with a message that it may not send");
    }
  }
}

// The process says what went wrong. Codes that the daemon acts on without looking further are not for it to give.
absl::Status Dialogue::Failed(absl::string_view body, bool told_to_stop) {
  const absl::optional<Refusal> refusal = options_.read_failure(body);
  if (!refusal.has_value()) return Nonsense("with a failure that cannot be read");
  absl::StatusCode code = refusal->code;
  const bool known = code > absl::StatusCode::kOk && code <= absl::StatusCode::kUnauthenticated;
  if (!known || code == absl::StatusCode::kUnknown || (code == absl::StatusCode::kCancelled && !told_to_stop)) {
    code = absl::StatusCode::kInternal;
  }
  const std::string message = Printable(absl::string_view(refusal->message).substr(0, kMostMessage), /*lines=*/false);
  return WithDetails(absl::Status(code, message), Printable(refusal->details, /*lines=*/true));
}

// After `status` of the channel.
absl::Status Dialogue::Lose(const absl::Status& status) {
  if (absl::IsOutOfRange(status) || absl::IsInvalidArgument(status)) {
    return Nonsense(absl::StrCat("with ", status.message()));
  }
  const bool is_gone = absl::IsAborted(status);
  const std::string how = options_.end ? options_.end(/*at_once=*/!is_gone) : "closed the connection";
  return lost_ =
             absl::UnavailableError(absl::StrCat(options_.subject, " ", is_gone ? how : std::string(status.message())));
}

}  // namespace terse
