// Collecting: hands out the round's work and gathers updates until all of the cohort, or a quorum at the deadline.
#include <string>

#include "absl/strings/str_cat.h"
#include "coordinator/phases/phases.h"
#include "coordinator/sessions.h"
#include "core/status.h"

namespace terse {
namespace {

class Collecting : public Phase {
 public:
  PhaseName name() const override { return PhaseName::kCollecting; }

  Transition Enter(RunContext& run) override {
    entered_us_ = run.Now();
    for (auto& [id, session] : run.sessions) {
      Assign(run, session);
      session.link->Flush();
    }
    return absl::nullopt;
  }

  Transition OnReady(RunContext& run, Session& session) override {
    Assign(run, session);
    return absl::nullopt;
  }

  Transition OnUpdate(RunContext& run, Session& session, Update update) override {
    if (update.round != run.round) {
      TERSE_RETURN_IF_ERROR(AnswerLate(run, session, update));
      // A client lets work pass while an update of an earlier round is sealed; now that one is settled.
      session.assigned_round = 0;
      Assign(run, session);
      return absl::nullopt;
    }
    const auto existing = run.received.find(session.client);
    const bool repeated = existing != run.received.end();
    if (repeated && existing->second.update_id != update.update_id) {
      Refuse(session, "another update of this client for this round was accepted before; wait for its verdict",
             /*retry=*/true);
      TERSE_RETURN_IF_ERROR(
          run.Note("update_conflict", session.client, absl::StrCat("two updates for round ", update.round)));
      return absl::nullopt;
    }
    // A repeated update is answered again and counted once.
    const Id128 id = update.update_id;
    if (!repeated) {
      if (id != MakeUpdateId(run.lineage, update.round, session.client, session.last_applied, update.message)) {
        return Phase::OnUpdate(run, session, std::move(update));
      }
      run.book.AddUp(session.client, update.message.size(), /*dense_bytes=*/0);
      run.received.emplace(session.client, std::move(update));
    }
    // On the connection that carried the update first, the receipt can wait for what follows; a client that sends again
    // has lost that connection and is told at once.
    const bool sent_again = repeated || session.owes_round != 0;
    session.owes_round = 0;
    sent_again ? session.link->Send(Receipt{id}) : session.link->SendLater(Receipt{id});
    const int64_t wanted = run.config->rounds.clients;
    return static_cast<int64_t>(run.received.size()) >= wanted ? Close(run) : Transition(absl::nullopt);
  }

  Transition OnTick(RunContext& run) override {
    if (run.Now() < DeadlineMicros(run)) return absl::nullopt;
    if (static_cast<int64_t>(run.received.size()) >= run.config->rounds.quorum) return Close(run);
    TERSE_RETURN_IF_ERROR(Abort(run, absl::StrCat(run.received.size(), " of ", run.config->rounds.quorum,
                                                  " updates that the quorum needs came before the deadline")));
    return PhaseName::kSelecting;
  }

  Transition OnStop(RunContext& run) override {
    TERSE_RETURN_IF_ERROR(Abort(run, "stopped by the operator"));
    return PhaseName::kFinishing;
  }

  int64_t DeadlineMicros(const RunContext& run) const override {
    return entered_us_ + static_cast<int64_t>(run.config->rounds.deadline_seconds * 1e6);
  }

 private:
  // No new work while the client still owes the update of this round.
  static void Assign(RunContext& run, Session& session) {
    const bool busy = session.owes_round == run.round || session.assigned_round == run.round;
    if (session.version != run.head.version || busy || run.received.contains(session.client)) return;
    session.assigned_round = run.round;
    session.steps_done = 0;
    session.link->Send(Assignment{run.round, run.head.version, run.config->train.local_steps});
  }

  static Transition Close(RunContext& run) {
    std::vector<ChosenUpdate> chosen;
    for (const auto& [client, update] : run.received) {
      TERSE_ASSIGN_OR_RETURN(const ClientRecord record, run.store->GetClient(client));
      chosen.push_back({client, update.update_id, record.last_applied, HashBytes(update.message),
                        static_cast<int64_t>(update.message.size()), update.train_us, update.loss});
    }
    TERSE_RETURN_IF_ERROR(run.store->CloseRound(run.round, chosen, run.Now()));
    return PhaseName::kCommitting;
  }

  int64_t entered_us_ = 0;
};

}  // namespace

std::unique_ptr<Phase> MakeCollecting() { return std::make_unique<Collecting>(); }

}  // namespace terse
