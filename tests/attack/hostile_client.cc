#include "tests/attack/hostile_client.h"

#include <algorithm>

#include "absl/time/clock.h"
#include "compression/run_codecs.h"
#include "gtest/gtest.h"
#include "proto/channel_settings.h"
#include "security/transport.h"

namespace terse {
namespace {

// Far above what a test's model needs.
constexpr int64_t kMaxDeltaBytes = int64_t{64} << 20;

void SetPatience(absl::Duration patience, grpc::ClientContext* context) {
  context->set_deadline(absl::ToChronoTime(absl::Now() + patience));
}

// Reads the chunks of a file to their end.
grpc::Status ReadAll(std::unique_ptr<grpc::ClientReader<v1::FileChunk>> stream, std::string* bytes) {
  v1::FileChunk chunk;
  bytes->clear();
  while (stream->Read(&chunk)) bytes->append(chunk.data());
  return stream->Finish();
}

}  // namespace

HostileSession::HostileSession(v1::Fleet::Stub* stub, std::string name, const Layout& layout, absl::Duration patience)
    : name_(std::move(name)), layout_(layout) {
  SetPatience(patience, &context_);
  stream_ = stub->Session(&context_);
  reader_.set_max_downstream_bytes(kMaxDeltaBytes);
}

bool HostileSession::Say(const FromClient& message) {
  const std::vector<v1::ClientMessage> chunks = ToWire(message);
  return std::all_of(chunks.begin(), chunks.end(), [this](const v1::ClientMessage& chunk) { return Write(chunk); });
}

const FromServer* HostileSession::Read() {
  while (true) {
    while (next_ == incoming_.messages_size()) {
      if (ended_.has_value() || !stream_->Read(&incoming_)) return nullptr;
      next_ = 0;
    }
    absl::StatusOr<absl::optional<FromServer>> message = reader_.Feed(incoming_.messages(next_++));
    EXPECT_TRUE(message.ok()) << message.status();
    if (!message.ok()) return nullptr;
    if (!message->has_value()) continue;  // a part of a delta
    Notice(**message);
    heard_.push_back(**std::move(message));
    return &heard_.back();
  }
}

void HostileSession::Notice(const FromServer& message) {
  const Verdict* verdict = std::get_if<Verdict>(&message);
  if (const auto* welcome = std::get_if<Welcome>(&message)) {
    welcome_ = *welcome;
    if (welcome->verdict.has_value()) verdict = &*welcome_->verdict;
  }
  if (const auto* delta = std::get_if<Downstream>(&message)) version_ = delta->version;
  if (verdict == nullptr) return;
  if (verdict->outcome == Outcome::kApplied) last_applied_ = verdict->update_id;
  if (verdict->outcome == Outcome::kReset) last_applied_ = verdict->last_applied;
}

grpc::Status HostileSession::End() {
  while (Read() != nullptr) {
  }
  if (!ended_.has_value()) ended_ = stream_->Finish();
  return *ended_;
}

std::string HostileSession::Refusal() {
  End();
  for (const FromServer& message : heard_) {
    if (const auto* refusal = std::get_if<terse::Refusal>(&message)) return refusal->reason;
  }
  return "";
}

void HostileSession::Cancel() {
  context_.TryCancel();
  End();
}

bool HostileSession::CheckIn(const std::string& run) {
  terse::CheckIn message;
  message.name = name_;
  message.run = run;
  if (!Say(message) || !Await<Welcome>().has_value()) return false;
  absl::StatusOr<std::unique_ptr<const Codec>> codec = MakeUpdateCodec(*welcome_->config, layout_);
  EXPECT_TRUE(codec.ok()) << codec.status();
  if (!codec.ok()) return false;
  codec_ = *std::move(codec);
  return true;
}

bool HostileSession::SayReady(int64_t version, Id128 hash, int64_t samples) {
  Ready ready;
  ready.version = version;
  ready.model_hash = hash.IsZero() ? welcome_->start_hash : hash;
  ready.layout_hash = layout_.Hash();
  ready.samples = samples;
  return Say(ready);
}

bool HostileSession::Join(const std::string& run) {
  if (!CheckIn(run) || !SayReady()) return false;
  while (version_ < welcome_->head_version) {
    const FromServer* message = Read();
    if (message == nullptr || std::holds_alternative<Resync>(*message)) return false;
  }
  return true;
}

std::string HostileSession::Encode(absl::Span<const float> values, int64_t choice) const {
  EncodeOptions options;
  options.choice = choice;
  absl::StatusOr<std::string> message = codec_->Encode(values, options);
  EXPECT_TRUE(message.ok()) << message.status();
  return message.value_or("");
}

Update HostileSession::MakeUpdate(int64_t round, std::string message) const {
  Update update;
  update.round = round;
  update.update_id = MakeUpdateId(welcome_->lineage, round, welcome_->client_index, last_applied_, message);
  update.train_us = 1000;
  update.loss = 0.5f;
  update.message = std::move(message);
  return update;
}

HostileClient::HostileClient(const std::string& coordinator, const TransportOptions& transport, std::string name,
                             const Layout& layout)
    : name_(std::move(name)), layout_(layout) {
  grpc::ChannelArguments arguments = FleetChannelArguments();
  // A connection of its own for each client, also where two of them are for one address.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  const absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> credentials =
      ConnectWith(transport, coordinator, {Role::kClient}, &arguments);
  EXPECT_TRUE(credentials.ok()) << credentials.status();
  if (credentials.ok()) stub_ = v1::Fleet::NewStub(grpc::CreateCustomChannel(coordinator, *credentials, arguments));
}

std::unique_ptr<HostileSession> HostileClient::Open(absl::Duration patience) const {
  return std::make_unique<HostileSession>(stub_.get(), name_, layout_, patience);
}

grpc::Status HostileClient::DownloadCheckpoint(Id128 lineage, int64_t version, std::string* bytes) const {
  grpc::ClientContext context;
  SetPatience(kHostilePatience, &context);
  v1::CheckpointRequest request;
  request.set_lineage(lineage.ToBytes());
  request.set_version(static_cast<uint64_t>(version));
  return ReadAll(stub_->DownloadCheckpoint(&context, request), bytes);
}

grpc::Status HostileClient::DownloadModule(Id128 lineage, std::string* bytes) const {
  grpc::ClientContext context;
  SetPatience(kHostilePatience, &context);
  v1::ModuleRequest request;
  request.set_lineage(lineage.ToBytes());
  return ReadAll(stub_->DownloadModule(&context, request), bytes);
}

}  // namespace terse
