#include "client/rpc/grpc_link.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/rpc/file_download.h"
#include "core/fault.h"
#include "core/status.h"
#include "proto/channel_settings.h"
#include "security/connection_failure.h"

namespace terse {
namespace {

// How often a wait looks whether the process should stop.
constexpr absl::Duration kStopCheck = absl::Milliseconds(200);
constexpr absl::Duration kCloseTimeout = absl::Seconds(5);
// So many bytes of downstream messages wait for the session at most before nothing more is read.
constexpr int64_t kMaxInboxBytes = int64_t{16} << 20;

// Whether gRPC ended a connection because of its keepalive, or the kernel because nothing was acknowledged for as long.
bool IsSilence(const grpc::Status& end) {
  return absl::StrContains(end.error_message(), "keepalive watchdog timeout") ||
         absl::StrContains(end.error_message(), "ping timeout") || absl::StrContains(end.error_message(), "timed out");
}

// Bytes of the part of a message that may be large.
int64_t BytesOf(const FromServer& message) {
  const auto* downstream = std::get_if<Downstream>(&message);
  return downstream == nullptr ? 0 : static_cast<int64_t>(downstream->message->size());
}

// Why a channel has no connection, which gRPC says only to a call.
absl::Status NoAnswer(const std::string& address, const std::shared_ptr<grpc::Channel>& channel, Spoke spoke) {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + kStopCheck));
  const grpc::Status status = v1::Fleet::NewStub(channel)->Session(&context)->Finish();
  return absl::UnavailableError(
      absl::StrCat("no coordinator answers at ", address, ": ", ConnectionFailureText(status.error_message(), spoke)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<GrpcLink>> GrpcLink::Connect(const Peer& peer, absl::Duration timeout,
                                                            const std::atomic<bool>* stopping) {
  grpc::ChannelArguments arguments = FleetChannelArguments(peer.keepalive_seconds);
  const absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> credentials =
      ConnectWith(peer.transport, peer.address, {RoleWith(peer.transport, Role::kClient)}, &arguments);
  // A certificate that ran out may be renewed any time.
  if (!credentials.ok()) return absl::UnavailableError(credentials.status().message());
  std::shared_ptr<grpc::Channel> channel = grpc::CreateCustomChannel(peer.address, *credentials, arguments);
  const Spoke spoke = IsCleartext(peer.transport, peer.address) ? Spoke::kCleartext : Spoke::kTls;
  const absl::Time deadline = absl::Now() + timeout;
  grpc_connectivity_state state = channel->GetState(/*try_to_connect=*/true);
  for (; state != GRPC_CHANNEL_READY; state = channel->GetState(/*try_to_connect=*/true)) {
    if (stopping->load()) return absl::CancelledError("stopping");
    // After a refusal gRPC would wait by a clock of its own; the caller has a better one.
    if (state == GRPC_CHANNEL_TRANSIENT_FAILURE || absl::Now() >= deadline) {
      return NoAnswer(peer.address, channel, spoke);
    }
    channel->WaitForStateChange(state, absl::ToChronoTime(absl::Now() + kStopCheck));
  }
  return std::unique_ptr<GrpcLink>(new GrpcLink(std::move(channel), spoke, stopping));
}

GrpcLink::GrpcLink(std::shared_ptr<grpc::Channel> channel, Spoke spoke, const std::atomic<bool>* stopping)
    : channel_(std::move(channel)),
      spoke_(spoke),
      stub_(v1::Fleet::NewStub(channel_)),
      stopping_(stopping),
      stream_(stub_->Session(&context_)),
      read_thread_([this] { ReadLoop(); }),
      stop_thread_([this] { CancelSoonAfterStop(); }) {}

GrpcLink::~GrpcLink() {
  Abandon();
  if (!closed_) context_.TryCancel();
  read_thread_.join();
  stop_thread_.join();
}

void GrpcLink::ReadLoop() {
  v1::ServerMessages messages;
  absl::Status unusable;
  while (unusable.ok() && stream_->Read(&messages)) {
    unusable = Accept(messages);
    AwaitRoom();
  }
  if (!unusable.ok()) context_.TryCancel();
  const grpc::Status finished = stream_->Finish();
  absl::MutexLock lock(&mutex_);
  end_ = unusable.ok() ? EndOfStream(finished, spoke_) : unusable;
  fell_silent_ = unusable.ok() && IsSilence(finished);
  ended_ = true;
}

bool GrpcLink::HasRoom() const { return inbox_bytes_ <= kMaxInboxBytes || abandoned_; }

void GrpcLink::AwaitRoom() {
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(this, &GrpcLink::HasRoom));
}

void GrpcLink::Abandon() {
  absl::MutexLock lock(&mutex_);
  abandoned_ = true;
}

// A write waits for as long as the coordinator gives no window, and nothing else ends that wait.
void GrpcLink::CancelSoonAfterStop() {
  absl::MutexLock lock(&mutex_);
  while (!mutex_.AwaitWithTimeout(absl::Condition(&ended_), kStopCheck) && !stopping_->load()) {
  }
  if (mutex_.AwaitWithTimeout(absl::Condition(&ended_), kCloseTimeout)) return;
  abandoned_ = true;
  context_.TryCancel();
}

absl::Status GrpcLink::Accept(const v1::ServerMessages& messages) {
  absl::MutexLock lock(&mutex_);
  for (const v1::ServerMessage& message : messages.messages()) {
    absl::StatusOr<absl::optional<FromServer>> parsed = reader_.Feed(message);
    if (!parsed.ok()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the coordinator sent a message that this release does not understand: ", parsed.status().message()));
    }
    if (!parsed->has_value() || abandoned_) continue;
    inbox_bytes_ += BytesOf(**parsed);
    inbox_.push_back(**std::move(parsed));
  }
  return absl::OkStatus();
}

absl::Status GrpcLink::Send(const FromClient& message) {
  bool is_first = true;
  for (const v1::ClientMessage& chunk : ToWire(message)) {
    if (!is_first) TERSE_FAILPOINT("client.upload.between_chunks");
    is_first = false;
    // A failed write says only that the stream is broken; Receive has the reason.
    if (!stream_->Write(chunk)) return absl::UnavailableError("the connection to the coordinator is gone");
  }
  return absl::OkStatus();
}

absl::StatusOr<FromServer> GrpcLink::Receive() {
  absl::MutexLock lock(&mutex_);
  while (!mutex_.AwaitWithTimeout(absl::Condition(this, &GrpcLink::HasMessage), kStopCheck)) {
    if (stopping_->load()) return absl::CancelledError("stopping");
  }
  if (inbox_.empty()) return end_;
  FromServer message = std::move(inbox_.front());
  inbox_.pop_front();
  inbox_bytes_ -= BytesOf(message);
  ReadWire();  // a look while the connection is surely open; a closed one keeps the last reading
  return message;
}

void GrpcLink::SetMaxDownstreamBytes(int64_t bytes) {
  absl::MutexLock lock(&mutex_);
  reader_.set_max_downstream_bytes(bytes);
}

absl::StatusOr<std::string> GrpcLink::DownloadCheckpoint(Id128 lineage, int64_t version, int64_t max_bytes) {
  return DownloadCheckpointFile({stub_.get(), spoke_, stopping_}, lineage, version, max_bytes);
}

absl::StatusOr<std::string> GrpcLink::DownloadModule(Id128 lineage, int64_t max_bytes) {
  return DownloadModuleFile({stub_.get(), spoke_, stopping_}, lineage, max_bytes);
}

bool GrpcLink::fell_silent() {
  absl::MutexLock lock(&mutex_);
  return fell_silent_;
}

void GrpcLink::Close() {
  if (closed_) return;
  closed_ = true;
  Abandon();
  stream_->WritesDone();
  absl::MutexLock lock(&mutex_);
  const auto ended = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return ended_; };
  if (!mutex_.AwaitWithTimeout(absl::Condition(&ended), kCloseTimeout)) context_.TryCancel();
}

WireBytes GrpcLink::Wire() {
  absl::MutexLock lock(&mutex_);
  return meter_ != nullptr || HasMessage() ? ReadWire() : WireBytes();
}

WireBytes GrpcLink::ReadWire() {
  if (meter_ == nullptr) meter_ = std::make_unique<WireMeter>(context_.peer());
  return meter_->Read();
}

}  // namespace terse
