#include "coordinator/rpc/run_host.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "compression/run_codecs.h"
#include "compression/traffic_forecast.h"
#include "coordinator/log_components.h"
#include "coordinator/rpc/backup_stream.h"
#include "coordinator/rpc/logged_store.h"
#include "core/file_system.h"
#include "core/log/log.h"
#include "core/status.h"
#include "proto/export_formats.h"
#include "proto/run_config_convert.h"
#include "proto/run_config_loader.h"
#include "storage/event_kinds.h"
#include "storage/model_files.h"
#include "storage/module_file.h"

namespace terse {
namespace {

constexpr int64_t kQueueBytesFloor = int64_t{64} << 20;
constexpr absl::Duration kFirstRetry = absl::Milliseconds(200);
constexpr absl::Duration kMaxRetry = absl::Seconds(10);

absl::string_view ConditionName(RunHost::Condition condition) {
  return condition == RunHost::Condition::kSuspended ? "suspended" : "down";
}

// The stored run's configuration, or the run file's once it is known to be the same or there is none.
absl::StatusOr<v1::RunConfig> ChooseConfig(const RunPlan& plan, const absl::optional<RunRecord>& stored) {
  if (!stored.has_value()) {
    if (plan.wanted.has_value()) return *plan.wanted;
    return absl::InvalidArgumentError(
        absl::StrCat(plan.directory, " holds no run yet; give its file with --run-file, or remove the directory"));
  }
  v1::RunConfig kept;
  if (!kept.ParseFromString(stored->config)) {
    return absl::DataLossError(absl::StrCat(plan.directory, " holds a run whose configuration cannot be read"));
  }
  kept = WithLaterDefaults(std::move(kept));
  // A run that was restored under another name goes by the name of its directory.
  kept.set_name(plan.name);
  if (plan.wanted.has_value() && plan.wanted->SerializeAsString() != kept.SerializeAsString()) {
    return absl::FailedPreconditionError(absl::StrCat(plan.directory, " holds run '", kept.name(),
                                                      "' with other settings than ", plan.run_file,
                                                      "; resume it without --run-file, or choose another --state"));
  }
  return kept;
}

absl::Status CreateRun(const RunConfig& config, const v1::RunConfig& wire, const RunLearning& learning,
                       const absl::optional<RelayStart>& relay, Clock* clock, RunStore* store) {
  TERSE_ASSIGN_OR_RETURN(const std::vector<float> weights, learning.InitialWeights());
  RunRecord record;
  record.name = config.name;
  record.lineage = Id128::Random();
  record.config = wire.SerializeAsString();
  record.parameters = weights.size();
  record.created_us = clock->NowMicros();
  if (relay.has_value()) {
    record.relay = relay->facts;
    record.first_version = relay->version;
  }
  TERSE_RETURN_IF_ERROR(store->CreateRun(record, weights));
  return store->AddEvent({record.created_us, event::kRunCreated, 0, -1, config.name});
}

// A run that is made is served whether or not its traffic can be foretold.
void LogTraffic(const RunConfig& config, const Layout& layout) {
  const absl::StatusOr<TrafficForecast> traffic = ForecastTraffic(config, layout);
  if (!traffic.ok()) return;
  const std::string text = TrafficText(*traffic, /*per_million=*/false);
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    Log(LogLevel::kInfo, kRunLog, {config.name}, line);
  }
}

// A buffered run answers about updates that are so many versions older than the round that chose them.
Retention RetentionOf(const RunConfig& config) {
  const int64_t rounds = config.ledger_keep_rounds;
  return {rounds == 0 ? 0 : std::max(rounds, config.rounds.staleness), config.events_keep};
}

}  // namespace

absl::StatusOr<std::unique_ptr<RunHost>> RunHost::Open(Options options) {
  std::unique_ptr<RunHost> host(new RunHost(std::move(options)));
  TERSE_ASSIGN_OR_RETURN(std::unique_ptr<RunStore> store, host->options_.stores->Open(host->directory()));
  RemoveStaleBackups(host->directory());
  TERSE_RETURN_IF_ERROR(host->Prepare(store.get()));
  TERSE_ASSIGN_OR_RETURN(std::unique_ptr<Live> live, host->Resume(std::move(store)));
  absl::MutexLock lock(&host->mutex_);
  host->live_ = std::move(live);
  return host;
}

RunHost::~RunHost() {
  if (thread_.joinable()) Stop().IgnoreError();
}

absl::Status RunHost::Prepare(RunStore* store) {
  TERSE_ASSIGN_OR_RETURN(absl::optional<RunRecord> stored, store->Run());
  TERSE_ASSIGN_OR_RETURN(wire_config_, ChooseConfig(options_.plan, stored));
  TERSE_ASSIGN_OR_RETURN(config_, ToCore(wire_config_));
  TERSE_RETURN_IF_ERROR(PrepareRelay(stored));
  if (learning_ == nullptr) {
    TERSE_ASSIGN_OR_RETURN(const std::string module, ReadModule(PosixFiles(), directory(), config_.model));
    RunConfig learned = config_;
    // Whether an evaluation can reach a limit is asked when a run is made: earlier releases did not ask.
    if (stored.has_value()) learned.limits = RunLimits();
    TERSE_ASSIGN_OR_RETURN(learning_, options_.make_learning(learned, module));
  }
  TERSE_ASSIGN_OR_RETURN(codec_, MakeUpdateCodec(config_, learning_->layout()));
  if (SharesHistory(config_)) {
    TERSE_RETURN_IF_ERROR(UpdateHistories::Check(*codec_));
    histories_ = std::make_unique<UpdateHistories>(codec_.get());
  }
  spool_ = std::make_unique<UpdateSpool>(directory());
  if (options_.trace_rounds > 0) traces_ = std::make_unique<RoundTraces>(options_.trace_rounds, options_.clock);
  TERSE_ASSIGN_OR_RETURN(downstream_codec_, MakeDownstreamCodec(config_, learning_->layout()));
  if (!stored.has_value()) {
    TERSE_RETURN_IF_ERROR(CreateRun(config_, wire_config_, *learning_, options_.plan.relay, options_.clock, store));
    is_new_ = true;
    TERSE_ASSIGN_OR_RETURN(stored, store->Run());
  }
  TERSE_RETURN_IF_ERROR(store->SetRetention(RetentionOf(config_)));
  lineage_ = stored->lineage;
  absl::MutexLock lock(&mutex_);
  last_record_ = *std::move(stored);
  return absl::OkStatus();
}

absl::Status RunHost::PrepareRelay(const absl::optional<RunRecord>& stored) {
  const std::string bytes = stored.has_value()                ? stored->relay
                            : options_.plan.relay.has_value() ? options_.plan.relay->facts
                                                              : std::string();
  if (bytes.empty() != (options_.relay.upstream == nullptr)) {
    return absl::FailedPreconditionError(
        bytes.empty() ? absl::StrCat(directory(), " holds a run of a coordinator; serve it with terse-coordinator")
                      : absl::StrCat(directory(), " holds a run of a relay; serve it with terse-relay"));
  }
  if (bytes.empty()) return absl::OkStatus();
  TERSE_ASSIGN_OR_RETURN(RelayFacts facts, ParseRelayFacts(bytes));
  config_ = RelayConfig(std::move(config_), options_.relay.rounds);
  relay_ = RelaySetup{options_.relay.upstream, facts.family, facts.start_hash, facts.shards, options_.relay.rounds};
  learning_ = std::make_shared<RelayLearning>(std::move(facts.layout),
                                              stored.has_value() ? std::vector<float>() : options_.plan.relay->weights);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<RunHost::Live>> RunHost::Resume(std::unique_ptr<RunStore> store) {
  auto live = std::make_unique<Live>();
  auto logged = std::make_unique<LoggedStore>(
      name(), options_.wrap_store ? options_.wrap_store(name(), std::move(store)) : std::move(store));
  const auto log_event = [logged = logged.get()](const EventRecord& event) { logged->LogEvent(event); };
  live->store = std::move(logged);
  live->loop = std::make_shared<EventLoop>(options_.clock);
  live->worker = std::make_unique<BackgroundWorker>(learning_->evaluator(), live->store.get(), config_.checkpoint_keep,
                                                    [this, loop = live->loop](Event event) {
                                                      const auto* written = std::get_if<CheckpointWritten>(&event);
                                                      // Also when nobody listens any more: the store is about to be
                                                      // opened again.
                                                      if (written != nullptr && IsSyncFailure(written->status))
                                                        options_.on_sync_failure(written->status);
                                                      loop->Post(std::move(event));
                                                    });
  TERSE_ASSIGN_OR_RETURN(live->engine,
                         Engine::Resume({config_, codec_.get(), downstream_codec_.get(), live->store.get(),
                                         live->worker.get(), options_.clock, log_event, histories_.get(), kCatchUpBytes,
                                         MostLogBytes(), evaluates(), relay_}));
  return live;
}

void RunHost::Start() {
  if (is_new_ && !relay_.has_value()) LogTraffic(config_, codec_->layout());
  // A reader's share: who asks the engine already holds one, and waits for the thread.
  absl::ReaderMutexLock lock(&mutex_);
  thread_ = std::thread(&RunHost::Supervise, this, live_.get());
}

absl::Status RunHost::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    if (live_ != nullptr) live_->loop->Quit();
  }
  if (thread_.joinable()) thread_.join();
  return ended_;
}

absl::Status RunHost::Retire(absl::FunctionRef<absl::Status()> unname, const std::string& reason) {
  absl::optional<absl::Status> status;
  const auto finish = [&](Live* live) {
    // A checkpoint that is being written would find no directory after the renaming.
    if (live != nullptr) live->worker.reset();
    status = unname();
    if (live == nullptr) return;
    if (status->ok()) {
      live->engine->EndSessions(reason);
    } else {
      live->engine->DropSessions(absl::StrCat("run '", name(), "' is down for now"));
    }
    live->loop->Quit();
  };
  Live* live = nullptr;
  std::shared_ptr<EventLoop> loop;
  {
    absl::ReaderMutexLock lock(&mutex_);
    live = live_.get();
    if (live != nullptr) loop = live->loop;
  }
  // In the engine's thread: what clients say meanwhile waits, and this is the next that they hear. Fails when the run
  // came down just now; then there is no such thread.
  if (loop != nullptr) loop->Call([&] { finish(live); }).IgnoreError();
  Stop().IgnoreError();  // how its thread ended matters to nobody any more
  std::unique_ptr<Live> ended;
  {
    absl::MutexLock lock(&mutex_);
    ended = TakeLive();
    condition_ = Condition::kDown;
    why_ = absl::NotFoundError(reason);
  }
  if (!status.has_value()) finish(ended.get());
  ended.reset();
  absl::MutexLock lock(&mutex_);
  if (status->ok()) {
    learning_.reset();  // as large as the model and its data
  } else {
    why_ = *status;
  }
  return *status;
}

void RunHost::Supervise(Live* live) {
  while (true) {
    absl::Status status = live->loop->Run(live->engine.get());
    if (status.ok()) {
      ended_ = Conclude(live);
      return;
    }
    if (IsSyncFailure(status)) options_.on_sync_failure(status);
    TakeDown(IsDiskTrouble(status) ? Condition::kSuspended : Condition::kDown, status);
    if (!IsDiskTrouble(status)) return;
    const absl::StatusOr<Live*> recovered = Recover();
    if (absl::IsCancelled(recovered.status())) return;
    if (!recovered.ok()) return SetCondition(Condition::kDown, recovered.status());
    live = *recovered;
  }
}

// An evaluation that is under way counts: nothing else has its weights. A run that was retired has no worker any more.
absl::Status RunHost::Conclude(Live* live) {
  if (live->worker != nullptr) {
    live->worker->Finish();
    TERSE_RETURN_IF_ERROR(live->loop->HandleResults(live->engine.get()));
  }
  return live->engine->Close();
}

std::unique_ptr<RunHost::Live> RunHost::TakeLive() {
  if (live_ == nullptr) return nullptr;
  last_view_ = live_->engine->View();
  absl::StatusOr<absl::optional<RunRecord>> record = live_->store->Run();
  if (record.ok() && record->has_value()) last_record_ = **std::move(record);
  // Up to a gigabyte, which only the engine that has ended could use; the next one begins with none.
  if (histories_ != nullptr) histories_->Clear();
  return std::move(live_);
}

void RunHost::TakeDown(Condition condition, const absl::Status& why) {
  std::unique_ptr<Live> ended;
  {
    absl::MutexLock lock(&mutex_);
    ended = TakeLive();
  }
  Log(LogLevel::kError, kRunLog, {name()}, absl::StrCat("the run is ", ConditionName(condition), ": ", why.message()));
  ended->engine->DropSessions(absl::StrCat("run '", name(), "' is ", ConditionName(condition), " for now"));
  SetCondition(condition, why);
}

absl::StatusOr<RunHost::Live*> RunHost::Recover() {
  const absl::Time since = absl::Now();
  for (absl::Duration wait = kFirstRetry; Sleep(wait); wait = std::min(wait * 2, kMaxRetry)) {
    const absl::StatusOr<Live*> live = Reopen(since);
    if (live.ok()) {
      options_.on_change(*this);
      return live;
    }
    if (IsSyncFailure(live.status())) options_.on_sync_failure(live.status());
    if (!IsDiskTrouble(live.status())) return live;
    Log(LogLevel::kWarn, kRunLog, {name()}, absl::StrCat("the run is still suspended: ", live.status().message()));
  }
  return absl::CancelledError("the process ends");
}

absl::StatusOr<RunHost::Live*> RunHost::Reopen(absl::Time since) {
  TERSE_ASSIGN_OR_RETURN(std::unique_ptr<RunStore> store, options_.stores->Open(directory()));
  const std::string lasted = absl::FormatDuration(absl::Trunc(absl::Now() - since, absl::Milliseconds(1)));
  TERSE_RETURN_IF_ERROR(
      store->AddEvent({options_.clock->NowMicros(), event::kRunSuspended, 0, -1, absl::StrCat("for ", lasted)}));
  TERSE_ASSIGN_OR_RETURN(std::unique_ptr<Live> live, Resume(std::move(store)));
  Log(LogLevel::kInfo, kRunLog, {name()}, absl::StrCat("the run is served again, after ", lasted));
  absl::MutexLock lock(&mutex_);
  live_ = std::move(live);
  condition_ = Condition::kServing;  // here: from now on, who waits for the event loop may hold a share of the lock
  why_ = absl::OkStatus();
  if (stopping_) live_->loop->Quit();
  return live_.get();
}

void RunHost::SetCondition(Condition condition, const absl::Status& why) {
  {
    absl::MutexLock lock(&mutex_);
    condition_ = condition;
    why_ = why;
  }
  options_.on_change(*this);
}

bool RunHost::Sleep(absl::Duration wait) const {
  absl::MutexLock lock(&mutex_);
  return !mutex_.AwaitWithTimeout(absl::Condition(&stopping_), wait);
}

int64_t RunHost::MostLogBytes() const { return max_queued_bytes() / 2; }

int64_t RunHost::max_queued_bytes() const {
  return kQueueBytesFloor + 8 * codec_->layout().size() * int64_t{sizeof(float)};
}

RunHost::Condition RunHost::condition() const {
  absl::ReaderMutexLock lock(&mutex_);
  return condition_;
}

std::string RunHost::Trouble() const {
  absl::ReaderMutexLock lock(&mutex_);
  if (condition_ == Condition::kServing) return "";
  return absl::StrCat(ConditionName(condition_), ": ", why_.message());
}

EngineView RunHost::View() const {
  absl::ReaderMutexLock lock(&mutex_);
  return live_ != nullptr ? live_->engine->View() : last_view_;
}

absl::StatusOr<RunRecord> RunHost::Record() const {
  absl::ReaderMutexLock lock(&mutex_);
  if (live_ == nullptr) return last_record_;
  TERSE_ASSIGN_OR_RETURN(absl::optional<RunRecord> run, live_->store->Run());
  if (!run.has_value()) return absl::NotFoundError("the store holds no run");
  return *std::move(run);
}

absl::StatusOr<std::shared_ptr<EventLoop>> RunHost::Loop() const {
  absl::ReaderMutexLock lock(&mutex_);
  if (live_ != nullptr) return live_->loop;
  return absl::UnavailableError(absl::StrCat("run '", name(), "' is ", ConditionName(condition_), " for now"));
}

absl::Status RunHost::Use(absl::FunctionRef<absl::Status(const Live&)> use) const {
  absl::ReaderMutexLock lock(&mutex_);
  if (live_ != nullptr) return use(*live_);
  return absl::FailedPreconditionError(
      absl::StrCat("run '", name(), "' is ", ConditionName(condition_), ": ", why_.message()));
}

absl::StatusOr<ExportedModel> RunHost::Export(v1::ExportRequest::Format format) const {
  ExportedModel model;
  std::vector<float> weights;
  std::shared_ptr<const RunLearning> learning;  // the run may be deleted while the file is made
  TERSE_RETURN_IF_ERROR(Use([&](const Live& live) {
    learning = learning_;
    return live.loop->Call([&] {
      weights = live.engine->weights();
      model.version = live.engine->View().head.version;
    });
  }));
  TERSE_ASSIGN_OR_RETURN(model.bytes, WriteModelAs(format, weights, *learning));
  return model;
}

absl::StatusOr<std::string> RunHost::WriteModelAs(v1::ExportRequest::Format format, absl::Span<const float> weights,
                                                  const RunLearning& learning) const {
  switch (format) {
    case v1::ExportRequest::FORMAT_TORCHSCRIPT:
      return learning.ExportTorchScript(weights);
    case v1::ExportRequest::FORMAT_SAFETENSORS:
      return ExportSafetensors(codec_->layout(), weights);
    case v1::ExportRequest::FORMAT_NPZ:
      return ExportNpz(codec_->layout(), weights);
    case v1::ExportRequest::FORMAT_VOCABULARY: {
      TERSE_ASSIGN_OR_RETURN(const std::vector<std::string> symbols, learning.Vocabulary());
      return symbols.empty() ? std::string() : ExportVocabulary(symbols);
    }
    default:
      return absl::InvalidArgumentError(absl::StrCat("unknown export format; known are ", ExportFormatNames()));
  }
}

}  // namespace terse
