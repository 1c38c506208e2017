// Describes the messages of a session, as lines for the log.
#ifndef TERSE_COORDINATOR_RPC_SESSION_LINES_H_
#define TERSE_COORDINATOR_RPC_SESSION_LINES_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "core/session_messages.h"

namespace terse {

struct SessionLine {
  int64_t round = 0;     // 0: the message names none
  std::string text;      // one line, without contents: no weights, no positions
  Id128 update_id = {};  // that it is about; zero: none
};

SessionLine Describe(const FromClient& message);
SessionLine Describe(const FromServer& message);

// "applied", "not applied", "pending", "reset".
absl::string_view OutcomeName(Outcome outcome);

}  // namespace terse

#endif  // TERSE_COORDINATOR_RPC_SESSION_LINES_H_
