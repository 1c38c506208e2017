// Collecting: hands out the round's work and gathers updates until the cohort's are in, or a quorum at the deadline.
#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coordinator/phases/intake.h"
#include "coordinator/phases/phases.h"
#include "coordinator/selection.h"
#include "coordinator/set_aside.h"
#include "core/fault.h"
#include "core/status.h"

namespace terse {
namespace {

class Collecting : public Intake {
 public:
  Transition Enter(EngineState& run) override {
    TERSE_RETURN_IF_ERROR(Begin(run));
    return Stay(Invite(run));
  }

  Transition OnReady(EngineState& run, Session& session) override { return Stay(Invite(run)); }

  int64_t DeadlineMicros(const EngineState& run) const override {
    return std::min(CompleteMicros(run), looked_us_ < Deadline(run) ? Deadline(run) : GraceEnd(run));
  }

 protected:
  bool HasPlaces(const EngineState& run) const override { return FreePlaces(run) > 0; }

  // A client that was invited to a round that is due could not deliver in time, and that would count as its failure.
  Transition Proceed(EngineState& run) override {
    TERSE_ASSIGN_OR_RETURN(const absl::optional<PhaseName> next, CloseIfDue(run));
    return next.has_value() ? Transition(next) : Stay(Invite(run));
  }

 private:
  int64_t GraceEnd(const EngineState& run) const {
    return Deadline(run) + static_cast<int64_t>(run.config->rounds.grace_seconds * 1e6);
  }

  // Places that nobody holds: a client that was invited holds its place while it is connected, or once it delivered.
  static int64_t FreePlaces(const EngineState& run) {
    if (run.config->rounds.selection == Selection::kAll) return std::numeric_limits<int64_t>::max();
    const int64_t waited_for =
        run.fleet.groups().Count([](Standing s) { return s.active && s.invited && !s.delivered; });
    return run.config->rounds.invited - run.round.size() - waited_for;
  }

  // Hands out work for the free places, and again to invited clients that came back without what they began.
  static absl::Status Invite(EngineState& run) {
    const int64_t free = FreePlaces(run);
    if (free > 0) {
      for (int64_t client : DrawCohort(LotteryOf(run), free, run.config->seed, run.round.number())) {
        run.fleet.SetInvited(client, true);
      }
    }
    for (int64_t client : run.fleet.groups().Select([](Standing s) { return s.idle && s.invited && !s.delivered; })) {
      Assign(run, *run.fleet.Of(client));
    }
    return absl::OkStatus();
  }

  static bool IsCandidate(Standing s) { return s.idle && !s.invited && !s.delivered; }

  static Lottery LotteryOf(const EngineState& run) {
    Lottery lottery;
    lottery.selection = run.config->rounds.selection;
    lottery.clients = run.fleet.size();
    lottery.candidates = run.fleet.groups().Count(IsCandidate);
    lottery.most_samples = run.fleet.most_samples();
    lottery.candidate = [&fleet = run.fleet](int64_t client) -> absl::optional<Candidate> {
      const Member& member = fleet.at(client);
      if (!IsCandidate(member.standing)) return absl::nullopt;
      return Candidate{client, member.session->samples, member.reliability};
    };
    lottery.all = [&fleet = run.fleet] { return fleet.groups().Select(IsCandidate); };
    return lottery;
  }

  // With the cohort at once, and with a quorum when nobody else is on the way; with one from the deadline on; without
  // one it is given up when the grace is over.
  Transition CloseIfDue(EngineState& run) {
    const RoundPolicy& policy = run.config->rounds;
    const int64_t received = run.round.size();
    if (received >= policy.cohort) return CloseRound(run);
    if (!DeadlinePassed(run)) return IsComplete(run) ? CloseRound(run) : absl::nullopt;
    const bool quorum = received >= policy.quorum;
    if (!quorum && looked_us_ < GraceEnd(run)) return absl::nullopt;
    const auto absent = run.fleet.groups().Select([](Standing s) { return s.invited && !s.delivered; });
    const int64_t round = run.round.number();
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
};

}  // namespace

std::unique_ptr<Phase> MakeCollecting() { return std::make_unique<Collecting>(); }

}  // namespace terse
