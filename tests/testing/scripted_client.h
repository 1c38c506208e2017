// A client whose every message the test chooses: for what no honest client says, and for checking answers one by one.
#ifndef TERSE_TESTS_TESTING_SCRIPTED_CLIENT_H_
#define TERSE_TESTS_TESTING_SCRIPTED_CLIENT_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/message_checks.h"
#include "tests/testing/fleet_simulation.h"

namespace terse {

// Keeps what the engine sends.
class RecordingLink : public ClientLink {
 public:
  // Messages that may wait do wait, so that one that must not shows.
  void Send(ToClient words) override {
    tell_when_drained = tell_when_drained || words.tell_when_drained;
    for (FromServer& message : words.messages) later_.push_back(std::move(message));
    if (words.may_wait) return;
    for (FromServer& message : later_) sent.push_back(std::move(message));
    later_.clear();
  }
  int64_t WaitingBytes() override { return waiting_bytes; }
  WireBytes Wire() override { return wire; }

  std::vector<FromServer> sent;
  bool tell_when_drained = false;
  int64_t waiting_bytes = 0;
  WireBytes wire;

 private:
  std::vector<FromServer> later_;
};

class ScriptedClient {
 public:
  // `fleet`'s coordinator must be up; `session` must be unique in the test and above 1000.
  ScriptedClient(FleetSimulation* fleet, std::string name, SessionId session)
      : fleet_(fleet), name_(std::move(name)), session_(session), link_(std::make_shared<RecordingLink>()) {
    status = fleet_->Handle(Connected{session_, link_});
  }

  // INVALID_ARGUMENT for what TakeMessage refuses; otherwise the engine's status.
  absl::Status Say(FromClient message) {
    const std::vector<Welcome> welcomes = All<Welcome>();
    const int64_t client = welcomes.empty() ? -1 : welcomes.back().client_index;
    absl::Status valid = TakeMessage(fleet_->codec(), fleet_->histories(), client, &message);
    if (valid.ok()) valid = PutAway(fleet_->spool(), &message);
    return valid.ok() ? fleet_->Handle(Received{session_, std::move(message)}) : valid;
  }

  absl::Status SayCheckIn(Id128 prev_applied = {}, Id128 pending = {}, int64_t pending_round = 0) {
    CheckIn message;
    message.name = name_;
    message.lineage = (*fleet_->store()->Run())->lineage;
    message.prev_applied = prev_applied;
    message.pending_update_id = pending;
    message.pending_round = pending_round;
    message.process = process;
    message.connection = connection;
    message.relay = relay;
    return Say(message);
  }

  // Holds the head, as the engine believes it to be.
  absl::Status SayReady(int64_t samples = 1) {
    const Head head = fleet_->engine()->View().head;
    return Say(Ready{head.version, head.model_hash, GridLayout().Hash(), samples});
  }

  // An honest update of client `index` from GridDelta(index, step), whose predecessor is `prev_applied`.
  Update MakeUpdate(int64_t round, int64_t index, int64_t step, Id128 prev_applied = {}) const {
    Update update;
    update.round = round;
    EncodeOptions options;
    const absl::optional<RoundRecord> last = *fleet_->store()->LastRound();
    if (last.has_value() && last->plan.has_value()) options.choice = last->plan->choice;
    update.message = *fleet_->codec().Encode(GridDelta(index, step), options);
    update.update_id = MakeUpdateId((*fleet_->store()->Run())->lineage, round, index, prev_applied, update.message);
    update.train_us = 1000;
    update.loss = 0.5f;
    return update;
  }

  // The messages that the engine sent have left; tells the engine so if it asked to hear.
  absl::Status Drain() {
    if (!std::exchange(link_->tell_when_drained, false)) return absl::OkStatus();
    return fleet_->Handle(Drained{session_});
  }

  absl::Status Disconnect() { return fleet_->Handle(Disconnected{session_}); }

  // Messages of one kind, oldest first.
  template <typename T>
  std::vector<T> All() const {
    std::vector<T> found;
    for (const FromServer& message : link_->sent) {
      if (const T* one = std::get_if<T>(&message)) found.push_back(*one);
    }
    return found;
  }
  template <typename T>
  int64_t Count() const {
    return static_cast<int64_t>(All<T>().size());
  }
  void Forget() { link_->sent.clear(); }
  RecordingLink& link() { return *link_; }

  absl::Status status;  // of connecting
  // The client's process, as SayCheckIn names it; zero: it names none.
  Id128 process;
  uint32_t connection = 0;
  bool relay = false;  // it checks in as one

 private:
  FleetSimulation* const fleet_;
  const std::string name_;
  const SessionId session_;
  const std::shared_ptr<RecordingLink> link_;
};

// Events of one kind in the store, oldest first.
inline std::vector<EventRecord> EventsOf(FleetSimulation& fleet, absl::string_view kind) {
  std::vector<EventRecord> found;
  const std::vector<EventRecord> all = *fleet.store()->Events(10'000);
  for (const EventRecord& event : all) {
    if (event.kind == kind) found.push_back(event);
  }
  return found;
}

}  // namespace terse

#endif  // TERSE_TESTS_TESTING_SCRIPTED_CLIENT_H_
