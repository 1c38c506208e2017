#include "tests/testing/fleet_simulation.h"

#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compression/codec_table.h"
#include "core/file_io.h"
#include "core/status.h"

namespace terse {

RunConfig GridRunConfig(int64_t clients, int64_t rounds) {
  RunConfig config;
  config.name = "grid";
  config.model.name = "grid";
  config.data = {"none", "iid"};
  config.train.local_steps = 2;
  config.train.batch_size = 1;
  config.codec = {"sbc", 0.02, "bf16"};
  config.downstream = DownstreamMode::kForward;
  config.rounds = {rounds, clients, clients, 10.0};
  config.evaluate_every = 1000;
  config.checkpoint_every = 4;
  config.checkpoint_keep = 1000;  // the whole log stays
  return config;
}

FleetSimulation::FleetSimulation(RunConfig config, int64_t clients)
    : config_(std::move(config)), codec_(*MakeCodec(config_.codec, GridLayout())), clients_(clients) {}

FleetSimulation::~FleetSimulation() {
  KillCoordinator();
  for (int64_t i = 0; i < size(); ++i) KillClient(i);
}

absl::Status FleetSimulation::StartCoordinator() {
  TERSE_ASSIGN_OR_RETURN(std::unique_ptr<RunStore> store, RunStore::Open(store_directory()));
  store_ = std::make_unique<FailingStore>(std::move(store));
  TERSE_ASSIGN_OR_RETURN(const absl::optional<RunRecord> run, store_->Run());
  if (!run.has_value()) {
    RunRecord record;
    record.name = config_.name;
    record.lineage = HashBytes("lineage of the simulation");
    record.parameters = GridLayout().size();
    TERSE_RETURN_IF_ERROR(store_->CreateRun(record, GridInitialWeights()));
  }
  background_ = std::make_unique<InlineBackground>(&evaluator_, store_.get(), config_.checkpoint_keep);
  absl::StatusOr<std::unique_ptr<Engine>> engine =
      Engine::Resume({config_, codec_.get(), store_.get(), background_.get(), &clock_, nullptr});
  if (!engine.ok()) {
    KillCoordinator();
    return engine.status();
  }
  engine_ = *std::move(engine);
  return absl::OkStatus();
}

void FleetSimulation::KillCoordinator() {
  for (int64_t i = 0; i < size(); ++i) {
    if (connected(i)) Cut(i, 0);
  }
  broken_.clear();
  engine_.reset();
  background_.reset();
  store_.reset();
}

absl::Status FleetSimulation::Handle(Event event) {
  absl::Status status = engine_->Handle(std::move(event));
  while (status.ok()) {
    absl::optional<Event> done = background_held_ ? absl::nullopt : background_->RunOne();
    if (!done.has_value()) return status;
    status = engine_->Handle(*std::move(done));
  }
  KillCoordinator();
  return status;
}

absl::Status FleetSimulation::PassDeadline() {
  clock_.Advance(config_.rounds.deadline_seconds + 1);
  return Handle(Tick{});
}

std::string FleetSimulation::client_name(int64_t i) const { return absl::StrCat("client-", i); }
std::string FleetSimulation::client_directory(int64_t i) const {
  return absl::StrCat(directory_.path(), "/", client_name(i));
}

absl::Status FleetSimulation::StartClient(int64_t i) {
  Client& client = clients_[i];
  TERSE_ASSIGN_OR_RETURN(client.state, ClientState::Open(client_directory(i)));
  ClientSession::Options options;
  options.name = client_name(i);
  options.state = client.state.get();
  options.make_trainer = GridTrainerFactory();
  options.clock = &clock_;
  options.keep_going = [&client] { return client.keep_going; };
  options.log = [](bool, const std::string&) {};
  client.session = std::make_unique<ClientSession>(std::move(options));
  return absl::OkStatus();
}

void FleetSimulation::KillClient(int64_t i) {
  if (connected(i)) Cut(i, 0);
  clients_[i].session.reset();
  clients_[i].state.reset();
}

void FleetSimulation::Snapshot(int64_t i) {
  const std::string copy = absl::StrCat(client_directory(i), ".copy");
  std::filesystem::remove_all(copy);
  std::filesystem::copy(client_directory(i), copy, std::filesystem::copy_options::recursive);
  clients_[i].snapshot = clients_[i].baseline;
}

bool FleetSimulation::Rollback(int64_t i) {
  Client& client = clients_[i];
  if (!client.snapshot.has_value()) return false;
  std::filesystem::remove_all(client_directory(i));
  std::filesystem::copy(absl::StrCat(client_directory(i), ".copy"), client_directory(i),
                        std::filesystem::copy_options::recursive);
  client.baseline = *client.snapshot;
  client.rolled_back = true;
  return true;
}

int64_t FleetSimulation::checkpoint_bytes() const {
  return static_cast<int64_t>(SerializeCheckpoint({0, Id128{}, GridInitialWeights()}).size());
}

absl::StatusOr<std::string> FleetSimulation::Download(Id128 lineage, int64_t version) {
  const absl::StatusOr<RunStore::CheckpointFile> file = store_->NewestCheckpointFile();
  if (!file.ok()) return absl::UnavailableError(file.status().message());
  if (file->version != version) return absl::NotFoundError("replaced by a newer checkpoint");
  return ReadFile(file->path);
}

absl::Status FleetSimulation::Connect(int64_t i) {
  Client& client = clients_[i];
  client.link =
      std::make_shared<MemoryLink>([this](Id128 lineage, int64_t version) { return Download(lineage, version); });
  client.session_id = next_session_++;
  client.thread = std::thread([&client, link = client.link, session = client.session.get()] {
    client.result = session->Run(link->client_end());
    link->ClientLeft();
  });
  client.link->WaitUntilIdle();
  return Handle(Connected{client.session_id, std::shared_ptr<ClientLink>(client.link, client.link->coordinator_end())});
}

void FleetSimulation::Reap(int64_t i) {
  Client& client = clients_[i];
  client.link->WaitUntilIdle();
  if (!client.link->client_left()) return;
  client.thread.join();
  client.link->Cut(client.link->up_waiting());
  broken_.push_back({std::move(client.link), client.session_id});
  client.link = nullptr;
}

void FleetSimulation::Cut(int64_t i, int64_t up_survivors) {
  clients_[i].link->Cut(up_survivors);
  Reap(i);
}

absl::Status FleetSimulation::Deliver(SessionId id, MemoryLink* link, FromClient message) {
  // As the connection's edge does: what does not validate never reaches the engine's thread.
  const absl::Status valid = engine_->Validate(message);
  if (valid.ok()) return Handle(Received{id, std::move(message)});
  link->coordinator_end()->Send(Refusal{std::string(valid.message()), false});
  return absl::OkStatus();
}

absl::StatusOr<bool> FleetSimulation::DeliverUp(int64_t i) {
  if (!connected(i) || !coordinator_up()) return false;
  const std::shared_ptr<MemoryLink> link = clients_[i].link;
  absl::optional<FromClient> message = link->TakeUp();
  if (!message.has_value()) return false;
  TERSE_RETURN_IF_ERROR(Deliver(clients_[i].session_id, link.get(), *std::move(message)));
  return true;
}

void FleetSimulation::Observe(int64_t i, const FromServer& message) {
  const auto* verdict = std::get_if<Verdict>(&message);
  const auto* welcome = std::get_if<Welcome>(&message);
  if (welcome != nullptr && welcome->verdict.has_value()) verdict = &*welcome->verdict;
  if (verdict == nullptr || verdict->outcome != Outcome::kReset) return;
  clients_[i].baseline = {clients_[i].state->state().generation, engine_->View().head.version};
}

absl::StatusOr<bool> FleetSimulation::DeliverDown(int64_t i) {
  if (!connected(i) || !coordinator_up()) return false;
  const absl::optional<FromServer> message = clients_[i].link->DeliverDown();
  if (!message.has_value()) return false;
  clients_[i].heard.push_back(*message);
  clients_[i].link->WaitUntilIdle();
  Observe(i, *message);
  Reap(i);
  return true;
}

absl::StatusOr<bool> FleetSimulation::DeliverFromBroken() {
  if (broken_.empty() || !coordinator_up()) return false;
  const Broken first = broken_.front();
  absl::optional<FromClient> message = first.link->TakeUp();
  if (message.has_value()) {
    TERSE_RETURN_IF_ERROR(Deliver(first.session_id, first.link.get(), *std::move(message)));
    return true;
  }
  broken_.erase(broken_.begin());
  TERSE_RETURN_IF_ERROR(Handle(Disconnected{first.session_id}));
  return true;
}

absl::StatusOr<bool> FleetSimulation::DeliverAny(Random* random) {
  const int64_t ways = 2 * size() + 1;
  const int64_t start = random != nullptr ? static_cast<int64_t>(random->Below(ways)) : 0;
  for (int64_t k = 0; k < ways; ++k) {
    const int64_t way = (start + k) % ways;
    TERSE_ASSIGN_OR_RETURN(const bool moved, way == 2 * size() ? DeliverFromBroken()
                                             : way % 2 == 0    ? DeliverUp(way / 2)
                                                               : DeliverDown(way / 2));
    if (moved) return true;
  }
  return false;
}

absl::Status FleetSimulation::Settle(Random* random, int64_t steps) {
  for (int64_t step = 0; step < steps; ++step) {
    TERSE_ASSIGN_OR_RETURN(const bool moved, DeliverAny(random));
    if (!moved) return absl::OkStatus();
  }
  return absl::DeadlineExceededError(absl::StrCat("the fleet still moves after ", steps, " deliveries"));
}

absl::Status FleetSimulation::StartAll() {
  TERSE_RETURN_IF_ERROR(StartCoordinator());
  for (int64_t i = 0; i < size(); ++i) {
    TERSE_RETURN_IF_ERROR(StartClient(i));
    TERSE_RETURN_IF_ERROR(Connect(i));
    // In order, so that client i has index i.
    TERSE_RETURN_IF_ERROR(DeliverUp(i).status());
  }
  return absl::OkStatus();
}

}  // namespace terse
