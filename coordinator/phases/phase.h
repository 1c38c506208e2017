// The phases of a run. Each is one file and names its successors:
//
//   selecting  > collecting                 enough clients are here: the round opens
//   collecting > committing | selecting     the cohort's updates, or a quorum late | no quorum: the round is aborted
//   committing > collecting | finishing     the next round opens in the same transaction | that was the last
//              > selecting                  the run is paused, or the updates give no model: the round is aborted, and
//                                           after kMostUnusableRounds of them in a row the run is paused
//   finishing  > (end)                      the last evaluation and checkpoint are written
//
// In a relay, whose models come from above:
//
//   selecting  > collecting                 a round was ordered, and enough clients are here
//   collecting > relaying | selecting       as above; relaying stands in the place of committing
//   relaying   > selecting                  the round's result is sealed in the relay's update, or the round aborted
//
// Selecting and collecting are left for finishing when the run is ended.
#ifndef TERSE_COORDINATOR_PHASES_PHASE_H_
#define TERSE_COORDINATOR_PHASES_PHASE_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "coordinator/engine_state.h"

namespace terse {

enum class PhaseName { kSelecting, kCollecting, kCommitting, kFinishing };

// Returns the phase's name for people: "waiting for clients", "collecting updates", ...
absl::string_view PhaseTitle(PhaseName phase);

// The successor, or nullopt to stay. An error is a failure of the store and ends the coordinator.
using Transition = absl::StatusOr<absl::optional<PhaseName>>;

inline constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

// Lives from Enter to the next transition. Used from the engine's thread only.
class Phase {
 public:
  virtual ~Phase() = default;
  virtual PhaseName name() const = 0;
  virtual Transition Enter(EngineState& run) = 0;
  // The session holds the head's weights, or will once it has read what was sent.
  virtual Transition OnReady(EngineState& run, Session& session) { return absl::nullopt; }
  // A validated update of an accepted session. It follows the client's last applied one, or is that one again, of which
  // nothing but the id may be read.
  virtual Transition OnUpdate(EngineState& run, Session& session, Update update);
  virtual Transition OnTick(EngineState& run) { return absl::nullopt; }
  // A session ended or was refused.
  virtual Transition OnLeft(EngineState& run) { return absl::nullopt; }
  // run.course.ending was set.
  virtual Transition OnStop(EngineState& run) { return absl::nullopt; }
  // An operator gives the open round up.
  virtual Transition OnAbort(EngineState& run, const std::string& reason) { return absl::nullopt; }
  // A relay's result was sealed, or dropped.
  virtual Transition OnHandedUp(EngineState& run, const HandedUp& event) { return absl::nullopt; }
  // Evaluation or checkpoint came back.
  virtual Transition OnBackground(EngineState& run) { return absl::nullopt; }
  // Returns when OnTick should be called, by the monotonic clock; kNever for not at all. OnTick is also called at other
  // times: when clients were set aside or readmitted, and when the run goes on after a pause.
  virtual int64_t DeadlineMicros(const EngineState& run) const { return kNever; }
};

// One row a phase.
std::unique_ptr<Phase> MakePhase(PhaseName name, const EngineState& run);

// The end that version `version` of the model brings, once run.course.iterations counts those that led to it: it is the
// last one, or there are iterations enough. nullopt while the run goes on.
absl::optional<Ending> EndAt(const EngineState& run, int64_t version);

// No round opens until an operator resumes the run; the open one goes on to its end. `reason` is one line for people.
absl::Status Pause(EngineState& run, const std::string& reason);

// Evaluates the head, unless that was done or is under way.
absl::Status EvaluateHead(EngineState& run);

// Counts an update of the client that will never be applied and folds forward.
absl::Status CountNotApplied(EngineState& run, int64_t client);

// Answers an update that belongs to no open round with the verdict on it (VerdictOn, coordinator/sessions.cc).
absl::Status AnswerLate(EngineState& run, Session& session, const Update& update);

// Refuses an update and ends its session, which should check in again: an event, and a failure of the client.
absl::Status RefuseUpdate(EngineState& run, Session& session, const std::string& kind, const std::string& detail,
                          const std::string& answer);

// The updates of the closed round give no result: gives it up. Nothing is lost, but where training diverged, further
// rounds only cost traffic. After kMostUnusableRounds of them in a row an operator decides: what made the rounds
// unusable may be over, or a client to set aside.
Transition GiveUp(EngineState& run, const std::string& reason);

// The round's updates are applied, which is durable with the batch: notes that, and tells their clients.
void TellApplied(EngineState& run);

// Sends the message that leads to the head to all sessions that are a version behind. A message that is too large to be
// sent goes to nobody: they get the checkpoint of this model. A client that has not read what it was sent before gets
// the log, or a checkpoint, once it has; one that works in a buffered run once it has delivered.
absl::Status SpreadHead(EngineState& run, const std::shared_ptr<const std::string>& message);

// Has the head's checkpoint written when it is due.
void BeginCheckpointIfDue(EngineState& run);

// Gives the open or closed round up: its updates are NOT_APPLIED and fold forward in their clients' residuals. In a
// buffered run, what an open round received goes to the next one, if there will be one.
absl::Status Abort(EngineState& run, const std::string& reason);

}  // namespace terse

#endif  // TERSE_COORDINATOR_PHASES_PHASE_H_
