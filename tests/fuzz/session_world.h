// A coordinator's engine and the fleet that the session fuzzer plays: what every client holds, what it was told, and
// what must hold after every step.
#ifndef TERSE_TESTS_FUZZ_SESSION_WORLD_H_
#define TERSE_TESTS_FUZZ_SESSION_WORLD_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "coordinator/engine.h"
#include "coordinator/server_step.h"
#include "coordinator/update_histories.h"
#include "storage/update_spool.h"
#include "tests/fuzz/input.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/inline_background.h"
#include "tests/testing/memory_run_store.h"

namespace terse {

// Records the messages of the engine to one connection, in order.
class FuzzLink : public ClientLink {
 public:
  // Takes whatever it is given.
  void Send(ToClient words) override {
    drained = drained || words.tell_when_drained;
    for (FromServer& message : words.messages) {
      if (closed) return;
      closed = std::holds_alternative<Refusal>(message) || std::holds_alternative<Finished>(message);
      sent.push_back(std::move(message));
    }
  }
  int64_t WaitingBytes() override { return waiting_bytes; }
  WireBytes Wire() override {
    wire.sent += 100;
    wire.received += 10;
    return wire;
  }

  std::vector<FromServer> sent;
  bool closed = false;
  bool drained = false;  // and the engine has not heard of it
  int64_t waiting_bytes = 0;
  WireBytes wire;
};

// A client as its state directory would have it, and its connection.
struct Actor {
  std::string name;
  Id128 lineage;
  Id128 prev_applied;
  absl::optional<Update> sealed;
  absl::optional<int64_t> version;
  Id128 model_hash;
  absl::optional<Assignment> assignment;
  absl::optional<UpdateHistory> history;  // of its applied updates; nullopt in a run that packs nothing

  SessionId session = 0;  // 0: not connected
  std::shared_ptr<FuzzLink> link;
  int64_t client = -1;          // as the welcome said
  bool honest = true;           // what it said in its check-in was true
  int64_t delivered_round = 0;  // of an update that was receipted, or is pending: no more work in that round
};

// Evaluates to whatever the program said last.
class FuzzEvaluator : public Evaluator {
 public:
  absl::StatusOr<Evaluation> Evaluate(absl::Span<const float> weights) override { return result; }
  absl::StatusOr<Evaluation> result = Evaluation{0.5, 1};
};

class SessionWorld {
 public:
  static constexpr int kActors = 5;

  // Head: codec, clients, policies, cohort, quorum, guards, rounds, checkpoints and server; a byte each.
  explicit SessionWorld(Input* head);

  // Steps of the program. Every one ends with the checks.
  void Connect(Actor* actor);
  void Disconnect(Actor* actor);
  // The truth, as the actor knows it.
  void CheckInHonestly(Actor* actor);
  void ReadyHonestly(Actor* actor);
  // Trains, if the actor has work, and sends its sealed update, if it has one: packed at most once.
  void Push(Actor* actor);
  // INVALID_ARGUMENT from the validator ends the connection, as at the coordinator's port.
  void Say(Actor* actor, FromClient message);
  // A joined client takes another's history for its own.
  void Mislead(Actor* actor, const Actor& other);
  void Handle(Event event);
  void RunBackground();
  void Restart();
  // When faults stop, the next round commits, or the run is over.
  void CheckThatRoundsGoOn();

  // Packs the update as the actor would, where that makes it shorter.
  void Pack(const Actor& actor, Update* update) const;
  // From here on, what the coordinator keeps of the actor may not be what the actor does.
  void LieAbout(const Actor& actor) { misled_.insert(actor.client); }

  Actor& actor(size_t i) { return actors_[i % kActors]; }
  // An update that some client sent before; nullptr when there is none.
  const Update* Sent(size_t i) const { return sent_.empty() ? nullptr : &sent_[i % sent_.size()]; }
  const std::string& message(size_t i) const { return messages_[i % messages_.size()]; }
  Id128 layout_hash() const { return codec_->layout().Hash(); }
  const RunConfig& config() const { return config_; }
  MemoryRunStore& store() { return store_; }
  FakeClock& clock() { return clock_; }
  FuzzEvaluator& evaluator() { return evaluator_; }

 private:
  void StartEngine();
  void Listen(Actor* actor);
  void Hear(Actor* actor, const FromServer& message);
  void HearWelcome(Actor* actor, const Welcome& welcome);
  void HearVerdict(Actor* actor, const Verdict& verdict, bool trusted);
  void HearAssignment(Actor* actor, const Assignment& assignment);
  // Returns the round of an update that the engine has accepted, in this step or before.
  int64_t RoundOf(const Id128& update_id) const;
  void ForgetHistory(Actor* actor);
  void CheckStore();
  void CheckEvent(const EventRecord& event);
  void CheckHistories();
  int64_t CountStale(absl::Span<const ChosenUpdate> chosen, std::vector<int64_t>* shares);
  void CheckCommit(absl::Span<const ChosenUpdate> chosen);
  void JoinAll();

  RunConfig config_;
  const Codec* codec_ = nullptr;
  const Codec* downstream_codec_ = nullptr;
  std::unique_ptr<ServerStep> server_;          // does what the engine's does, and never restarts
  std::vector<std::string> messages_;           // valid ones
  std::unique_ptr<UpdateHistories> histories_;  // null: nothing is packed
  UpdateSpool spool_{std::filesystem::temp_directory_path().string(), {/*memory_bytes=*/100, /*file_bytes=*/4096}};
  int64_t catch_up_bytes_ = kCatchUpBytes;
  MemoryRunStore store_;
  FakeClock clock_;
  FuzzEvaluator evaluator_;
  std::unique_ptr<InlineBackground> background_;
  std::unique_ptr<Engine> engine_;
  std::vector<Actor> actors_;
  SessionId next_session_ = 1;

  std::vector<Update> sent_;
  std::set<Id128> submitted_;          // ids of the updates that the engine got
  std::map<Id128, int64_t> accepted_;  // those that have a receipt, with their rounds: a liar gives one id to several
  const Update* saying_ = nullptr;     // the update that the engine is getting
  std::map<Id128, std::string> contents_;  // their messages, by hash: a liar gives one id to several
  std::set<Id128> applied_;                // ids that a commit applied
  std::set<Id128> not_applied_;            // ids that some client heard the final NOT_APPLIED about
  std::set<int64_t> misled_;               // clients about whom somebody lied
  int64_t packing_ = -1;                   // the client whose update is on its way, packed by what it holds for true
  Head head_;                              // after the step before
  std::vector<float> weights_;             // of that head
  int64_t rounds_ = 0;                     // opened so far
  bool paused_ = false;                    // after the step before
};

}  // namespace terse

#endif  // TERSE_TESTS_FUZZ_SESSION_WORLD_H_
