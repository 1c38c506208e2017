// Requests to a trainer in another process, and its answers, for the process that asks and does not believe them.
#ifndef TERSE_TRAINER_DIALOGUE_H_
#define TERSE_TRAINER_DIALOGUE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "trainer/channel.h"

namespace terse {

// Seconds from asking a trainer to stop to giving it up.
inline constexpr double kStopGraceSeconds = 5;

// Not thread-safe.
class Dialogue {
 public:
  // The contents of a failure: the status code, one line and, beside it, a longer text for the log of this process.
  struct Refusal {
    absl::StatusCode code = absl::StatusCode::kInternal;
    std::string message;
    std::string details;
  };
  struct Options {
    std::string subject = "the trainer";            // with which messages begin
    std::string distrust = "";                      // ends the message about an answer that cannot be
    std::string time_option = "--trainer-seconds";  // sets `seconds`
    double seconds = 3600;                          // that one call may last
    // Whether this process should stop, asked while a call waits; the other end then has kStopGraceSeconds. May be
    // empty.
    std::function<bool()> stop;
    // Ends the other process, if it has not ended, and says how it did: "was ended by signal 9". Where not at once, it
    // is about to end by itself. May be empty where there is no process to end.
    std::function<std::string(bool at_once)> end;
    // Reads the body of a failure, and writes the one that answers progress. nullopt for what cannot be read.
    std::function<absl::optional<Refusal>(absl::string_view body)> read_failure;
    std::function<std::string(bool go_on)> write_go_on;
    // Reads the body of progress; false for what cannot be read.
    std::function<bool(absl::string_view body)> read_progress;
  };

  Dialogue(OwnedFile socket, Options options) : channel_(std::move(socket)), options_(std::move(options)) {}

  // Asks, and waits for the answer, of at most `most` bytes. `keep_going`, where it may be asked, answers the progress
  // in between. Returns a status that the other end answers, where codes that a client's session acts on become
  // INTERNAL: UNKNOWN, and a CANCELLED that nobody asked for. Beside those:
  //   UNAVAILABLE   the process ended, took too long, or did not stop when asked: it is lost, every later call says so
  //   INTERNAL      it answered what cannot be; as above
  absl::StatusOr<std::string> Call(FrameKind kind, absl::string_view body, uint64_t most,
                                   const std::function<bool()>& keep_going = nullptr, int file = -1);
  // Says what nothing answers. UNAVAILABLE as Call.
  absl::Status Tell(FrameKind kind, absl::string_view body);

  // The other end answered `answer` ("with a layout that is none"), which is wrong: it is ended, and not asked again.
  // Returns INTERNAL.
  absl::Status Nonsense(absl::string_view answer);

  bool lost() const { return !lost_.ok(); }
  // From now on `stop` is asked in place of the options' own function.
  void StopWhen(std::function<bool()> stop) { options_.stop = std::move(stop); }

 private:
  class Deadline;

  absl::StatusOr<std::string> Await(uint64_t most, const std::function<bool()>& keep_going, Deadline* deadline);
  absl::Status Failed(absl::string_view body, bool told_to_stop);
  absl::Status Lose(const absl::Status& status);

  Channel channel_;
  Options options_;
  absl::Status lost_;
};

// Takes out of a text of another process what a terminal would obey, and line ends unless `lines` may stay.
std::string Printable(absl::string_view text, bool lines);

}  // namespace terse

#endif  // TERSE_TRAINER_DIALOGUE_H_
