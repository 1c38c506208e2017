#include "coordinator/rpc/session_reactor.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace terse {

SessionReactor::SessionReactor(const FleetService::Options* options, SessionId id, grpc::CallbackServerContext* context)
    : options_(options), id_(id), context_(context), reader_(options->max_update_bytes), meter_(context->peer()) {}

SessionReactor* SessionReactor::Start(const FleetService::Options* options, SessionId id,
                                      grpc::CallbackServerContext* context) {
  std::shared_ptr<SessionReactor> reactor(new SessionReactor(options, id, context));
  reactor->self_ = reactor;
  options->loop->Post(Connected{id, reactor});
  reactor->StartRead(&reactor->incoming_);
  return reactor.get();
}

void SessionReactor::OnReadDone(bool ok) {
  if (ok) Accept();
  absl::MutexLock lock(&mutex_);
  if (ok) {
    // A refused session is not read any further: it ends once the refusal is written.
    if (!refused_ && !finished_) StartRead(&incoming_);
    return;
  }
  read_closed_ = true;
  meter_.Read();  // the last look at the connection while it is surely open
  if (!writing_) FinishOnce();
}

void SessionReactor::Accept() {
  Wire();  // a look while the connection is surely open, should it be reset before the engine asks
  absl::StatusOr<absl::optional<FromClient>> message = reader_.Feed(incoming_);
  absl::Status status = message.status();
  if (status.ok() && !message->has_value()) return;
  if (status.ok()) status = options_->engine->Validate(**message);
  if (status.ok()) {
    options_->loop->Post(Received{id_, **std::move(message)});
    return;
  }
  Send(Refusal{absl::StrCat("this session sent something unusable: ", status.message()), /*retry=*/false});
}

void SessionReactor::Send(FromServer message) {
  std::vector<v1::ServerMessage> chunks = ToWire(message, options_->config);
  absl::MutexLock lock(&mutex_);
  Enqueue(message, std::move(chunks));
  WriteNext();
}

void SessionReactor::SendLater(FromServer message) {
  std::vector<v1::ServerMessage> chunks = ToWire(message, options_->config);
  absl::MutexLock lock(&mutex_);
  Enqueue(message, std::move(chunks));
}

void SessionReactor::Flush() {
  absl::MutexLock lock(&mutex_);
  WriteNext();
}

void SessionReactor::Enqueue(const FromServer& message, std::vector<v1::ServerMessage> chunks) {
  if (finished_ || refused_ || read_closed_) return;
  refused_ = std::holds_alternative<Refusal>(message);
  for (v1::ServerMessage& chunk : chunks) {
    queued_bytes_ += chunk.ByteSizeLong();
    outbox_.push_back(std::move(chunk));
  }
  if (queued_bytes_ > options_->max_queued_bytes) context_->TryCancel();
}

void SessionReactor::WriteNext() {
  if (writing_ || finished_) return;
  outgoing_.Clear();
  int64_t bytes = 0;
  while (!outbox_.empty()) {
    const int64_t next = outbox_.front().ByteSizeLong();
    if (bytes > 0 && bytes + next > kChunkBytes) break;
    bytes += next;
    *outgoing_.add_messages() = std::move(outbox_.front());
    outbox_.pop_front();
  }
  if (bytes == 0) {
    if (refused_) FinishOnce();
    return;
  }
  queued_bytes_ -= bytes;
  writing_ = true;
  StartWrite(&outgoing_);
}

void SessionReactor::OnWriteDone(bool ok) {
  absl::MutexLock lock(&mutex_);
  writing_ = false;
  if (!ok || read_closed_) {
    FinishOnce();
  } else {
    WriteNext();
  }
}

void SessionReactor::FinishOnce() {
  if (finished_) return;
  finished_ = true;
  meter_.Read();
  Finish(grpc::Status::OK);
}

void SessionReactor::OnDone() {
  options_->loop->Post(Disconnected{id_});
  {
    absl::MutexLock lock(&mutex_);
    finished_ = true;
  }
  const std::shared_ptr<SessionReactor> last_share = std::move(self_);
}

WireBytes SessionReactor::Wire() {
  absl::MutexLock lock(&mutex_);
  return meter_.Read();
}

}  // namespace terse
