#include "tests/testing/fleet_simulation.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compression/run_codecs.h"
#include "coordinator/message_checks.h"
#include "core/file_system.h"
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
  config.rounds.count = rounds;
  config.rounds.clients = clients;
  config.rounds.quorum = clients;
  config.rounds.deadline_seconds = 10.0;
  config.rounds.cohort = clients;
  config.rounds.invited = clients;
  config.evaluate_every = 1000;
  config.checkpoint_every = 4;
  config.checkpoint_keep = 1000;  // the whole log stays
  return config;
}

#ifdef TERSE_FAULTS
class FleetSimulation::Hook : public FailpointHook {
 public:
  explicit Hook(FleetSimulation* fleet) : fleet_(fleet) {}
  absl::Status OnFailpoint(absl::string_view name) override {
    if (fleet_->acting_ == kNobody) return absl::OkStatus();
    // Noted here, because work that was under way when a connection broke may seal the next update before anyone looks.
    if (name == "client.reset.done") fleet_->NoteBaseline(fleet_->acting_);
    return fleet_->faults_->OnFailpoint(fleet_->acting_, name);
  }

 private:
  FleetSimulation* const fleet_;
};
#endif

FleetSimulation::FleetSimulation(RunConfig config, int64_t clients, FleetFaults* faults, uint64_t seed)
    : config_(std::move(config)),
      faults_(faults),
      disk_(seed),
      codec_(*MakeUpdateCodec(config_, GridLayout())),
      downstream_codec_(*MakeDownstreamCodec(config_, GridLayout())) {
  for (int64_t i = 0; i < clients; ++i) clients_.push_back(std::make_unique<Client>(seed + 1 + i));
  if (SharesHistory(config_)) histories_ = std::make_unique<UpdateHistories>(codec_.get());
  if (faults_ == nullptr) return;
  for (int64_t process = kCoordinator; process < clients; ++process) {
    disk(process).set_fault([this, process](DiskOp op, const std::string& path) {
      return acting_ == process ? faults_->OnDisk(process, op, path) : 0;
    });
  }
#ifdef TERSE_FAULTS
  hook_ = std::make_unique<Hook>(this);
  SetThreadFailpointHook(hook_.get());
#endif
}

void FleetSimulation::set_history_room(int64_t clients) {
  if (histories_ == nullptr) return;
  history_room_ = clients;
  histories_ = std::make_unique<UpdateHistories>(codec_.get(), clients * histories_->state_bytes());
}

FleetSimulation::~FleetSimulation() {
  const Acting nobody(this, kNobody);
  KillCoordinator();
  for (int64_t i = 0; i < size(); ++i) KillClient(i);
#ifdef TERSE_FAULTS
  if (hook_ != nullptr) SetThreadFailpointHook(nullptr);
#endif
}

absl::Status FleetSimulation::StartCoordinator() {
  disk_.Start();
  absl::Status status;
  {
    const Acting coordinator(this, kCoordinator);
    status = OpenCoordinator();
  }
  Tell("coordinator started", kCoordinator, static_cast<uint64_t>(status.code()));
  if (!status.ok()) {
    EndCoordinator(/*killed=*/!IsDiskTrouble(status));
    return status;
  }
  NoteApplied();
  return absl::OkStatus();
}

absl::Status FleetSimulation::OpenCoordinator() {
  // A fleet's messages are small here, and some of them shall stand in segment files, of which there shall be several.
  constexpr MessageLimits kLimits{/*inline_bytes=*/128, /*segment_bytes=*/1024};
  TERSE_ASSIGN_OR_RETURN(std::unique_ptr<RunStore> store,
                         RunStore::Open(store_directory(), disk_, RunStore::Depth::kRecent, kLimits));
  store_ = std::make_unique<FailingStore>(std::move(store));
  TERSE_ASSIGN_OR_RETURN(const absl::optional<RunRecord> run, store_->Run());
  if (!run.has_value()) {
    RunRecord record;
    record.name = config_.name;
    record.lineage = HashBytes("lineage of the simulation");
    record.parameters = GridLayout().size();
    record.created_us = clock_.NowMicros();
    if (relay_.has_value()) {
      record.relay = "facts";
      record.first_version = first_version_;
    }
    TERSE_RETURN_IF_ERROR(store_->CreateRun(record, GridInitialWeights()));
  }
  background_ = std::make_unique<InlineBackground>(&evaluator_, store_.get(), config_.checkpoint_keep);
  TERSE_ASSIGN_OR_RETURN(
      engine_, Engine::Resume({config_, codec_.get(), downstream_codec_.get(), store_.get(), background_.get(), &clock_,
                               nullptr, histories_.get(), catch_up_bytes_, most_log_bytes_,
                               /*evaluates=*/!relay_.has_value(), relay_}));
  return absl::OkStatus();
}

void FleetSimulation::EndCoordinator(bool killed) {
  const Acting coordinator(this, kCoordinator);
  if (killed) Die(kCoordinator);
  for (int64_t i = 0; i < size(); ++i) {
    if (connected(i)) Cut(i, 0, killed && faults_ != nullptr ? faults_->LastWords(i) : MemoryLink::kAll);
  }
  broken_.clear();
  engine_.reset();
  background_.reset();
  store_.reset();
  Tell("coordinator ended", kCoordinator, killed ? 1 : 0);
}

void FleetSimulation::KillCoordinator() { EndCoordinator(/*killed=*/true); }

absl::Status FleetSimulation::StopCoordinator() {
  absl::Status status;
  {
    const Acting coordinator(this, kCoordinator);
    status = engine_->Close();
  }
  EndCoordinator(/*killed=*/!disk_.running());
  return status;
}

void FleetSimulation::Die(int64_t process) {
  if (!disk(process).running()) return;
  Tell("dies", process);
  disk(process).Kill();
  if (process == kCoordinator) {
    for (const std::unique_ptr<Client>& client : clients_) {
      if (client->link != nullptr) client->link->SilenceCoordinator();
    }
  } else if (connected(process)) {
    link(process)->EndClient();
  }
}

absl::Status FleetSimulation::HandleAll(Event event) {
  const Acting coordinator(this, kCoordinator);
  TERSE_RETURN_IF_ERROR(engine_->Handle(std::move(event)));
  while (!background_held_) {
    absl::optional<Event> done = background_->RunOne();
    if (!done.has_value()) break;
    TERSE_RETURN_IF_ERROR(engine_->Handle(*std::move(done)));
  }
  return engine_->IsConsistent() ? absl::OkStatus() : absl::InternalError("the engine's rooms do not agree");
}

absl::Status FleetSimulation::Handle(Event event) {
  const size_t kind = event.index();
  const absl::Status status = HandleAll(std::move(event));
  Tell("handled", kCoordinator, kind * 100 + static_cast<uint64_t>(status.code()));
  if (!disk_.running()) {
    KillCoordinator();
    return status.ok() ? absl::AbortedError("the coordinator died") : status;
  }
  if (status.ok()) {
    NoteApplied();
  } else if (IsDiskTrouble(status)) {
    engine_->DropSessions(std::string(status.message()));
    EndCoordinator(/*killed=*/false);
  } else {
    KillCoordinator();
  }
  return status;
}

absl::Status FleetSimulation::ReplaceModel(int64_t version, std::vector<float> weights) {
  const Acting coordinator(this, kCoordinator);
  TERSE_RETURN_IF_ERROR(engine_->ReplaceModel(version, std::move(weights)));
  return engine_->IsConsistent() ? absl::OkStatus() : absl::InternalError("the engine's rooms do not agree");
}

absl::Status FleetSimulation::PassDeadline() {
  clock_.Advance(config_.rounds.deadline_seconds + 1);
  return Handle(Tick{});
}

absl::StatusOr<bool> FleetSimulation::PassNextDeadline() {
  const int64_t deadline = engine_->NextDeadlineMicros();
  if (deadline == kNever) return false;
  clock_.Advance(1e-6 * static_cast<double>(std::max<int64_t>(0, deadline - clock_.MonotonicMicros()) + 1));
  const int64_t ticked_us = clock_.MonotonicMicros();
  TERSE_RETURN_IF_ERROR(Handle(Tick{}));
  const int64_t next = engine_->NextDeadlineMicros();
  if (next > ticked_us) return true;
  return absl::InternalError(absl::StrCat("the timer is due again ", ticked_us - next, " us before it was asked"));
}

std::string FleetSimulation::client_name(int64_t i) const { return absl::StrCat("client-", i); }

absl::Status FleetSimulation::StartClient(int64_t i) {
  Client& client = *clients_[i];
  client.disk.Start();
  const Acting self(this, i);
  absl::StatusOr<std::unique_ptr<ClientState>> state = ClientState::Open(client_directory(i), client.disk);
  Tell("client started", i, static_cast<uint64_t>(state.status().code()));
  if (!state.ok()) return state.status();
  client.state = *std::move(state);
  client.result = absl::OkStatus();
  ClientSession::Options options;
  options.name = client_name(i);
  options.process = {static_cast<uint64_t>(i) + 1, ++client.starts};
  options.state = client.state.get();
  options.make_trainer = GridTrainerFactory(GridLayout(), clients_start_);
  options.clock = &clock_;
  options.keep_going = [&client] { return client.keep_going; };
  options.log = [](LogLevel, const LogFields&, const std::string&) {};
  client.session = std::make_unique<ClientSession>(std::move(options));
  NoteBaseline(i);
  return absl::OkStatus();
}

void FleetSimulation::KillClient(int64_t i) {
  Die(i);
  if (connected(i)) Cut(i, MemoryLink::kAll);
  clients_[i]->session.reset();
  clients_[i]->state.reset();
}

absl::Status FleetSimulation::StopClient(int64_t i) {
  if (connected(i)) Cut(i, MemoryLink::kAll);
  if (!client_up(i)) return absl::OkStatus();  // it died of the cut
  const Acting self(this, i);
  const absl::Status status = clients_[i]->session->Flush();
  clients_[i]->session.reset();
  clients_[i]->state.reset();
  Tell("client stopped", i, static_cast<uint64_t>(status.code()));
  return status;
}

void FleetSimulation::Snapshot(int64_t i) {
  clients_[i]->snapshot = clients_[i]->disk.Snapshot();
  clients_[i]->snapshot_baseline = clients_[i]->baseline;
}

bool FleetSimulation::Rollback(int64_t i) {
  Client& client = *clients_[i];
  if (client.snapshot == nullptr) return false;
  client.disk.Restore(*client.snapshot);
  client.baseline = *client.snapshot_baseline;
  client.rolled_back = true;
  return true;
}

int64_t FleetSimulation::checkpoint_bytes() const {
  return static_cast<int64_t>(SerializeCheckpoint({0, Id128{}, GridInitialWeights()}).size());
}

absl::StatusOr<std::string> FleetSimulation::Download(Id128 lineage, int64_t version) {
  if (!coordinator_up()) return absl::UnavailableError("the coordinator is gone");
  const Acting coordinator(this, kCoordinator);
  const absl::StatusOr<RunStore::CheckpointFile> file = store_->NewestCheckpointFile();
  if (!file.ok()) return absl::UnavailableError(file.status().message());
  if (file->version != version) return absl::NotFoundError("replaced by a newer checkpoint");
  absl::StatusOr<std::string> bytes = disk_.Read(file->path);
  return bytes.ok() ? std::move(bytes) : absl::UnavailableError(bytes.status().message());
}

void FleetSimulation::ConnectAll() {
  for (int64_t i = 0; i < size(); ++i) {
    if (!connected(i)) Connect(i);
  }
}

void FleetSimulation::Connect(int64_t i) {
  Client& client = *clients_[i];
  client.link =
      std::make_shared<MemoryLink>([this](Id128 lineage, int64_t version) { return Download(lineage, version); },
                                   [&client] { client.fiber.Wait(); });
  client.session_id = 0;
  {
    const Acting self(this, i);
    client.fiber.Start([&client, link = client.link] { client.result = client.session->Run(link->client_end()); });
  }
  Reap(i);
}

void FleetSimulation::Continue(int64_t i) {
  const Acting self(this, i);
  clients_[i]->fiber.Resume();
}

void FleetSimulation::Reap(int64_t i) {
  Client& client = *clients_[i];
  if (client.fiber.running()) {
    NoteBaseline(i);
    return;
  }
  Tell("session ended", i, static_cast<uint64_t>(client.result.code()));
  client.link->Cut(MemoryLink::kAll);
  broken_.push_back({std::move(client.link), client.session_id});
  client.link = nullptr;
  if (client.disk.running()) {
    NoteBaseline(i);
  } else {
    client.session.reset();
    client.state.reset();
  }
}

void FleetSimulation::Cut(int64_t i, int64_t up_survivors, int64_t down_survivors) {
  clients_[i]->link->Cut(up_survivors, down_survivors);
  Continue(i);
  Reap(i);
}

void FleetSimulation::NoteApplied() {
  const Acting nobody(this, kNobody);
  const int64_t version = engine_->View().head.version;
  if (version == noted_version_) return;
  const absl::StatusOr<std::vector<ClientRecord>> records = store_->Clients();
  if (!records.ok()) return;
  noted_version_ = version;
  for (const ClientRecord& record : *records) {
    for (int64_t i = 0; i < size(); ++i) {
      if (record.name == client_name(i)) clients_[i]->applied_at.emplace(record.last_applied, version);
    }
  }
}

// A residual of nothing, not even zeros, is one that never was or that was reset.
void FleetSimulation::NoteBaseline(int64_t i) {
  Client& client = *clients_[i];
  const StoredHead& state = client.state->state();
  if (state.has_dense || state.sealed.has_value()) return;
  const auto applied = client.applied_at.find(state.prev_applied);
  const int64_t version = state.prev_applied.IsZero() ? 0 : applied == client.applied_at.end() ? -1 : applied->second;
  client.baseline = {state.generation, version};
}

absl::Status FleetSimulation::Accept(const std::shared_ptr<MemoryLink>& link, SessionId* session) {
  if (*session != 0) return absl::OkStatus();
  *session = next_session_++;
  return Handle(Connected{*session, std::shared_ptr<ClientLink>(link, link->coordinator_end())});
}

absl::Status FleetSimulation::Deliver(SessionId id, MemoryLink* link, FromClient message) {
  // As the connection's edge does: what does not validate never reaches the engine's thread.
  absl::Status valid = TakeMessage(*codec_, histories_.get(), link->client(), &message);
  if (valid.ok()) valid = PutAway(spool_, &message);
  const auto* const update = std::get_if<Update>(&message);
  if (valid.ok() && update != nullptr && update->packed_bytes > 0) ++updates_packed_;
  if (valid.ok()) return Handle(Received{id, std::move(message)});
  link->coordinator_end()->Send({{Refusal{std::string(valid.message()), false}}});
  return Handle(Misbehaved{id, std::string(valid.message())});
}

absl::StatusOr<bool> FleetSimulation::DeliverUp(int64_t i) {
  if (!connected(i) || !coordinator_up()) return false;
  const std::shared_ptr<MemoryLink> link = clients_[i]->link;
  absl::optional<FromClient> message = link->TakeUp();
  if (!message.has_value()) return false;
  Tell("up", i, message->index());
  TERSE_RETURN_IF_ERROR(Accept(link, &clients_[i]->session_id));
  TERSE_RETURN_IF_ERROR(Deliver(clients_[i]->session_id, link.get(), *std::move(message)));
  return true;
}

absl::StatusOr<bool> FleetSimulation::DeliverDown(int64_t i) {
  if (!connected(i)) return false;
  const absl::optional<FromServer> message = clients_[i]->link->DeliverDown();
  if (!message.has_value()) return false;
  Tell("down", i, message->index());
  clients_[i]->heard.push_back(*message);
  Continue(i);
  Reap(i);
  // A download may have been the coordinator's end.
  if (coordinator_up() && !disk_.running()) {
    KillCoordinator();
    return absl::AbortedError("the coordinator died");
  }
  if (coordinator_up() && connected(i) && clients_[i]->session_id != 0 && clients_[i]->link->TakeDrained()) {
    TERSE_RETURN_IF_ERROR(Handle(Drained{clients_[i]->session_id}));
  }
  return true;
}

absl::StatusOr<bool> FleetSimulation::DeliverFromBroken(Random* random) {
  if (broken_.empty() || !coordinator_up()) return false;
  const size_t at = random == nullptr ? 0 : random->Below(broken_.size());
  absl::optional<FromClient> message = broken_[at].link->TakeUp();
  if (message.has_value()) TERSE_RETURN_IF_ERROR(Accept(broken_[at].link, &broken_[at].session_id));
  const Broken one = broken_[at];
  if (message.has_value()) {
    Tell("up from a broken connection", kCoordinator, one.session_id * 100 + message->index());
    TERSE_RETURN_IF_ERROR(Deliver(one.session_id, one.link.get(), *std::move(message)));
    return true;
  }
  broken_.erase(broken_.begin() + static_cast<int64_t>(at));
  if (one.session_id != 0) TERSE_RETURN_IF_ERROR(Handle(Disconnected{one.session_id}));
  return true;
}

absl::StatusOr<bool> FleetSimulation::DeliverAny(Random* random) {
  const int64_t ways = 2 * size() + 1;
  const int64_t start = random != nullptr ? static_cast<int64_t>(random->Below(ways)) : 0;
  for (int64_t k = 0; k < ways; ++k) {
    const int64_t way = (start + k) % ways;
    TERSE_ASSIGN_OR_RETURN(const bool moved, way == 2 * size() ? DeliverFromBroken(random)
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
    Connect(i);
    // In order, so that client i has index i.
    TERSE_RETURN_IF_ERROR(DeliverUp(i).status());
  }
  return absl::OkStatus();
}

}  // namespace terse
