#include "relay/cohort_desk.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/status.h"
#include "terse/v1/run_config.pb.h"

namespace terse {
namespace {

constexpr absl::Duration kPoll = absl::Milliseconds(100);
// The order is said again from time to time: a run that was suspended meanwhile has forgotten it.
constexpr absl::Duration kOrderAgain = absl::Seconds(5);

}  // namespace

void CohortDesk::SetSealed(const SealedCohort& sealed) {
  {
    absl::MutexLock lock(&mutex_);
    sealed_ = sealed;
  }
  SettleTaken();
}

void CohortDesk::Begin(RunRegistry* runs, std::function<void(const absl::Status&)> on_failure) {
  runs_ = runs;
  on_failure_ = std::move(on_failure);
}

absl::StatusOr<int64_t> CohortDesk::SealedRound(Id128 lineage) {
  absl::MutexLock lock(&mutex_);
  if (stage_ == Stage::kTaken) return absl::UnavailableError("the result of a round is being sealed");
  if (stage_ == Stage::kThere) stage_ = Stage::kAwaited;
  return sealed_.lineage == lineage ? sealed_.round : 0;
}

void CohortDesk::HandUp(CohortResult result) {
  absl::MutexLock lock(&mutex_);
  if (stage_ != Stage::kAwaited) return;  // the order was withdrawn, which the engine hears next
  result_ = std::move(result);
  stage_ = Stage::kThere;
}

void CohortDesk::Decline(const std::string& reason) {
  absl::MutexLock lock(&mutex_);
  declined_ = reason;
}

RunHost* CohortDesk::Run() const {
  for (RunHost* run : runs_->runs()) {
    if (run->family() == welcome_.family) return run;
  }
  return nullptr;
}

bool CohortDesk::Sleep() const {
  absl::SleepFor(kPoll);
  return !stop_->load();
}

void CohortDesk::Post(Event event) const {
  RunHost* const run = Run();
  if (run == nullptr) return;
  do {
    absl::StatusOr<std::shared_ptr<EventLoop>> loop = run->Loop();
    if (loop.ok()) return (*loop)->Post(std::move(event));
    if (run->condition() == RunHost::Condition::kDown) return;
  } while (Sleep());
}

absl::Status CohortDesk::UseRun(const std::function<absl::Status(const RunHost::Live&)>& use) const {
  RunHost* const run = Run();
  if (run == nullptr) return absl::NotFoundError("the relay has no run yet");
  absl::Status status;
  do {
    status =
        run->condition() == RunHost::Condition::kSuspended ? absl::UnavailableError(run->Trouble()) : run->Use(use);
    if (!absl::IsUnavailable(status)) return status;
  } while (Sleep());
  return absl::CancelledError("the relay stops");
}

void CohortDesk::Join(const Welcome& welcome) {
  welcome_ = welcome;
  for (RunHost* run : runs_->runs()) {
    if (run->family() == welcome.family) continue;
    const absl::Status deleted = runs_->Delete(run->name(), /*force=*/true).status();
    if (!deleted.ok()) return on_failure_(Annotate(deleted, "ending the run before"));
  }
}

void CohortDesk::TakeModel(int64_t version, std::vector<float> weights) {
  SettleTaken();
  if (Run() == nullptr) {
    v1::RunConfig config;
    if (!config.ParseFromString(welcome_.wire_config)) return on_failure_(absl::InternalError("no configuration"));
    const absl::Status made =
        runs_->CreateRelay(config, module_, {SerializeRelayFacts(welcome_), std::move(weights), version}).status();
    if (!made.ok()) on_failure_(made);
    return;
  }
  const absl::Status replaced = UseRun([&](const RunHost::Live& live) -> absl::Status {
    absl::Status status;
    TERSE_RETURN_IF_ERROR(live.loop->Call([&] { status = live.engine->ReplaceModel(version, weights); }));
    return status;
  });
  if (!replaced.ok() && !absl::IsCancelled(replaced)) on_failure_(replaced);
}

void CohortDesk::TakeMessage(const Downstream& message) {
  SettleTaken();
  Post(ModelMoved{message});
}

bool CohortDesk::Reaches(int64_t version) const {
  const RunHost* const run = Run();
  return run != nullptr && run->View().head.version >= version;
}

void CohortDesk::Finish(const std::string& reason) { Post(RunEndedAbove{reason}); }

bool CohortDesk::HasClients() const {
  const RunHost* const run = Run();
  return run == nullptr || static_cast<int64_t>(run->View().sessions.size()) >= run->config().rounds.quorum;
}

void CohortDesk::Withdraw(const std::string& reason) {
  {
    absl::MutexLock lock(&mutex_);
    stage_ = Stage::kNone;
  }
  Post(OrderWithdrawn{reason});
  // Once the engine has heard it, no result of this order comes that could be taken for the next one's.
  RunHost* const run = Run();
  if (run == nullptr) return;
  const absl::StatusOr<std::shared_ptr<EventLoop>> loop = run->Loop();
  if (loop.ok()) (*loop)->Call([] {}).IgnoreError();  // a loop that has ended gives no result either
}

absl::StatusOr<CohortResult> CohortDesk::MakeRound(const RoundOrder& order, const std::function<bool()>& keep_going) {
  SettleTaken();
  RoundOrder coded = order;
  coded.plan.choice = choice_;
  {
    absl::MutexLock lock(&mutex_);
    stage_ = Stage::kAwaited;
    declined_.clear();
  }
  absl::Time ordered = absl::InfinitePast();
  absl::Time complete = absl::Now();
  while (keep_going()) {
    const absl::Time now = absl::Now();
    if (now - ordered >= kOrderAgain) {
      Post(RoundOrdered{coded});
      ordered = now;
    }
    if (Run() == nullptr) {
      Withdraw("the run here was deleted");
      return absl::UnavailableError("the relay has no run any more, and gets it anew");
    }
    if (HasClients()) complete = now;
    if (now - complete >= kMostLacking) {
      Withdraw("too few clients are here");
      return absl::UnavailableError("too few of the relay's clients are here for a round");
    }
    std::string declined;
    {
      absl::MutexLock lock(&mutex_);
      if (!mutex_.AwaitWithTimeout(absl::Condition(this, &CohortDesk::IsAnswered), kPoll)) continue;
      if (stage_ == Stage::kThere) {
        stage_ = Stage::kTaken;
        CohortResult taken = std::move(result_);
        taken_ = {Run()->lineage(), taken.round};
        return taken;
      }
      declined = declined_;
    }
    Withdraw("the order was declined");
    return absl::UnavailableError(declined);
  }
  Withdraw("the relay stops");
  return absl::CancelledError("the relay stops");
}

SealedCohort CohortDesk::taken() const {
  absl::MutexLock lock(&mutex_);
  return stage_ == Stage::kTaken ? taken_ : sealed_;
}

void CohortDesk::Seal() {
  {
    absl::MutexLock lock(&mutex_);
    if (stage_ != Stage::kTaken) return;
    sealed_ = taken_;
  }
  SettleTaken();
}

void CohortDesk::SettleTaken() {
  bool sealed = false;
  int64_t round = 0;
  {
    absl::MutexLock lock(&mutex_);
    if (stage_ != Stage::kTaken) return;
    stage_ = Stage::kNone;
    round = taken_.round;
    sealed = sealed_.lineage == taken_.lineage && sealed_.round >= round;
  }
  Post(HandedUp{round, sealed ? absl::OkStatus() : absl::AbortedError("the relay could not seal the result")});
}

absl::optional<BelowFacts> CohortDesk::Below() const {
  RunHost* const run = Run();
  if (run == nullptr) return absl::nullopt;
  BelowFacts below;
  const absl::Status read = run->Use([&](const RunHost::Live& live) -> absl::Status {
    TERSE_ASSIGN_OR_RETURN(const RunTotals totals, live.store->Totals());
    TERSE_ASSIGN_OR_RETURN(const std::vector<BelowRecord> relays, live.store->Below());
    std::set<int64_t> connected;
    for (const SessionView& session : live.engine->View().sessions) connected.insert(session.client);
    for (const BelowRecord& relay : relays) {
      BelowFacts facts = relay.facts;
      if (connected.erase(relay.client) == 0) facts.clients = 0;
      below += facts;
    }
    below += {static_cast<int64_t>(connected.size()), totals.payload_bytes_up, totals.wire_bytes_up,
              totals.payload_bytes_down, totals.wire_bytes_down};
    return absl::OkStatus();
  });
  return read.ok() ? absl::make_optional(below) : absl::nullopt;  // it is said again with each update
}

int64_t CohortDesk::samples() const {
  int64_t samples = 0;
  RunHost* const run = Run();
  if (run == nullptr) return 1;
  run->Use([&](const RunHost::Live& live) -> absl::Status {
       TERSE_ASSIGN_OR_RETURN(const std::vector<ClientRecord> clients, live.store->Clients());
       for (const ClientRecord& client : clients) samples += client.samples;
       return absl::OkStatus();
     })
      .IgnoreError();  // it is said again with each update
  return std::max<int64_t>(1, samples);
}

}  // namespace terse
