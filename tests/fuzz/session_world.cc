#include "tests/fuzz/session_world.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "coordinator/message_checks.h"
#include "tests/fuzz/session_language.h"

namespace terse {
namespace {

constexpr double kDeadlineSeconds = 10;
constexpr double kSetAsideSeconds = 20;
constexpr size_t kKeptUpdates = 16;

struct Server {
  const char* optimizer;
  DownstreamMode mode;
  const char* codec;
};
// The first leaves the mode to the head.
constexpr Server kServers[] = {{"average", DownstreamMode::kForward, ""},
                               {"average", DownstreamMode::kCoded, "sbc"},
                               {"sgd", DownstreamMode::kCoded, "qsgd"},
                               {"adam", DownstreamMode::kDense, ""}};

const Id128 kLineage = HashBytes("the run");

RoundPolicy ReadRounds(Input* head) {
  RoundPolicy rounds;
  rounds.clients = 1 + head->Byte() % 4;
  const uint8_t policies = head->Byte();
  rounds.selection = static_cast<Selection>(policies % 4);
  rounds.weighting = static_cast<Weighting>(policies / 4 % 2);
  const uint8_t cohort = head->Byte();
  rounds.cohort = rounds.selection == Selection::kAll ? rounds.clients : 1 + cohort % rounds.clients;
  rounds.invited = rounds.cohort + cohort / 16 % (rounds.clients - rounds.cohort + 1);
  const uint8_t quorum = head->Byte();
  rounds.quorum = 1 + quorum % rounds.cohort;
  rounds.grace_seconds = quorum / 64 * 5;
  rounds.deadline_seconds = kDeadlineSeconds;
  if (policies / 8 % 4 != 1) return rounds;
  rounds.buffered = true;
  rounds.selection = Selection::kAll;
  rounds.weighting = Weighting::kUniform;
  rounds.invited = rounds.clients;
  rounds.staleness = policies / 32;
  return rounds;
}

}  // namespace

SessionWorld::SessionWorld(Input* head) {
  const Language& language = LanguageOf(head->Byte());
  codec_ = language.codec.get();
  messages_ = language.messages;
  if (language.shared()) histories_ = std::make_unique<UpdateHistories>(codec_);
  config_.name = "fuzz";
  config_.codec = language.spec;
  config_.data = {"none", "all"};
  config_.train.local_steps = 2;
  config_.rounds = ReadRounds(head);
  const uint8_t guards = head->Byte();
  if ((guards & 1) != 0) config_.data.partition = "iid";
  if ((guards & 2) != 0) config_.clients.allow = {"a*"};
  config_.clients.set_aside_after = guards / 4 % 4;
  config_.clients.set_aside_seconds = kSetAsideSeconds;
  if ((guards & 16) != 0) config_.limits.seconds = 500;
  if ((guards & 32) != 0) config_.limits.accuracy = 0.9;
  if ((guards & 64) != 0) config_.limits.loss = 0.1;
  if ((guards & 128) != 0) catch_up_bytes_ = 1;
  const uint8_t rounds = head->Byte();
  config_.rounds.count = 1 + rounds % 8;
  config_.evaluate_every = 1 + rounds / 8 % 3;
  config_.downstream = static_cast<DownstreamMode>(rounds / 32 % 3);
  const uint8_t checkpoints = head->Byte();
  config_.checkpoint_every = 1 + checkpoints % 3;
  config_.checkpoint_keep = 1 + checkpoints / 3 % 2;
  if (const Server& server = kServers[checkpoints / 6 % 4]; &server != &kServers[0]) {
    config_.server.name = server.optimizer;
    config_.downstream = server.mode;
    config_.downstream_codec.name = server.codec;
    const auto codec = language.downstream_codecs.find(server.codec);
    if (codec != language.downstream_codecs.end()) downstream_codec_ = codec->second.get();
  }
  auto step = ServerStep::Make(config_, {*codec_, downstream_codec_});
  Require(step.ok(), absl::StrCat("a server is made: ", step.status().ToString()));
  server_ = *std::move(step);

  RunRecord record;
  record.name = config_.name;
  record.lineage = kLineage;
  record.parameters = codec_->layout().size();
  record.created_us = clock_.NowMicros();
  Require(store_.CreateRun(record, language.initial_weights).ok(), "a run is created");
  for (const char* name : {"a0", "a1", "a2", "a3", "b4"}) {
    actors_.emplace_back().name = name;
    ForgetHistory(&actors_.back());
  }
  StartEngine();
}

void SessionWorld::StartEngine() {
  background_ = std::make_unique<InlineBackground>(&evaluator_, &store_, config_.checkpoint_keep);
  Engine::Options options;
  options.config = config_;
  options.codec = codec_;
  options.downstream_codec = downstream_codec_;
  options.store = &store_;
  options.background = background_.get();
  options.clock = &clock_;
  options.histories = histories_.get();
  options.catch_up_bytes = catch_up_bytes_;
  options.on_event = [this](const EventRecord& event) { CheckEvent(event); };
  auto engine = Engine::Resume(std::move(options));
  Require(engine.ok(), absl::StrCat("an engine resumes: ", engine.status().ToString()));
  engine_ = *std::move(engine);
  CheckStore();
}

void SessionWorld::Handle(Event event) {
  const absl::Status status = engine_->Handle(std::move(event));
  Require(status.ok(), absl::StrCat("only a store that fails is an error: ", status.ToString()));
  const int64_t before = head_.version;
  CheckStore();
  for (Actor& actor : actors_) Listen(&actor);
  if (head_.version != before) CheckHistories();
  for (const Actor& actor : actors_) {
    if (actor.link != nullptr && std::exchange(actor.link->drained, false)) return Handle(Drained{actor.session});
  }
}

void SessionWorld::Connect(Actor* actor) {
  if (actor->session != 0) return;
  actor->session = next_session_++;
  actor->link = std::make_shared<FuzzLink>();
  actor->honest = true;
  Handle(Connected{actor->session, actor->link});
}

void SessionWorld::Disconnect(Actor* actor) {
  if (actor->session == 0) return;
  const SessionId session = actor->session;
  actor->session = 0;
  actor->link.reset();
  actor->client = -1;
  actor->assignment.reset();
  Handle(Disconnected{session});
}

void SessionWorld::Restart() {
  engine_.reset();
  for (Actor& actor : actors_) {
    actor.session = 0;
    actor.link.reset();
    actor.client = -1;
    actor.assignment.reset();
    actor.delivered_round = 0;  // what was only in memory is sent again
  }
  accepted_.clear();
  store_.Reopen();
  StartEngine();
}

void SessionWorld::Say(Actor* actor, FromClient message) {
  if (actor->session == 0 || actor->link->closed) return;
  FromClient taken = message;
  const absl::Status valid = TakeMessage(*codec_, histories_.get(), actor->client, &taken);
  if (!valid.ok()) {
    Require(absl::IsInvalidArgument(valid) && !valid.message().empty(), "a bad message is an INVALID_ARGUMENT");
    Handle(Misbehaved{actor->session, std::string(valid.message())});
    return Disconnect(actor);
  }
  if (const auto* update = std::get_if<Update>(&taken)) {
    submitted_.insert(update->update_id);
    contents_[HashBytes(update->message)] = update->message;
    Require(PutAway(spool_, &taken).ok(), "the disk takes an update");
    if (sent_.size() == kKeptUpdates) sent_.erase(sent_.begin());
    sent_.push_back(std::get<Update>(message));
  }
  const auto* const update = std::get_if<Update>(&message);
  saying_ = update;
  Handle(Received{actor->session, std::move(taken)});
  saying_ = nullptr;
}

int64_t SessionWorld::RoundOf(const Id128& update_id) const {
  if (const auto accepted = accepted_.find(update_id); accepted != accepted_.end()) return accepted->second;
  Require(saying_ != nullptr && saying_->update_id == update_id, "what has no receipt yet is only just arriving");
  return saying_->round;
}

void SessionWorld::CheckInHonestly(Actor* actor) {
  CheckIn message;
  message.name = actor->name;
  message.lineage = actor->lineage;
  message.prev_applied = actor->prev_applied;
  if (actor->sealed.has_value()) {
    message.pending_update_id = actor->sealed->update_id;
    message.pending_round = actor->sealed->round;
  }
  Say(actor, std::move(message));
}

void SessionWorld::ReadyHonestly(Actor* actor) {
  Ready message;
  message.version = actor->version;
  message.model_hash = actor->model_hash;
  message.layout_hash = layout_hash();
  message.samples = 1 + actor->name.back();
  if (actor->history.has_value()) message.history_hash = actor->history->Hash();
  Say(actor, message);
}

void SessionWorld::ForgetHistory(Actor* actor) {
  if (histories_ != nullptr) actor->history.emplace(*codec_->PackedLayout());
}

void SessionWorld::Pack(const Actor& actor, Update* update) const {
  if (!actor.history.has_value()) return;
  absl::StatusOr<std::string> packed = codec_->Pack(update->message, *actor.history);
  if (!packed.ok() || packed->size() >= update->message.size()) return;
  update->packed = true;
  update->message = *std::move(packed);
}

void SessionWorld::Mislead(Actor* actor, const Actor& other) {
  if (actor->client < 0) return;
  misled_.insert(actor->client);
  actor->history = other.history;
}

void SessionWorld::Push(Actor* actor) {
  bool may_pack = false;
  if (!actor->sealed.has_value() && actor->assignment.has_value() && actor->client >= 0) {
    Update update;
    update.round = actor->assignment->round;
    update.message = messages_[(actor->client + update.round) % (messages_.size() - 1)];
    update.update_id = MakeUpdateId(kLineage, update.round, actor->client, actor->prev_applied, update.message);
    update.train_us = 5;
    update.loss = 0.5f;
    actor->sealed = std::move(update);
    may_pack = actor->assignment->packed;
    actor->assignment.reset();
  }
  if (!actor->sealed.has_value()) return;
  Update update = *actor->sealed;
  if (may_pack) Pack(*actor, &update);
  packing_ = update.packed ? actor->client : -1;
  Say(actor, std::move(update));
  packing_ = -1;
}

void SessionWorld::RunBackground() {
  absl::optional<Event> event = background_->RunOne();
  if (event.has_value()) Handle(*std::move(event));
}

void SessionWorld::Listen(Actor* actor) {
  if (actor->link == nullptr) return;
  std::vector<FromServer> messages = std::move(actor->link->sent);
  actor->link->sent.clear();
  Require(messages.size() < 8 + static_cast<size_t>(head_.version), "what one step sends is bounded");
  for (const FromServer& message : messages) Hear(actor, message);
}

void SessionWorld::Hear(Actor* actor, const FromServer& message) {
  if (const auto* welcome = std::get_if<Welcome>(&message)) {
    HearWelcome(actor, *welcome);
  } else if (const auto* verdict = std::get_if<Verdict>(&message)) {
    HearVerdict(actor, *verdict, /*trusted=*/true);
  } else if (const auto* assignment = std::get_if<Assignment>(&message)) {
    HearAssignment(actor, *assignment);
  } else if (const auto* resync = std::get_if<Resync>(&message)) {
    const auto newest = store_.ReadNewestCheckpoint();
    Require(newest.ok() && newest->version >= resync->checkpoint_version, "the checkpoint is there");
    actor->version = newest->version;
    actor->model_hash = newest->model_hash;
  } else if (const auto* downstream = std::get_if<Downstream>(&message)) {
    Require(downstream->version <= head_.version, "a version is announced once it is durable");
    if (actor->version != downstream->version - 1) return;
    actor->version = downstream->version;
    actor->model_hash = downstream->model_hash;
  } else if (std::holds_alternative<BeginHistory>(message)) {
    Require(histories_ != nullptr, "only in a run that packs do histories begin");
    ForgetHistory(actor);
  } else if (const auto* receipt = std::get_if<Receipt>(&message)) {
    Require(submitted_.count(receipt->update_id) > 0, "a receipt is for an update that came");
    actor->delivered_round = accepted_.emplace(receipt->update_id, RoundOf(receipt->update_id)).first->second;
  }
}

void SessionWorld::HearWelcome(Actor* actor, const Welcome& welcome) {
  Require(welcome.lineage == kLineage && welcome.client_index >= 0, "a welcome names the run and the client");
  const bool shard = config_.data.partition != "all";
  Require(!shard || welcome.client_index < config_.rounds.clients, "no client has another's shard");
  if (actor->honest) {
    Require(config_.clients.allow.empty() || absl::StartsWith(actor->name, "a"), "only who may join is welcome");
  }
  actor->client = welcome.client_index;
  if (!actor->honest) misled_.insert(actor->client);
  if (actor->lineage != kLineage) {
    actor->lineage = kLineage;
    actor->prev_applied = Id128{};
    actor->sealed.reset();
    actor->version.reset();
    ForgetHistory(actor);
  }
  actor->delivered_round = 0;
  if (welcome.verdict.has_value()) HearVerdict(actor, *welcome.verdict, actor->honest);
}

// The client settles as storage/client_state does.
void SessionWorld::HearVerdict(Actor* actor, const Verdict& verdict, bool trusted) {
  const bool own = actor->sealed.has_value() && actor->sealed->update_id == verdict.update_id;
  switch (verdict.outcome) {
    case Outcome::kApplied:
      Require(applied_.count(verdict.update_id) > 0, "APPLIED is said once the commit is durable");
      if (!own) break;
      actor->prev_applied = verdict.update_id;
      if (actor->history.has_value()) {
        Require(codec_->AddToHistory(actor->sealed->message, &*actor->history).ok(), "what was applied can be added");
      }
      break;
    case Outcome::kNotApplied:
      Require(!trusted || applied_.count(verdict.update_id) == 0, "NOT_APPLIED is true");
      // A client that was turned away is told so about a round that may still be open. If it sends the same bytes again
      // after a restart, they may be applied once (docs/PROTOCOL.md, "Whose updates count").
      if (trusted && !absl::StartsWith(verdict.reason, "the client ")) not_applied_.insert(verdict.update_id);
      break;
    case Outcome::kPending:
      if (own && trusted) actor->delivered_round = actor->sealed->round;
      return;
    case Outcome::kReset:
      actor->prev_applied = verdict.last_applied;
      actor->sealed.reset();
      actor->delivered_round = 0;
      ForgetHistory(actor);
      return;
  }
  if (own) actor->sealed.reset();
}

void SessionWorld::HearAssignment(Actor* actor, const Assignment& assignment) {
  const RoundRecord round = **store_.LastRound();
  Require(actor->client >= 0, "work is for clients that joined");
  Require(round.state == RoundState::kOpen && assignment.round == round.id, "work is for the open round");
  Require(assignment.base_version == head_.version, "work starts from the head");
  Require(assignment.local_steps == config_.train.local_steps, "the configuration says how many steps");
  Require(actor->delivered_round != round.id, "a client that delivered, or owes, gets no more work in the round");
  const ClientRecord client = *store_.GetClient(actor->client);
  Require(client.set_aside_until_us <= clock_.NowMicros(), "a client that is set aside gets no work");
  Require(assignment.packed == (histories_ != nullptr) || misled_.count(actor->client) > 0,
          "of an honest client, the coordinator holds the history");
  actor->assignment = assignment;
}

void SessionWorld::JoinAll() {
  for (Actor& actor : actors_) {
    Disconnect(&actor);
    Connect(&actor);
    CheckInHonestly(&actor);
    if (actor.client < 0) continue;
    for (int i = 0; i < 3; ++i) ReadyHonestly(&actor);
    if (actor.sealed.has_value()) Push(&actor);
  }
}

void SessionWorld::CheckThatRoundsGoOn() {
  evaluator_.result = Evaluation{0.5, 1};
  const auto over = [this] {
    const RunState state = (*store_.Run())->state;
    return state == RunState::kFinished || state == RunState::kStopped;
  };
  const int64_t before = head_.version;
  Handle(ResumeRequested{});
  for (int i = 0; i < 8 && head_.version == before && !over(); ++i) {
    const std::vector<ClientRecord> clients = *store_.Clients();
    for (const ClientRecord& client : clients) Handle(SetAsideRequested{client.id, 0, "by command"});
    JoinAll();
    for (int j = 0; j < 3; ++j) RunBackground();
    for (Actor& actor : actors_) Push(&actor);
    clock_.Advance(kDeadlineSeconds + config_.rounds.grace_seconds + 1);
    Handle(Tick{});
  }
  Require(head_.version > before || over() || engine_->View().ended || engine_->View().phase == "finishing",
          "when faults stop, the next round commits");
  CheckHistories();
}

}  // namespace terse
