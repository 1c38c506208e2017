#include <google/protobuf/stubs/logging.h>

#include <string>
#include <vector>

#include "proto/session_wire.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/targets.h"

namespace terse {
namespace {

// protobuf reports every text that is not UTF-8 on stderr.
void SilenceProtobuf() {
  static const auto before = google::protobuf::SetLogHandler(nullptr);
  static_cast<void>(before);
}

void RequireInvalid(const absl::Status& status) {
  Require(status.code() == absl::StatusCode::kInvalidArgument, "a message that no peer sends is an INVALID_ARGUMENT");
  Require(!status.message().empty(), "the status says what is wrong");
}

// Feeds the messages of one stream, each behind its length (2 bytes), until one is refused, as a connection does.
// `see` hears every message that came out with the wire message that completed it.
template <typename Wire, typename Reader, typename See>
void FeedStream(Input* input, Reader* reader, See see) {
  static Wire& wire = *new Wire;
  while (!input->empty()) {
    const absl::string_view bytes = input->Take(input->Word16());
    if (!wire.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
    auto fed = reader->Feed(wire);
    if (!fed.ok()) return RequireInvalid(fed.status());
    see(wire, *fed);
  }
}

// Returns what the wire messages of one engine message come out as at the other end.
template <typename Reader, typename Wire>
auto Received(Reader reader, const std::vector<Wire>& messages) {
  for (size_t i = 0; i + 1 < messages.size(); ++i) {
    const auto fed = reader.Feed(messages[i]);
    Require(fed.ok() && !fed->has_value(), "a payload is incomplete until its last chunk");
  }
  auto last = reader.Feed(messages.back());
  Require(last.ok() && last->has_value(), "what was read can be sent and read again");
  return *std::move(*last);
}

template <typename Wire>
std::string Bytes(const std::vector<Wire>& messages) {
  std::string bytes;
  for (const Wire& message : messages) message.AppendToString(&bytes);
  return bytes;
}

}  // namespace

void FuzzClientMessage(const char*, const uint8_t* data, size_t size) {
  SilenceProtobuf();
  Input input(data, size);
  const int64_t limit = 1 + input.Word16();
  ClientMessageReader reader(limit);
  v1::UpdateHeader header;
  FeedStream<v1::ClientMessage>(&input, &reader, [&](const v1::ClientMessage& wire, const auto& read) {
    if (wire.update().has_header()) header = wire.update().header();
    if (!read.has_value()) return;
    if (const auto* update = std::get_if<Update>(&*read)) {
      Require(update->message.size() == header.size(), "a payload is as long as its header says");
      Require(static_cast<int64_t>(header.size()) <= limit, "a payload is no longer than the limit");
      Require(update->packed == header.packed(), "an update is packed when its header says so");
    }
    const std::vector<v1::ClientMessage> sent = ToWire(*read);
    Require(Bytes(ToWire(Received(ClientMessageReader(limit), sent))) == Bytes(sent), "a message has one form");
  });
}

void FuzzServerMessage(const char*, const uint8_t* data, size_t size) {
  SilenceProtobuf();
  Input input(data, size);
  const int64_t limit = input.Word16();
  ServerMessageReader reader;
  reader.set_max_downstream_bytes(limit);
  uint64_t announced = 0;
  FeedStream<v1::ServerMessage>(&input, &reader, [&](const v1::ServerMessage& wire, const auto& read) {
    if (wire.downstream().has_header()) announced = wire.downstream().header().size();
    if (!read.has_value()) return;
    if (const auto* downstream = std::get_if<Downstream>(&*read)) {
      Require(downstream->message->size() == announced, "a payload is as long as its header says");
      Require(static_cast<int64_t>(announced) <= limit, "a payload is no longer than the limit");
    } else if (const auto* assignment = std::get_if<Assignment>(&*read)) {
      Require(assignment->packed == wire.assignment().packed(), "an update may be packed when its assignment says so");
    }
    const v1::RunConfig& config = wire.welcome().config();
    const std::vector<v1::ServerMessage> sent = ToWire(*read, config);
    ServerMessageReader again;
    again.set_max_downstream_bytes(limit);
    Require(Bytes(ToWire(Received(std::move(again), sent), config)) == Bytes(sent), "a message has one form");
  });
}

}  // namespace terse
