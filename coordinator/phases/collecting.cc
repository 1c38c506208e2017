// Collecting: hands out the round's work and gathers updates until the cohort's are in, or a quorum at the deadline.
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coordinator/phases/phases.h"
#include "coordinator/selection.h"
#include "coordinator/sessions.h"
#include "coordinator/set_aside.h"
#include "core/fault.h"
#include "core/status.h"

namespace terse {
namespace {

class Collecting : public Phase {
 public:
  PhaseName name() const override { return PhaseName::kCollecting; }

  Transition Enter(RunContext& run) override {
    TERSE_FAILPOINT("coordinator.round.opened");
    entered_us_ = looked_us_ = run.Now();
    TERSE_RETURN_IF_ERROR(Draw(run));
    bool first = true;
    for (auto& [id, session] : run.sessions) {
      Assign(run, session);
      session.link->Flush();  // also what the round before had to say
      if (std::exchange(first, false)) TERSE_FAILPOINT("coordinator.announce.first");
    }
    return absl::nullopt;
  }

  Transition OnReady(RunContext& run, Session& session) override { return Stay(Invite(run)); }
  Transition OnLeft(RunContext& run) override { return Stay(Invite(run)); }

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
    TERSE_RETURN_IF_ERROR(Accept(run, session, std::move(update)));
    return CloseIfDue(run);
  }

  Transition OnTick(RunContext& run) override {
    // Who would be invited now could not deliver in time, and that would count as its failure.
    TERSE_ASSIGN_OR_RETURN(const absl::optional<PhaseName> next, CloseIfDue(run));
    return next.has_value() ? Transition(next) : Stay(Invite(run));
  }

  Transition OnStop(RunContext& run) override {
    TERSE_RETURN_IF_ERROR(Abort(run, run.ending->reason));
    return PhaseName::kFinishing;
  }

  Transition OnAbort(RunContext& run, const std::string& reason) override {
    TERSE_RETURN_IF_ERROR(Abort(run, reason));
    return PhaseName::kSelecting;
  }

  int64_t DeadlineMicros(const RunContext& run) const override {
    return looked_us_ < Deadline(run) ? Deadline(run) : GraceEnd(run);
  }

 private:
  static Transition Stay(const absl::Status& status) {
    return status.ok() ? Transition(absl::nullopt) : Transition(status);
  }

  int64_t Deadline(const RunContext& run) const {
    return entered_us_ + static_cast<int64_t>(run.config->rounds.deadline_seconds * 1e6);
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
      if (Assign(run, session)) session.link->Flush();
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

  // Whether there was anything to hand out.
  static bool Assign(RunContext& run, Session& session) {
    const bool invited = run.invited.contains(session.client) && !run.received.contains(session.client);
    if (!invited || !run.CanWork(session)) return false;
    session.assigned_round = run.round;
    session.steps_done = 0;
    session.link->SendLater(Assignment{run.round, run.head.version, run.config->train.local_steps});
    return true;
  }

  // A repeated update is answered again and counted once. Whoever sends again has lost the connection that the receipt
  // was to travel on, and is told at once.
  static absl::Status AnswerRepeated(RunContext& run, Session& session, const Update& update, ReceivedUpdate& known) {
    if (known.update.update_id != update.update_id) {
      return RefuseUpdate(run, session, "update_conflict", absl::StrCat("two updates for round ", update.round),
                          "another update of this client for this round was accepted before; wait for its verdict");
    }
    if (Mutated(Mutant::kNoDeduplication)) ++known.count;
    session.owes_round = 0;
    session.link->Send(Receipt{update.update_id});
    return absl::OkStatus();
  }

  static absl::Status Accept(RunContext& run, Session& session, Update update) {
    const Id128 id = update.update_id;
    run.book.AddUp(session.client, update.message.size(), /*dense_bytes=*/0);
    run.received.emplace(session.client, ReceivedUpdate{std::move(update), session.samples});
    TERSE_FAILPOINT("coordinator.update.accepted");
    // On the connection that carried the update first, the receipt can wait for what follows.
    const bool sent_again = session.owes_round != 0;
    session.owes_round = 0;
    sent_again ? session.link->Send(Receipt{id}) : session.link->SendLater(Receipt{id});
    return absl::OkStatus();
  }

  // With the cohort at once; with a quorum from the deadline on; without one it is given up when the grace is over.
  Transition CloseIfDue(RunContext& run) {
    const RoundPolicy& policy = run.config->rounds;
    const int64_t received = static_cast<int64_t>(run.received.size());
    if (received >= policy.cohort) return Close(run);
    looked_us_ = run.Now();
    if (looked_us_ < Deadline(run)) return absl::nullopt;
    const bool quorum = received >= policy.quorum;
    if (!quorum && looked_us_ < GraceEnd(run)) return absl::nullopt;
    const std::vector<int64_t> absent = Absent(run);
    const int64_t round = run.round;
    Transition next = PhaseName::kSelecting;
    if (quorum) {
      next = Close(run);
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

  static Transition Close(RunContext& run) {
    std::vector<ChosenUpdate> chosen;
    for (const auto& [client, received] : run.received) {
      const Update& update = received.update;
      TERSE_ASSIGN_OR_RETURN(const ClientRecord record, run.store->GetClient(client));
      chosen.push_back({client, update.update_id, record.last_applied, HashBytes(update.message),
                        static_cast<int64_t>(update.message.size()), update.train_us, update.loss, received.samples});
    }
    TERSE_FAILPOINT("coordinator.close.before");
    TERSE_RETURN_IF_ERROR(run.store->CloseRound(run.round, chosen, run.Now()));
    TERSE_FAILPOINT("coordinator.close.done");
    return PhaseName::kCommitting;
  }

  int64_t entered_us_ = 0;
  int64_t looked_us_ = 0;  // when it was last asked whether to close: time goes on until the timer is asked for
};

}  // namespace

std::unique_ptr<Phase> MakeCollecting() { return std::make_unique<Collecting>(); }

}  // namespace terse
