// A client of the run, connected or not, as this process knows it.
#ifndef TERSE_COORDINATOR_MEMBER_H_
#define TERSE_COORDINATOR_MEMBER_H_

#include <cstdint>
#include <string>

#include "absl/types/optional.h"
#include "coordinator/standing.h"

namespace terse {

class Session;

// The facts that this process remembers of a client beyond its row and its session.
struct ClientNotes {
  // The oldest and the newest round whose work the client was given since its last update came; 0: none. A client that
  // says Ready while it works is given more, and delivers what it took up.
  int64_t first_given = 0;
  int64_t last_given = 0;
  int64_t folded = 0;  // updates that were not applied since the last that was, or since the client was reset
  // L2 norm of its newest applied update, with the local steps and the coding that led to it; below 0: none is known.
  double norm = -1;
  int64_t norm_steps = 0;
  int64_t norm_choice = 0;
};

struct Member {
  Session* session = nullptr;         // null: it is not connected
  std::string name;                   // empty: it did not check in with this process
  int64_t samples = 0;                // of its training data; 0: it has not said
  double reliability = 1;             // as in its row
  absl::optional<ClientNotes> notes;  // nullopt: there is nothing to remember
  Standing standing;
  int64_t left_us = 0;   // when its connection ended; 0: it is not among the Absences
  bool changed = false;  // since Fleet::TakeChanged
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_MEMBER_H_
