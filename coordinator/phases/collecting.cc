// Collecting: hands out the round's work and gathers updates until the cohort's are in, or a quorum at the deadline.
#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compression/choice_codec.h"
#include "coordinator/phases/intake.h"
#include "coordinator/phases/phases.h"
#include "coordinator/selection.h"
#include "coordinator/sessions.h"
#include "coordinator/set_aside.h"
#include "core/fault.h"
#include "core/status.h"
#include "storage/event_kinds.h"

namespace terse {
namespace {

class Collecting : public Intake {
 public:
  Transition Enter(RunContext& run) override {
    TERSE_RETURN_IF_ERROR(Draw(run));
    return Stay(Begin(run, [&run](Session& session) {
      AssignIfInvited(run, session);
      return absl::OkStatus();
    }));
  }

  Transition OnReady(RunContext& run, Session& session) override { return Stay(Invite(run)); }
  // Nobody else may be left to wait for.
  Transition OnLeft(RunContext& run) override { return CloseOrInvite(run); }

  Transition OnUpdate(RunContext& run, Session& session, Update update) override {
    if (update.round != run.round) {
      TERSE_RETURN_IF_ERROR(AnswerLate(run, session, update));
      return Stay(Invite(run));  // the client is free for new work
    }
    const auto existing = run.received.find(session.client);
    if (existing != run.received.end()) return Stay(AnswerRepeated(run, session, update, existing->second));
    if (!Follows(run, session, update)) {
      TERSE_RETURN_IF_ERROR(AnswerLate(run, session, update));
      return Stay(Invite(run));
    }
    TERSE_ASSIGN_OR_RETURN(const std::string objection, WhyNotTaken(run, session, update));
    if (!objection.empty()) {
      TERSE_RETURN_IF_ERROR(TurnAway(run, session, update, objection));
      return Stay(Invite(run));
    }
    if (run.controller != nullptr && ChoiceOf(update.message) != run.plan.choice) {
      return Stay(RefuseUpdate(run, session, event::kUpdateRejected, "another coding than the round's",
                               "the update is not coded as its assignment said; check in again"));
    }
    TERSE_RETURN_IF_ERROR(Accept(run, session, std::move(update), /*staleness=*/0));
    return CloseIfDue(run);
  }

  Transition OnTick(RunContext& run) override { return CloseOrInvite(run); }

  int64_t DeadlineMicros(const RunContext& run) const override {
    return std::min(CompleteMicros(run), looked_us_ < Deadline(run) ? Deadline(run) : GraceEnd(run));
  }

 protected:
  bool HasPlaces(const RunContext& run) const override { return FreePlaces(run) > 0; }

 private:
  // A client that was invited to a round that is due could not deliver in time, and that would count as its failure.
  Transition CloseOrInvite(RunContext& run) {
    TERSE_ASSIGN_OR_RETURN(const absl::optional<PhaseName> next, CloseIfDue(run));
    return next.has_value() ? Transition(next) : Stay(Invite(run));
  }

  // Whether it did: the client is invited, has not delivered and can work.
  static bool AssignIfInvited(RunContext& run, Session& session) {
    const bool due = run.invited.contains(session.client) && !run.received.contains(session.client);
    if (!due || !run.CanWork(session)) return false;
    Assign(run, session);
    return true;
  }

  int64_t GraceEnd(const RunContext& run) const {
    return Deadline(run) + static_cast<int64_t>(run.config->rounds.grace_seconds * 1e6);
  }

  // Places that nobody holds: a client that was invited holds its place while it is connected, or once it delivered.
  static int64_t FreePlaces(const RunContext& run) {
    if (run.config->rounds.selection == Selection::kAll) return std::numeric_limits<int64_t>::max();
    int64_t held = static_cast<int64_t>(run.received.size());
    for (const auto& [id, session] : run.sessions) {
      held += !session.refused && run.invited.contains(session.client) && !run.received.contains(session.client);
    }
    return run.config->rounds.invited - held;
  }

  // Hands out work for the free places, and again to invited clients that came back without what they began.
  static absl::Status Invite(RunContext& run) {
    TERSE_RETURN_IF_ERROR(Draw(run));
    for (auto& [id, session] : run.sessions) {
      if (AssignIfInvited(run, session)) session.link->Flush();
    }
    return absl::OkStatus();
  }

  // Fills the free places.
  static absl::Status Draw(RunContext& run) {
    if (const int64_t free = FreePlaces(run); free > 0) {
      TERSE_ASSIGN_OR_RETURN(const std::vector<Candidate> candidates, Candidates(run));
      const RunConfig& config = *run.config;
      for (int64_t client : DrawCohort(config.rounds.selection, candidates, free, config.seed, run.round)) {
        run.invited.insert(client);
      }
    }
    return absl::OkStatus();
  }

  static absl::StatusOr<std::vector<Candidate>> Candidates(const RunContext& run) {
    std::vector<Candidate> candidates;
    for (const auto& [id, session] : run.sessions) {
      const int64_t client = session.client;
      if (!run.CanWork(session) || run.received.contains(client) || run.invited.contains(client)) continue;
      candidates.push_back({client, session.samples, 1});
      if (run.config->rounds.selection != Selection::kReliability) continue;
      TERSE_ASSIGN_OR_RETURN(const ClientRecord record, run.store->GetClient(client));
      candidates.back().reliability = record.reliability;
    }
    return candidates;
  }

  // With the cohort at once, and with a quorum when nobody else is on the way; with one from the deadline on; without
  // one it is given up when the grace is over.
  Transition CloseIfDue(RunContext& run) {
    const RoundPolicy& policy = run.config->rounds;
    const int64_t received = static_cast<int64_t>(run.received.size());
    if (received >= policy.cohort) return CloseRound(run);
    if (!DeadlinePassed(run)) return IsComplete(run) ? CloseRound(run) : absl::nullopt;
    const bool quorum = received >= policy.quorum;
    if (!quorum && looked_us_ < GraceEnd(run)) return absl::nullopt;
    const std::vector<int64_t> absent = Absent(run);
    const int64_t round = run.round;
    Transition next = PhaseName::kSelecting;
    if (quorum) {
      next = CloseRound(run);
    } else {
      TERSE_RETURN_IF_ERROR(Abort(run, absl::StrCat(received, " of ", policy.quorum,
                                                    " updates that the quorum needs came before the deadline")));
    }
    if (!next.ok()) return next;
    for (int64_t client : absent) {
      TERSE_RETURN_IF_ERROR(RecordFailure(run, client, absl::StrCat("no update of round ", round, " by its deadline")));
    }
    return next;
  }

  static std::vector<int64_t> Absent(const RunContext& run) {
    std::vector<int64_t> absent;
    for (int64_t client : run.invited) {
      if (!run.received.contains(client)) absent.push_back(client);
    }
    return absent;
  }
};

}  // namespace

std::unique_ptr<Phase> MakeCollecting() { return std::make_unique<Collecting>(); }

}  // namespace terse
