#include "bench/fleet/load_session.h"

#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "proto/channel_settings.h"
#include "security/transport.h"

namespace terse {

absl::StatusOr<std::unique_ptr<LoadSession>> LoadSession::Start(const Peer& peer, LoadProtocol* protocol,
                                                                OnSessionNews on_news) {
  // These give every channel a connection of its own.
  grpc::ChannelArguments arguments = FleetChannelArguments();
  TERSE_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::ChannelCredentials> credentials,
                         ConnectWith(peer.transport, peer.address, {Role::kClient}, &arguments));
  auto session = absl::WrapUnique(
      new LoadSession(grpc::CreateCustomChannel(peer.address, credentials, arguments), protocol, std::move(on_news)));
  session->stub_->async()->Session(&session->context_, session.get());
  // Until the stream has been read to its end, Download may write from another thread than gRPC's.
  session->AddHold();
  session->StartRead(&session->incoming_);
  {
    absl::MutexLock lock(&session->mutex_);
    std::vector<v1::ClientMessage> say;
    say.push_back(protocol->CheckIn());
    session->Say(std::move(say));
  }
  session->StartCall();
  return session;
}

LoadSession::LoadSession(std::shared_ptr<grpc::Channel> channel, LoadProtocol* protocol, OnSessionNews on_news)
    : stub_(v1::Fleet::NewStub(std::move(channel))), on_news_(std::move(on_news)), protocol_(protocol) {}

absl::Status LoadSession::end() const {
  absl::MutexLock lock(&mutex_);
  return end_;
}

void LoadSession::OnReadDone(bool ok) {
  if (!ok) return EndReading(absl::OkStatus());  // OnDone has the reason
  absl::Status answered;
  {
    absl::MutexLock lock(&mutex_);
    answered = Answer();
    // Protobuf would keep the memory of the largest message of each client.
    v1::ServerMessages fresh;
    incoming_.Swap(&fresh);
  }
  if (!answered.ok()) return EndReading(answered);
  StartRead(&incoming_);
}

void LoadSession::EndReading(const absl::Status& why) {
  {
    absl::MutexLock lock(&mutex_);
    if (!why.ok()) Fail(why);
    read_to_end_ = true;
  }
  RemoveHold();
}

absl::Status LoadSession::Answer() {
  for (const v1::ServerMessage& message : incoming_.messages()) {
    if (over_) return absl::OkStatus();
    TERSE_ASSIGN_OR_RETURN(LoadProtocol::Reaction reaction, protocol_->On(message));
    over_ = reaction.over;
    Say(std::move(reaction.say));
    if (reaction.welcomed) on_news_(SessionNews::kWelcomed);
    if (reaction.download) on_news_(SessionNews::kDownload);
  }
  return absl::OkStatus();
}

void LoadSession::Say(std::vector<v1::ClientMessage> messages) {
  if (read_to_end_) return;
  const bool writing = !outbox_.empty();
  for (v1::ClientMessage& message : messages) outbox_.push_back(std::move(message));
  if (!writing) WriteNext();
}

void LoadSession::WriteNext() {
  if (!outbox_.empty()) {
    StartWrite(&outbox_.front());
  } else if (over_) {
    StartWritesDone();
  }
}

void LoadSession::OnWriteDone(bool ok) {
  absl::MutexLock lock(&mutex_);
  outbox_.pop_front();
  if (ok) WriteNext();
}

void LoadSession::Fail(const absl::Status& why) {
  if (end_.ok()) end_ = why;
  context_.TryCancel();
}

void LoadSession::OnDone(const grpc::Status& status) {
  {
    absl::MutexLock lock(&mutex_);
    if (end_.ok() && !over_) {
      const bool refused = status.error_code() == grpc::StatusCode::PERMISSION_DENIED;
      end_ = absl::Status(refused ? absl::StatusCode::kPermissionDenied : absl::StatusCode::kUnavailable,
                          absl::StrCat("the connection ended: ", status.error_message()));
    }
  }
  // Those who hear of the end may destroy the session before the call returns.
  const OnSessionNews on_news = on_news_;
  on_news(SessionNews::kEnded);
}

void LoadSession::Download() {
  Id128 lineage;
  int64_t version = 0;
  {
    absl::MutexLock lock(&mutex_);
    lineage = protocol_->lineage();
    version = protocol_->checkpoint_version();
  }
  const absl::StatusOr<std::string> bytes = Fetch(lineage, version);
  absl::MutexLock lock(&mutex_);
  if (over_) return;
  if (absl::IsNotFound(bytes.status())) return Say(protocol_->AskAgain());
  if (!bytes.ok()) return Fail(bytes.status());
  absl::StatusOr<std::vector<v1::ClientMessage>> say = protocol_->OnCheckpoint(*bytes);
  if (!say.ok()) return Fail(say.status());
  Say(*std::move(say));
}

absl::StatusOr<std::string> LoadSession::Fetch(const Id128& lineage, int64_t version) const {
  v1::CheckpointRequest request;
  request.set_lineage(lineage.ToBytes());
  request.set_version(version);
  grpc::ClientContext context;
  const auto stream = stub_->DownloadCheckpoint(&context, request);
  std::string bytes;
  v1::FileChunk chunk;
  while (stream->Read(&chunk)) bytes += chunk.data();
  const grpc::Status status = stream->Finish();
  if (status.error_code() == grpc::StatusCode::NOT_FOUND) return absl::NotFoundError(status.error_message());
  if (status.ok() && bytes.size() == chunk.total()) return bytes;
  return absl::UnavailableError(
      absl::StrCat("the download of checkpoint ", version, " ended: ", status.error_message()));
}

}  // namespace terse
