#include "coordinator/rpc/run_host.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "compression/traffic_forecast.h"
#include "coordinator/log_components.h"
#include "coordinator/rpc/backup_stream.h"
#include "coordinator/rpc/logged_store.h"
#include "core/log/log.h"
#include "core/status.h"
#include "proto/export_formats.h"
#include "storage/event_kinds.h"
#include "storage/model_files.h"

namespace terse {
namespace {

constexpr int64_t kQueueBytesFloor = int64_t{64} << 20;
constexpr absl::Duration kFirstRetry = absl::Milliseconds(200);
constexpr absl::Duration kMaxRetry = absl::Seconds(10);

absl::string_view ConditionName(RunHost::Condition condition) {
  return condition == RunHost::Condition::kSuspended ? "suspended" : "down";
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
