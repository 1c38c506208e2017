#include "tersectl/follow/follower.h"

#include <algorithm>
#include <set>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/status.h"
#include "tersectl/restarts.h"

namespace terse {
namespace {

constexpr absl::Duration kFollowInterval = absl::Milliseconds(500);
constexpr absl::Duration kLongestWait = absl::Minutes(1);
constexpr uint64_t kMostRounds = 256;
// The times of so many clients at most are waiting, unless a single round has more.
constexpr uint64_t kMostTraces = 2000;
constexpr uint32_t kEventsPerPage = 1000;

// Whether a failed call is about one run, as while its disk is in trouble, when a file of it is damaged, or after it
// was deleted, and not about the coordinator.
bool IsOfOneRun(const absl::Status& status) {
  return absl::IsFailedPrecondition(status) || absl::IsNotFound(status) || absl::IsOutOfRange(status) ||
         absl::IsDataLoss(status);
}

std::string SubjectOf(const std::string& run) { return absl::StrCat("run '", run, "'"); }

}  // namespace

absl::Status Follower::Follow(absl::Duration patience, absl::FunctionRef<void()> heard) {
  while (true) {
    TERSE_RETURN_IF_ERROR(LookAtRuns(heard));
    if (!only_.empty()) {
      TERSE_ASSIGN_OR_RETURN(const bool is_over, IsOver(patience));
      if (is_over) return absl::OkStatus();
    }
    if (stop_->WaitForNotificationWithTimeout(kFollowInterval)) return absl::CancelledError("told to end");
  }
}

absl::Status Follower::LookAtRuns(absl::FunctionRef<void()> heard) {
  TERSE_ASSIGN_OR_RETURN(const v1::RunsReply reply, client_->ListRuns());
  heard();
  std::set<std::string> names;
  for (const v1::Run& run : reply.runs()) {
    if (!only_.empty() && run.name() != only_) continue;
    names.insert(run.name());
    const std::string lineage = absl::BytesToHexString(run.lineage());
    auto it = runs_.find(run.name());
    if (it != runs_.end() && it->second.lineage != lineage) {
      Retire(std::move(it->second));
      runs_.erase(it);
      it = runs_.end();
    }
    if (it == runs_.end()) {
      it = runs_.emplace(run.name(), Followed()).first;
      it->second.name = run.name();
      it->second.lineage = lineage;
      it->second.is_new = has_looked_;
    }
    TERSE_RETURN_IF_ERROR(LookAt(run, &it->second));
  }
  if (!has_found_earlier_ && absl::Now() >= earlier_.retry) LookForEarlier(reply);
  if (names.empty() && !only_.empty() && !has_looked_ && gone_.empty()) {
    return absl::NotFoundError(
        absl::StrCat("the coordinator has no run '", only_, "'; `tersectl runs` lists its runs"));
  }
  has_looked_ = true;
  for (auto it = runs_.begin(); it != runs_.end();) {
    if (names.count(it->first) > 0) {
      ++it;
      continue;
    }
    Retire(std::move(it->second));
    it = runs_.erase(it);
  }
  for (Followed& gone : gone_) Deliver(&gone);
  gone_.erase(std::remove_if(gone_.begin(), gone_.end(), [](const Followed& gone) { return gone.is_done; }),
              gone_.end());
  return absl::OkStatus();
}

void Follower::LookForEarlier(const v1::RunsReply& reply) {
  std::set<std::string> served;
  for (const v1::Run& run : reply.runs()) served.insert(absl::BytesToHexString(run.lineage()));
  for (const Followed& gone : gone_) served.insert(gone.lineage);
  absl::StatusOr<std::vector<EarlierRun>> earlier = target_->FindEarlier(served);
  Note(earlier.status(), "the search for deleted runs", &earlier_);
  if (!earlier.ok()) return;
  has_found_earlier_ = true;
  for (EarlierRun& run : *earlier) {
    if (!only_.empty() && run.name != only_) continue;
    Followed followed;
    followed.name = std::move(run.name);
    followed.lineage = std::move(run.lineage);
    followed.tracker = std::move(run.tracker);
    Retire(std::move(followed));
  }
}

absl::Status Follower::LookAt(const v1::Run& run, Followed* followed) {
  const bool has_ended = HasEnded(run.state());
  if (has_ended) followed->ended = std::min(followed->ended, absl::Now());
  if (followed->is_done || absl::Now() < followed->place.retry) return absl::OkStatus();
  client_->Select(run.name());
  const bool is_readable = absl::Now() >= followed->source.retry;
  if (followed->tracker == nullptr) {
    if (!is_readable) return absl::OkStatus();
    TERSE_RETURN_IF_ERROR(PassOver(Begin(followed), followed));
    if (followed->tracker == nullptr || followed->is_done) return absl::OkStatus();
  }
  if (followed->has_pending && (!Deliver(followed) || followed->is_done)) return absl::OkStatus();
  followed->tracker->TakeRun(run, absl::Now());
  if (is_readable) TERSE_RETURN_IF_ERROR(PassOver(Advance(has_ended, followed), followed));
  // The place still hears that the run is in trouble.
  if (!followed->source.status.ok()) Deliver(followed);
  return absl::OkStatus();
}

absl::Status Follower::PassOver(const absl::Status& looked, Followed* followed) {
  if (!looked.ok() && !IsOfOneRun(looked)) return looked;
  Note(looked, SubjectOf(followed->name), &followed->source);
  return absl::OkStatus();
}

absl::Status Follower::Begin(Followed* followed) {
  TERSE_ASSIGN_OR_RETURN(const v1::Status status, client_->GetStatus());
  absl::StatusOr<std::unique_ptr<RunTracker>> tracker = target_->Begin(status, followed->is_new);
  Note(tracker.status(), SubjectOf(followed->name), &followed->place);
  if (!tracker.ok()) return absl::OkStatus();
  followed->tracker = *std::move(tracker);
  followed->rounds = followed->tracker->RoundsAfter();
  followed->events = followed->tracker->EventsAfter();
  followed->is_done = followed->tracker->IsComplete();
  return absl::OkStatus();
}

absl::Status Follower::Advance(bool has_ended, Followed* followed) {
  bool may_be_more = true;
  while (may_be_more && !stop_->HasBeenNotified()) {
    TERSE_ASSIGN_OR_RETURN(const bool more_rounds, TakeRounds(followed));
    TERSE_ASSIGN_OR_RETURN(const bool more_events, TakeEvents(followed));
    may_be_more = more_rounds || more_events;
    if (has_ended && !may_be_more) {
      TERSE_ASSIGN_OR_RETURN(const v1::Status status, client_->GetStatus());
      followed->tracker->TakeEnd(RunEnd{status.state(), status.reason()});
      followed->end_taken = true;
    }
    if (!Deliver(followed)) break;
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> Follower::TakeRounds(Followed* followed) {
  if (!followed->rounds.has_value()) return false;
  const uint32_t traced = followed->tracker->TracedClients();
  const uint64_t page = traced == 0 ? kMostRounds : std::clamp<uint64_t>(kMostTraces / traced, 1, kMostRounds);
  TERSE_ASSIGN_OR_RETURN(const std::vector<v1::Round> rounds, client_->ListCompleteRounds(*followed->rounds + 1, page));
  for (const v1::Round& round : rounds) {
    v1::TracesReply traces;
    if (traced > 0) {
      TERSE_ASSIGN_OR_RETURN(traces, client_->ListTraces(round.id(), traced));
    }
    followed->tracker->TakeRound(round, traces);
    followed->rounds = round.id();
  }
  return rounds.size() == page;
}

absl::StatusOr<bool> Follower::TakeEvents(Followed* followed) {
  if (!followed->events.has_value()) return false;
  if (followed->events == kOnlyNewEvents) {
    TERSE_ASSIGN_OR_RETURN(const v1::EventsReply newest, client_->ListEvents(1));
    followed->events = newest.events().empty() ? 0 : newest.events(0).id();
    followed->tracker->SkipEventsTo(*followed->events);
  }
  TERSE_ASSIGN_OR_RETURN(const v1::EventsReply reply, client_->ListEventsAfter(*followed->events, kEventsPerPage));
  for (const v1::Event& event : reply.events()) {
    followed->tracker->TakeEvent(event);
    followed->events = event.id();
  }
  return reply.events_size() == static_cast<int>(kEventsPerPage);
}

bool Follower::Deliver(Followed* followed) {
  if (absl::Now() < followed->place.retry) return false;
  const absl::Status delivered = followed->tracker->Deliver();
  Note(delivered, SubjectOf(followed->name), &followed->place);
  followed->has_pending = !delivered.ok();
  followed->is_done = delivered.ok() && followed->end_taken;
  return delivered.ok();
}

void Follower::Note(const absl::Status& status, const std::string& subject, Trouble* trouble) {
  // A call that is given up because the command ends is no trouble.
  if (absl::IsCancelled(status) && stop_->HasBeenNotified()) return;
  if (status.ok()) {
    if (!trouble->status.ok()) remark_(absl::StrCat(target_->name(), ": ", subject, " goes on"));
    trouble->wait = absl::ZeroDuration();
  } else {
    if (status != trouble->status) {
      remark_(absl::StrCat(target_->name(), ": ", subject, ": ", status.message(), "; trying again"));
    }
    trouble->wait = std::min(kLongestWait, std::max(kFollowInterval, 2 * trouble->wait));
    trouble->retry = absl::Now() + trouble->wait;
  }
  trouble->status = status;
}

void Follower::Retire(Followed followed) {
  remark_(absl::StrCat(target_->name(), ": the coordinator no longer has run '", followed.name, "'"));
  if (followed.tracker == nullptr || followed.is_done) return;
  if (!followed.end_taken) followed.tracker->TakeEnd(RunEnd{"deleted", "the coordinator has it no more"});
  followed.end_taken = true;
  followed.ended = std::min(followed.ended, absl::Now());
  gone_.push_back(std::move(followed));
}

absl::StatusOr<bool> Follower::IsOver(absl::Duration patience) const {
  const Followed* const followed = !runs_.empty() ? &runs_.begin()->second : !gone_.empty() ? &gone_.front() : nullptr;
  if (followed == nullptr || followed->is_done) return true;
  const absl::Status& trouble = followed->place.status.ok() ? followed->source.status : followed->place.status;
  if (trouble.ok() || absl::Now() - followed->ended < patience) return false;
  return absl::DeadlineExceededError(
      absl::StrCat("the last news of run '", followed->name, "' have not arrived: ", trouble.message()));
}

}  // namespace terse
