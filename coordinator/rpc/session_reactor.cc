#include "coordinator/rpc/session_reactor.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "compression/bundle.h"
#include "coordinator/log_components.h"
#include "coordinator/message_checks.h"
#include "coordinator/rpc/round_traces.h"
#include "coordinator/rpc/session_lines.h"
#include "core/log/log.h"
#include "core/status.h"

namespace terse {
namespace {

// A check-in has four ids and two names.
constexpr size_t kMaxCheckInBytes = 1024;
// A message that was cleared keeps its memory, which spares small ones the allocator; what has more gives it back.
constexpr size_t kKeptBytes = 4096;

template <typename Message>
void Free(Message* message) {
  message->ByteSizeLong() > kKeptBytes ? Message().Swap(message) : message->Clear();
}

}  // namespace

SessionReactor::SessionReactor(const FleetEdge& edge, SessionId id, grpc::CallbackServerContext* context)
    : runs_(edge.runs),
      id_(id),
      context_(context),
      peer_(edge.gatekeeper, *context->auth_context()),
      watch_(std::make_shared<WriteWatch>(context, edge.unread_timeout)),
      writes_(edge.writes),
      meter_(context->peer(), edge.accepted) {}

SessionReactor* SessionReactor::Start(const FleetEdge& edge, SessionId id, grpc::CallbackServerContext* context) {
  std::shared_ptr<SessionReactor> reactor(new SessionReactor(edge, id, context));
  reactor->self_ = reactor;
  reactor->ReadNext();
  return reactor.get();
}

void SessionReactor::OnReadDone(bool ok) {
  if (ok && Accept()) return;
  if (ok) return ReadNext();
  absl::MutexLock lock(&mutex_);
  read_closed_ = true;
  meter_.Read();  // the last look at the connection while it is surely open
  if (!writing_) FinishOnce();
}

void SessionReactor::ReadNext() {
  const absl::Duration wait = ReadingPause();
  if (wait > absl::ZeroDuration()) return slow_down_.Then(wait, [self = shared_from_this()] { self->ReadNext(); });
  absl::MutexLock lock(&mutex_);
  // A refused session is not read any further: it ends once the refusal is written.
  if (!refused_ && !finished_) StartRead(&incoming_);
}

absl::Duration SessionReactor::ReadingPause() {
  const absl::Duration bytes = peer_.Spend(0);
  absl::MutexLock lock(&mutex_);
  // A session that ends has nothing to wait for.
  return refused_ || finished_ || read_closed_ ? absl::ZeroDuration() : std::max(bytes, budget_.Wait(absl::Now()));
}

bool SessionReactor::Accept() {
  Wire();  // a look while the connection is surely open, should it be reset before the engine asks
  peer_.Spend(static_cast<int64_t>(incoming_.ByteSizeLong()));
  absl::StatusOr<absl::optional<FromClient>> message = run_ == nullptr ? Bind() : Parse();
  if (!message.ok()) {
    Refuse(message.status());
    return false;
  }
  Free(&incoming_);
  if (!message->has_value()) return false;
  {
    absl::MutexLock lock(&mutex_);
    budget_.Take(absl::Now());
  }
  loop_->Post(Received{id_, **std::move(message)}, [self = self_](bool handled) { self->OnHandled(handled); });
  return true;
}

absl::StatusOr<absl::optional<FromClient>> SessionReactor::Bind() {
  if (!incoming_.has_check_in() || incoming_.ByteSizeLong() > kMaxCheckInBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a session begins with a check-in of at most ", kMaxCheckInBytes, " bytes"));
  }
  ClientMessageReader reader(/*max_update_bytes=*/0);
  TERSE_ASSIGN_OR_RETURN(absl::optional<FromClient> message, reader.Feed(incoming_));
  const CheckIn& check_in = std::get<CheckIn>(*message);
  name_ = check_in.name;
  TERSE_RETURN_IF_ERROR(peer_.CheckName(check_in.name));
  if (check_in.relay) TERSE_RETURN_IF_ERROR(peer_.CheckRelay());
  const absl::StatusOr<RunHost*> run = runs_->FindFor(check_in.name, check_in.run);
  if (!run.ok()) {
    // The daemons of a fleet may be there before its first run.
    if (runs_->runs().empty()) return absl::UnavailableError(run.status().message());
    return absl::FailedPreconditionError(run.status().message());
  }
  TERSE_RETURN_IF_ERROR(ValidateMessage((*run)->codec(), *message));
  TERSE_ASSIGN_OR_RETURN(loop_, (*run)->Loop());
  run_ = *run;
  LogReceived(*message);
  {
    absl::MutexLock lock(&mutex_);
    due_.OnReceived(check_in);
  }
  reader_.emplace(check_in.relay ? kMostBundleBytes : run_->codec().MaxMessageBytes());
  loop_->Post(Connected{id_, self_});
  return message;
}

absl::StatusOr<absl::optional<FromClient>> SessionReactor::Parse() {
  RoundTraces* const traces = run_->traces();
  if (traces != nullptr && incoming_.has_update() && incoming_.update().has_header()) {
    traces->UploadBegan(static_cast<int64_t>(incoming_.update().header().round()), name_);
  }
  TERSE_ASSIGN_OR_RETURN(absl::optional<FromClient> message, reader_->Feed(incoming_));
  if (message.has_value()) {
    const auto* const update = std::get_if<Update>(&*message);
    if (update != nullptr && update->cohort.clients > 0) TERSE_RETURN_IF_ERROR(peer_.CheckRelay());
    const bool is_due = update == nullptr || IsDue(*update);
    TERSE_RETURN_IF_ERROR(TakeMessage(run_->codec(), run_->histories(), Client(), &*message, is_due));
    if (absl::Status put_away = PutAway(run_->spool(), &*message); !put_away.ok()) {
      loop_->Post(SpoolFailed{put_away});
      return absl::UnavailableError(put_away.message());
    }
    LogReceived(*message);
    if (traces != nullptr && update != nullptr) traces->Received(std::get<Update>(*message), name_);
  }
  return message;
}

void SessionReactor::TraceSent(const FromServer& message) {
  RoundTraces* const traces = run_ == nullptr ? nullptr : run_->traces();
  if (traces == nullptr) return;
  if (const auto* const assignment = std::get_if<Assignment>(&message)) {
    traced_round_ = assignment->round;
    traces->Assigned(traced_round_, name_);
  } else if (const auto* const verdict = std::get_if<Verdict>(&message)) {
    traces->Decided(traced_round_, name_, verdict->outcome);
  }
}

void SessionReactor::LogReceived(const FromClient& message) {
  if (!IsLogged(LogLevel::kDebug, kSessionLog)) return;
  const SessionLine line = Describe(message);
  WriteLine(line.round, line.text);
  absl::MutexLock lock(&mutex_);
  if (!line.update_id.IsZero()) logged_update_ = line;
}

void SessionReactor::LogSent(const FromServer& message) const {
  if (!IsLogged(LogLevel::kDebug, kSessionLog)) return;
  const SessionLine line = Describe(message);
  const bool about_update = !line.update_id.IsZero() && line.update_id == logged_update_.update_id;
  WriteLine(about_update ? logged_update_.round : line.round, line.text);
}

void SessionReactor::WriteLine(int64_t round, absl::string_view text) const {
  Log(LogLevel::kDebug, kSessionLog, {run_ != nullptr ? run_->name() : "", round, name_}, text);
}

void SessionReactor::Refuse(const absl::Status& why) {
  // A run tells of its own refusals; who comes back by itself would say so again and again.
  if (run_ == nullptr && !absl::IsUnavailable(why)) {
    Log(LogLevel::kWarn, kSessionLog, {{}, 0, name_},
        absl::StrCat("refused a client at ", context_->peer(), ": ", why.message()));
  }
  if (!absl::IsInvalidArgument(why)) {
    Send({{Refusal{std::string(why.message()), /*retry=*/absl::IsUnavailable(why)}}});
    return;
  }
  const std::string reason = absl::StrCat("this session sent something unusable: ", why.message());
  if (run_ != nullptr) loop_->Post(Misbehaved{id_, reason});
  Send({{Refusal{reason, /*retry=*/false}}});
}

void SessionReactor::OnHandled(bool handled) {
  // A dropped message is still on the client's disk; a run that is served again soon asks for it.
  if (!handled && !IsOver()) Send({{Refusal{"the run is not served at the moment", /*retry=*/true}}});
  ReadNext();
}

void SessionReactor::Send(ToClient words) {
  absl::MutexLock lock(&mutex_);
  for (const FromServer& message : words.messages) Enqueue(message);
  tell_when_drained_ = tell_when_drained_ || words.tell_when_drained;
  if (words.may_wait) return;
  WriteNext();
  TellIfDrained();
}

const v1::RunConfig& SessionReactor::Config() const {
  static const v1::RunConfig* const none = new v1::RunConfig();
  return run_ != nullptr ? run_->wire_config() : *none;
}

int64_t SessionReactor::Client() {
  absl::MutexLock lock(&mutex_);
  return client_;
}

bool SessionReactor::IsDue(const Update& update) {
  absl::MutexLock lock(&mutex_);
  return due_.Take(update);
}

bool SessionReactor::IsOver() {
  absl::MutexLock lock(&mutex_);
  return over_;
}

void SessionReactor::Enqueue(const FromServer& message) {
  if (finished_ || refused_ || overflowed_ || read_closed_) return;
  LogSent(message);
  TraceSent(message);
  refused_ = std::holds_alternative<Refusal>(message);
  if (refused_) {
    // Nothing that waits is of use to a client that has to begin anew, and a peer that does not read would hold it.
    outbox_.Clear();
    watch_->Hurry();
  }
  due_.OnSent(message);
  if (const auto* assignment = std::get_if<Assignment>(&message)) budget_.OnAssigned(assignment->round);
  over_ = over_ || std::holds_alternative<Finished>(message);
  if (const auto* welcome = std::get_if<Welcome>(&message)) client_ = welcome->client_index;
  outbox_.Add(message, Config());
  overflowed_ = run_ != nullptr && outbox_.bytes() > run_->max_queued_bytes();
  if (overflowed_) {
    watch_->EndNow(absl::StrCat("for which ", outbox_.bytes(), " bytes wait unread"));
    outbox_.Clear();
  }
}

void SessionReactor::WriteNext() {
  if (writing_ || finished_) return;
  share_ = writes_->Take(outbox_.bytes());
  if (!outbox_.TakeBatch(share_.bytes(), &outgoing_)) {
    if (refused_) FinishOnce();
    return;
  }
  peer_.Spend(static_cast<int64_t>(outgoing_.ByteSizeLong()));
  writing_ = true;
  watch_->Began();
  StartWrite(&outgoing_);
}

void SessionReactor::OnWriteDone(bool ok) {
  absl::MutexLock lock(&mutex_);
  writing_ = false;
  Free(&outgoing_);
  share_ = {};
  watch_->Done();
  if (!ok || read_closed_) {
    FinishOnce();
  } else {
    WriteNext();
    TellIfDrained();
  }
}

void SessionReactor::TellIfDrained() {
  if (!tell_when_drained_ || writing_ || finished_) return;
  tell_when_drained_ = false;
  loop_->Post(Drained{id_});
}

void SessionReactor::FinishOnce() {
  if (finished_) return;
  finished_ = true;
  meter_.Read();
  Finish(grpc::Status::OK);
}

void SessionReactor::OnDone() {
  watch_->Close();
  WriteLine(0, "its connection has ended");
  if (loop_ != nullptr) loop_->Post(Disconnected{id_});
  {
    absl::MutexLock lock(&mutex_);
    finished_ = true;
  }
  const std::shared_ptr<SessionReactor> last_share = std::move(self_);
}

int64_t SessionReactor::WaitingBytes() {
  absl::MutexLock lock(&mutex_);
  return outbox_.bytes();
}

WireBytes SessionReactor::Wire() {
  absl::MutexLock lock(&mutex_);
  return meter_.Read();
}

}  // namespace terse
