// The invariants that are checked after every step of a session program.
#include "absl/strings/str_cat.h"
#include "coordinator/staleness.h"
#include "tests/fuzz/session_world.h"

namespace terse {

// In a buffered run with stale updates: their shares, and the total. Else nothing, and 0.
int64_t SessionWorld::CountStale(absl::Span<const ChosenUpdate> chosen, std::vector<int64_t>* shares) {
  bool stale = false;
  for (const ChosenUpdate& update : chosen) {
    const int64_t round = RoundOf(update.update_id);
    const int64_t base = (*store_.Rounds(round, round))[0].base_version;
    const int64_t staleness = head_.version - base;
    Require(staleness <= config_.rounds.staleness, "no update is too stale");
    shares->push_back(StaleShare(staleness));
    stale |= staleness > 0;
  }
  if (stale) return kFreshShare * static_cast<int64_t>(chosen.size());
  shares->clear();
  return 0;
}

// The new weights are the old ones and the step that the server makes of what was chosen, each counted once and never
// before.
void SessionWorld::CheckCommit(absl::Span<const ChosenUpdate> chosen) {
  std::vector<absl::string_view> messages;
  std::vector<int64_t> samples;
  for (const ChosenUpdate& update : chosen) {
    Require(submitted_.count(update.update_id) > 0, "an update that is applied came from a client");
    Require(applied_.insert(update.update_id).second, "an update is applied at most once");
    Require(not_applied_.count(update.update_id) == 0, "NOT_APPLIED is final");
    messages.push_back(contents_[update.content_hash]);
    if (config_.rounds.weighting == Weighting::kSamples) samples.push_back(update.samples);
  }
  int64_t total = 0;
  if (config_.rounds.buffered) total = CountStale(chosen, &samples);
  const auto made = server_->MakeStep(head_.version, weights_, messages, samples, total, 0);
  Require(made.ok(), "what was applied has an average");
  Require(server_->Apply(made->downstream, absl::MakeSpan(weights_)).ok(), "what was made is applied");
  Require(FloatsAsBits(weights_) == FloatsAsBits(engine_->weights()), "the model moved by the server's step");
}

void SessionWorld::CheckStore() {
  const Head head = *store_.GetHead();
  const EngineView view = engine_->View();
  Require(view.head.version == head.version && view.head.model_hash == head.model_hash,
          "the engine has the store's head");
  Require(HashWeights(engine_->weights()) == head.model_hash, "the weights are the head's");
  Require(head.version == head_.version || head.version == head_.version + 1, "one commit a step");
  Require(view.sessions.size() <= next_session_, "no session without a connection");
  const std::vector<ChosenUpdate>& applied = store_.applied();
  if (head.version != head_.version) CheckCommit(absl::MakeSpan(applied).subspan(applied_.size()));
  const absl::optional<RoundRecord> round = *store_.LastRound();
  const int64_t rounds = round.has_value() ? round->id : 0;
  const RunState state = (*store_.Run())->state;
  Require(rounds == rounds_ || !(paused_ && state == RunState::kPaused), "no round opens during a pause");
  for (int64_t id = rounds_; id >= 1 && id <= rounds; ++id) {
    const RoundRecord one = (*store_.Rounds(id, id))[0];
    if (one.state != RoundState::kCommitted) continue;
    const int64_t most = config_.rounds.buffered ? config_.rounds.clients : config_.rounds.cohort;
    Require(one.updates >= config_.rounds.quorum && one.updates <= most,
            "a round commits with a quorum and no more than its cohort");
  }
  head_ = head;
  weights_ = engine_->weights();
  rounds_ = rounds;
  paused_ = state == RunState::kPaused;
}

void SessionWorld::CheckEvent(const EventRecord& event) {
  Require(event.kind != "update_misread" || misled_.count(event.client) > 0, "what an honest client packs is read");
  Require(event.kind != "update_rejected" || event.client != packing_ || packing_ < 0,
          "that both ends' histories differ is no failure of the client");
}

// Where both ends agree about the client's last applied update, they agree about all that went before, unless somebody
// lied about it.
void SessionWorld::CheckHistories() {
  if (histories_ == nullptr) return;
  for (const Actor& actor : actors_) {
    if (actor.client < 0 || misled_.count(actor.client) > 0) continue;
    if (store_.GetClient(actor.client)->last_applied != actor.prev_applied) continue;
    const auto stored = histories_->Build(*store_.ReadHistory(actor.client));
    Require(stored.ok(), "a stored history is one of this model");
    Require(stored->Serialize() == actor.history->Serialize(), "both ends hold the same history");
  }
}

}  // namespace terse
