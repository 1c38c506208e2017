#include "coordinator/rpc/session_lines.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace terse {
namespace {

SessionLine Line(const CheckIn& message) {
  return {message.pending_round,
          absl::StrCat("checks in, connection ", message.connection, " of its process",
                       message.pending_update_id.IsZero() ? "" : ", with an update whose verdict it waits for",
                       message.residual_lost ? ", its residual lost" : ""),
          message.pending_update_id};
}

SessionLine Line(const Ready& message) {
  const std::string holds = message.version.has_value() ? absl::StrCat("version ", *message.version) : "no model";
  return {0, absl::StrCat("ready: holds ", holds, ", trains on ", message.samples, " samples")};
}

SessionLine Line(const Update& message) {
  return {message.round, absl::StrCat("sent an update of ", message.payload_bytes(), " bytes"), message.update_id};
}

SessionLine Line(const Progress& message) {
  return {message.round, absl::StrCat("did ", message.steps_done, " steps")};
}

SessionLine Line(const Leaving& message) {
  return {0, message.reason.empty() ? "leaves" : absl::StrCat("leaves with an error: ", message.reason)};
}

SessionLine Line(const Verdict& message) {
  return {0,
          absl::StrCat("is told the verdict on its update: ", OutcomeName(message.outcome),
                       message.reason.empty() ? "" : ", ", message.reason),
          message.update_id};
}

SessionLine Line(const Welcome& message) {
  const SessionLine verdict = message.verdict.has_value() ? Line(*message.verdict) : SessionLine();
  return {0,
          absl::StrCat("is welcome as client ", message.client_index, verdict.text.empty() ? "" : "; ", verdict.text),
          verdict.update_id};
}

SessionLine Line(const Resync& message) {
  return {0, absl::StrCat("is to download checkpoint ", message.checkpoint_version, ": ", message.reason)};
}

SessionLine Line(const Downstream& message) {
  return {0, absl::StrCat("is sent version ", message.version, ": ", message.message->size(), " bytes")};
}

SessionLine Line(const Assignment& message) {
  return {message.round,
          absl::StrCat("is to train ", message.local_steps, " steps from version ", message.base_version)};
}

SessionLine Line(const Receipt& message) { return {0, "gets a receipt for its update", message.update_id}; }

SessionLine Line(const Refusal& message) {
  return {0, absl::StrCat("is refused", message.retry ? " for now: " : ": ", message.reason)};
}

SessionLine Line(const Finished& message) {
  return {0, absl::StrCat("is told that the run is over: ", message.reason)};
}

SessionLine Line(const BeginHistory&) { return {0, "is to begin its history anew"}; }

}  // namespace

absl::string_view OutcomeName(Outcome outcome) {
  switch (outcome) {
    case Outcome::kApplied:
      return "applied";
    case Outcome::kNotApplied:
      return "not applied";
    case Outcome::kPending:
      return "pending";
    case Outcome::kReset:
      return "reset";
  }
  return "";
}

SessionLine Describe(const FromClient& message) {
  return std::visit([](const auto& one) { return Line(one); }, message);
}

SessionLine Describe(const FromServer& message) {
  return std::visit([](const auto& one) { return Line(one); }, message);
}

}  // namespace terse
