#include "coordinator/journal.h"

#include <utility>

#include "core/fault.h"
#include "core/status.h"

namespace terse {

absl::Status Journal::Commit(absl::FunctionRef<void()> committed) {
  TERSE_FAILPOINT("coordinator.batch.decided");
  if (Mutated(Mutant::kSpeakBeforeCommit)) TERSE_RETURN_IF_ERROR(Speak());
  TERSE_RETURN_IF_ERROR(store_->CommitBatch());
  TERSE_FAILPOINT("coordinator.batch.committed");
  committed();
  return Speak();
}

void Journal::Drop() {
  store_->DropBatch();
  outgoing_.clear();
  place_.clear();
  jobs_.clear();
  told_.clear();
}

ToClient& Journal::To(const std::shared_ptr<ClientLink>& link) {
  const auto [place, is_new] = place_.try_emplace(link.get(), outgoing_.size());
  if (is_new) outgoing_.push_back({link, {{}, /*may_wait=*/true}});
  return outgoing_[place->second].words;
}

void Journal::Say(const std::shared_ptr<ClientLink>& link, FromServer message, bool may_wait) {
  ToClient& words = To(link);
  words.messages.push_back(std::move(message));
  words.may_wait = words.may_wait && may_wait;
}

void Journal::TellWhenDrained(const std::shared_ptr<ClientLink>& link) {
  ToClient& words = To(link);
  words.tell_when_drained = true;
  words.may_wait = false;
}

void Journal::Evaluate(int64_t round, SharedWeights weights) {
  jobs_.push_back([round, weights = std::move(weights)](Background* background) mutable {
    background->Evaluate(round, std::move(weights));
  });
}

void Journal::WriteCheckpoint(HeldCheckpoint checkpoint) {
  jobs_.push_back([checkpoint = std::move(checkpoint)](Background* background) mutable {
    background->WriteCheckpoint(std::move(checkpoint));
  });
}

absl::Status Journal::Speak() {
  for (const EventRecord& event : std::exchange(told_, {})) on_event_(event);
  place_.clear();
  bool first = true;
  for (Outgoing& one : std::exchange(outgoing_, {})) {
    one.link->Send(std::move(one.words));
    if (std::exchange(first, false)) TERSE_FAILPOINT("coordinator.announce.first");
  }
  for (auto& job : std::exchange(jobs_, {})) job(background_);
  return absl::OkStatus();
}

absl::Status Journal::Note(const EventRecord& event) {
  Tell(event);
  return store_->AddEvent(event);
}

absl::Status Journal::NoteMisbehaviour(const EventRecord& event, int64_t monotonic_us) {
  return repeated_events_.Add(event, monotonic_us) ? Note(event) : absl::OkStatus();
}

absl::Status Journal::NoteRepeated(int64_t monotonic_us, bool all) {
  for (const EventRecord& event : repeated_events_.TakeDue(monotonic_us, all)) {
    TERSE_RETURN_IF_ERROR(Note(event));
  }
  return absl::OkStatus();
}

void Journal::Tell(const EventRecord& event) {
  if (on_event_) told_.push_back(event);
}

}  // namespace terse
