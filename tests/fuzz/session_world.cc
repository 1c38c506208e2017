#include "tests/fuzz/session_world.h"

#include <utility>

#include "absl/strings/match.h"
#include "compression/codec_table.h"
#include "coordinator/staleness.h"
#include "core/random.h"
#include "tests/compression/updates.h"

namespace terse {
namespace {

constexpr double kDeadlineSeconds = 10;
constexpr double kSetAsideSeconds = 20;
constexpr size_t kKeptUpdates = 16;

const Layout& WorldLayout() {
  static const Layout& layout = *new Layout(MakeLayout({3, 20, 9}));
  return layout;
}

const std::vector<float>& InitialWeights() {
  static const auto& weights = *new std::vector<float>(WorldLayout().size(), 0.25f);
  return weights;
}

// A codec and some messages of it.
struct Language {
  std::unique_ptr<const Codec> codec;
  std::vector<std::string> messages;
};

const std::vector<Language>& Languages() {
  static const auto& languages = *[] {
    auto* made = new std::vector<Language>;
    Random random(6);
    for (const char* name : {"sbc", "top_k", "dense", "qsgd"}) {
      made->push_back({NewCodec(name, 0.1, "fp32", WorldLayout()), {}});
      for (int i = 0; i < 6; ++i) {
        const std::vector<float> update = RandomUpdate(WorldLayout().size(), &random, i == 5 ? 1e38 : 1);
        made->back().messages.push_back(*made->back().codec->Encode(update, {CodecKey{1, 1, 1}}));
      }
    }
    return made;
  }();
  return languages;
}

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

const Codec* DownstreamCodecOf(const std::string& name) {
  static const Codec& sbc = *NewCodec("sbc", 0.1, "fp32", WorldLayout()).release();
  static const Codec& qsgd = *NewCodec("qsgd", 0.1, "fp32", WorldLayout()).release();
  return name.empty() ? nullptr : name == "sbc" ? &sbc : &qsgd;
}

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
  const Language& language = Languages()[head->Byte() % Languages().size()];
  codec_ = language.codec.get();
  messages_ = language.messages;
  config_.name = "fuzz";
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
    downstream_codec_ = DownstreamCodecOf(server.codec);
  }
  auto step = ServerStep::Make(config_, {*codec_, downstream_codec_});
  Require(step.ok(), absl::StrCat("a server is made: ", step.status().ToString()));
  server_ = *std::move(step);

  RunRecord record;
  record.name = config_.name;
  record.lineage = kLineage;
  record.parameters = WorldLayout().size();
  record.created_us = clock_.NowMicros();
  Require(store_.CreateRun(record, InitialWeights()).ok(), "a run is created");
  for (const char* name : {"a0", "a1", "a2", "a3", "b4"}) actors_.emplace_back().name = name;
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
  auto engine = Engine::Resume(std::move(options));
  Require(engine.ok(), absl::StrCat("an engine resumes: ", engine.status().ToString()));
  engine_ = *std::move(engine);
  CheckStore();
}

void SessionWorld::Handle(Event event) {
  const absl::Status status = engine_->Handle(std::move(event));
  Require(status.ok(), absl::StrCat("only a store that fails is an error: ", status.ToString()));
  CheckStore();
  for (Actor& actor : actors_) Listen(&actor);
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
  store_.Reopen();
  StartEngine();
}

void SessionWorld::Say(Actor* actor, FromClient message) {
  if (actor->session == 0 || actor->link->closed) return;
  const absl::Status valid = ValidateMessage(*codec_, message);
  if (!valid.ok()) {
    Require(absl::IsInvalidArgument(valid) && !valid.message().empty(), "a bad message is an INVALID_ARGUMENT");
    Handle(Misbehaved{actor->session, std::string(valid.message())});
    return Disconnect(actor);
  }
  if (const auto* update = std::get_if<Update>(&message)) {
    submitted_.emplace(update->update_id, update->round);
    contents_[HashBytes(update->message)] = update->message;
    if (sent_.size() == kKeptUpdates) sent_.erase(sent_.begin());
    sent_.push_back(*update);
  }
  Handle(Received{actor->session, std::move(message)});
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
  Say(actor, message);
}

void SessionWorld::Push(Actor* actor) {
  if (!actor->sealed.has_value() && actor->assignment.has_value() && actor->client >= 0) {
    Update update;
    update.round = actor->assignment->round;
    update.message = messages_[(actor->client + update.round) % (messages_.size() - 1)];
    update.update_id = MakeUpdateId(kLineage, update.round, actor->client, actor->prev_applied, update.message);
    update.train_us = 5;
    update.loss = 0.5f;
    actor->sealed = std::move(update);
    actor->assignment.reset();
  }
  if (actor->sealed.has_value()) Say(actor, *actor->sealed);
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
  } else if (const auto* delta = std::get_if<Delta>(&message)) {
    Require(delta->version <= head_.version, "a delta is announced once it is durable");
    if (actor->version != delta->version - 1) return;
    actor->version = delta->version;
    actor->model_hash = delta->model_hash;
  } else if (const auto* receipt = std::get_if<Receipt>(&message)) {
    Require(submitted_.count(receipt->update_id) > 0, "a receipt is for an update that came");
    for (const Update& update : sent_) {
      if (update.update_id == receipt->update_id) actor->delivered_round = update.round;
    }
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
  if (actor->lineage != kLineage) {
    actor->lineage = kLineage;
    actor->prev_applied = Id128{};
    actor->sealed.reset();
    actor->version.reset();
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
      if (own) actor->prev_applied = verdict.update_id;
      break;
    case Outcome::kNotApplied:
      Require(!trusted || applied_.count(verdict.update_id) == 0, "NOT_APPLIED is true");
      if (trusted) not_applied_.insert(verdict.update_id);
      break;
    case Outcome::kPending:
      if (own && trusted) actor->delivered_round = actor->sealed->round;
      return;
    case Outcome::kReset:
      actor->prev_applied = verdict.last_applied;
      actor->sealed.reset();
      actor->delivered_round = 0;
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
  actor->assignment = assignment;
}

// In a buffered run with stale updates: their shares, and the total. Else nothing, and 0.
int64_t SessionWorld::CountStale(absl::Span<const ChosenUpdate> chosen, std::vector<int64_t>* shares) {
  bool stale = false;
  for (const ChosenUpdate& update : chosen) {
    const int64_t base = (*store_.Rounds(submitted_[update.update_id], submitted_[update.update_id]))[0].base_version;
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
  const auto downstream = server_->Take(head_.version, messages, samples, total, 0);
  Require(downstream.ok(), "what was applied has an average");
  Require(server_->Apply(*downstream, absl::MakeSpan(weights_)).ok(), "what was made is applied");
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
}

}  // namespace terse
