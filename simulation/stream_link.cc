#include "simulation/stream_link.h"

#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "client/rpc/file_download.h"
#include "core/status.h"
#include "proto/channel_settings.h"
#include "security/transport.h"

namespace terse {

absl::StatusOr<std::unique_ptr<StreamLink>> StreamLink::Start(const std::string& address, SharedDownloads* shared,
                                                              const std::atomic<bool>* stopping, OnArrival on_arrival) {
  // These give every channel a connection of its own.
  grpc::ChannelArguments arguments = FleetChannelArguments();
  TERSE_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::ChannelCredentials> credentials,
                         ConnectWith({}, address, {Role::kClient}, &arguments));
  auto link = absl::WrapUnique(new StreamLink(grpc::CreateCustomChannel(address, credentials, arguments), shared,
                                              stopping, std::move(on_arrival)));
  link->stub_->async()->Session(&link->context_, link.get());
  // Until the stream has been read to its end, messages may be sent from other threads than gRPC's.
  link->AddHold();
  link->StartRead(&link->incoming_);
  link->StartCall();
  return link;
}

StreamLink::StreamLink(std::shared_ptr<grpc::Channel> channel, SharedDownloads* shared,
                       const std::atomic<bool>* stopping, OnArrival on_arrival)
    : stub_(v1::Fleet::NewStub(std::move(channel))),
      shared_(shared),
      stopping_(stopping),
      on_arrival_(std::move(on_arrival)) {}

absl::Status StreamLink::Send(const FromClient& message) {
  std::vector<v1::ClientMessage> chunks = ToWire(message);
  absl::MutexLock lock(&mutex_);
  if (ended_ || closing_) return absl::UnavailableError("the connection to the coordinator is gone");
  const bool writing = !outbox_.empty();
  for (v1::ClientMessage& chunk : chunks) outbox_.push_back(std::move(chunk));
  if (!writing) WriteNext();
  return absl::OkStatus();
}

void StreamLink::WriteNext() {
  if (!outbox_.empty()) {
    StartWrite(&outbox_.front());
  } else if (closing_) {
    StartWritesDone();
  }
}

void StreamLink::SetMaxDownstreamBytes(int64_t bytes) {
  absl::MutexLock lock(&mutex_);
  reader_.set_max_downstream_bytes(bytes);
}

absl::StatusOr<std::string> StreamLink::DownloadCheckpoint(Id128 lineage, int64_t version, int64_t max_bytes) {
  return shared_->Checkpoint(version, [&] {
    return DownloadCheckpointFile({stub_.get(), Spoke::kCleartext, stopping_}, lineage, version, max_bytes);
  });
}

absl::StatusOr<std::string> StreamLink::DownloadModule(Id128 lineage, int64_t max_bytes) {
  return DownloadModuleFile({stub_.get(), Spoke::kCleartext, stopping_}, lineage, max_bytes);
}

void StreamLink::Close() {
  absl::MutexLock lock(&mutex_);
  if (ended_ || closing_) return;
  closing_ = true;
  if (outbox_.empty()) WriteNext();
}

absl::Status StreamLink::Accept() {
  for (const v1::ServerMessage& message : incoming_.messages()) {
    absl::StatusOr<absl::optional<FromServer>> read = absl::optional<FromServer>();
    {
      absl::MutexLock lock(&mutex_);
      read = reader_.Feed(message);
    }
    if (!read.ok()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the coordinator sent a message that this release does not understand: ", read.status().message()));
    }
    if (!read->has_value()) continue;
    if (auto* const downstream = std::get_if<Downstream>(&**read)) shared_->Share(downstream);
    on_arrival_(**std::move(read));
  }
  return absl::OkStatus();
}

void StreamLink::OnReadDone(bool ok) {
  if (ok) {
    const absl::Status accepted = Accept();
    // Protobuf would keep the memory of the largest message of each client.
    v1::ServerMessages fresh;
    incoming_.Swap(&fresh);
    if (accepted.ok()) return StartRead(&incoming_);
    absl::MutexLock lock(&mutex_);
    unusable_ = accepted;
    context_.TryCancel();
  }
  {
    absl::MutexLock lock(&mutex_);
    ended_ = true;
  }
  RemoveHold();
}

void StreamLink::OnWriteDone(bool ok) {
  absl::MutexLock lock(&mutex_);
  outbox_.pop_front();
  if (ok) WriteNext();
}

void StreamLink::OnDone(const grpc::Status& status) {
  absl::Status end = EndOfStream(status, Spoke::kCleartext);
  {
    absl::MutexLock lock(&mutex_);
    if (!unusable_.ok()) end = unusable_;
  }
  // The listener may destroy the link before the call returns.
  const OnArrival on_arrival = on_arrival_;
  on_arrival(std::move(end));
}

}  // namespace terse
