#include "compression/downstream.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "compression/aggregate.h"
#include "compression/dense.h"
#include "core/status.h"

namespace terse {
namespace {

constexpr char kForwardNumber = static_cast<char>(0x81);
constexpr char kDenseNumber = static_cast<char>(0x82);

// LEB128: seven bits a byte, least significant first, the high bit on all but the last.
int64_t VarintBytes(uint64_t value) {
  int64_t bytes = 1;
  for (; value >= 0x80; value >>= 7) ++bytes;
  return bytes;
}

void PutVarint(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

// Takes a shortest-form varint below 2^35 off the front. False when there is none.
bool TakeVarint(absl::string_view* bytes, uint64_t* value) {
  *value = 0;
  for (size_t i = 0; i < bytes->size() && i < 5; ++i) {
    const uint8_t byte = static_cast<uint8_t>((*bytes)[i]);
    *value |= static_cast<uint64_t>(byte & 0x7f) << (7 * i);
    if (byte < 0x80) {
      bytes->remove_prefix(i + 1);
      return i == 0 || byte != 0;
    }
  }
  return false;
}

int64_t ForwardBytes(absl::Span<const absl::string_view> messages) {
  int64_t bytes = 1 + VarintBytes(messages.size());
  for (absl::string_view message : messages) bytes += VarintBytes(message.size()) + message.size();
  return bytes;
}

std::string BuildForward(absl::Span<const absl::string_view> messages) {
  std::string out;
  out.reserve(ForwardBytes(messages));
  out.push_back(kForwardNumber);
  PutVarint(messages.size(), &out);
  for (absl::string_view message : messages) {
    PutVarint(message.size(), &out);
    out.append(message.data(), message.size());
  }
  return out;
}

// Splits the body of a forward message; the views point into it.
absl::StatusOr<std::vector<absl::string_view>> SplitForward(absl::string_view body) {
  uint64_t count = 0;
  // A message takes two bytes at least, so this bounds the memory too.
  if (!TakeVarint(&body, &count) || count < 1 || count > body.size() / 2) {
    return absl::InvalidArgumentError("downstream message with an unusable number of updates; fetch it again");
  }
  std::vector<absl::string_view> messages;
  messages.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t length = 0;
    if (!TakeVarint(&body, &length) || length < 1 || length > body.size()) {
      return absl::InvalidArgumentError(absl::StrCat("downstream message ends in update ", i, "; fetch it again"));
    }
    messages.push_back(body.substr(0, length));
    body.remove_prefix(length);
  }
  if (!body.empty()) return absl::InvalidArgumentError("downstream message with bytes after its last update");
  return messages;
}

}  // namespace

std::string BuildDownstream(DownstreamMode mode, absl::Span<const absl::string_view> messages,
                            absl::Span<const float> average) {
  const int64_t dense_bytes = 1 + 4 * static_cast<int64_t>(average.size());
  const bool forward =
      mode == DownstreamMode::kForward || (mode == DownstreamMode::kAuto && ForwardBytes(messages) <= dense_bytes);
  if (forward) return BuildForward(messages);
  std::string out;
  out.reserve(dense_bytes);
  out.push_back(kDenseNumber);
  AppendFloats(average, &out);
  return out;
}

absl::StatusOr<std::vector<absl::string_view>> ForwardedUpdates(absl::string_view message) {
  if (message.empty() || message[0] != kForwardNumber) return absl::InvalidArgumentError("not a forward message");
  return SplitForward(message.substr(1));
}

int64_t MaxDownstreamBytes(const Codec& codec, int64_t updates) {
  const int64_t dense = 1 + 4 * codec.layout().size();
  const int64_t forward =
      1 + VarintBytes(updates) + updates * (VarintBytes(codec.MaxMessageBytes()) + codec.MaxMessageBytes());
  return std::max(dense, forward);
}

absl::Status ApplyDownstream(const Codec& codec, absl::string_view message, std::vector<float>* scratch,
                             absl::Span<float> weights) {
  const int64_t size = codec.layout().size();
  if (weights.size() != static_cast<size_t>(size)) {
    return absl::InvalidArgumentError(absl::StrCat("the weights have ", weights.size(), " elements, the model ", size));
  }
  scratch->resize(size);
  if (!message.empty() && message[0] == kForwardNumber) {
    TERSE_ASSIGN_OR_RETURN(const std::vector<absl::string_view> messages, ForwardedUpdates(message));
    TERSE_RETURN_IF_ERROR(Annotate(AverageUpdates(codec, messages, 1, absl::MakeSpan(*scratch)), "downstream message"));
  } else if (!message.empty() && message[0] == kDenseNumber) {
    const absl::string_view values = message.substr(1);
    TERSE_RETURN_IF_ERROR(Annotate(CheckFloats(codec.layout(), values), "downstream message"));
    for (int64_t i = 0; i < size; ++i) (*scratch)[i] = FloatAt(values, i);
  } else {
    return absl::InvalidArgumentError("not a downstream message of a known format; both ends need the same version");
  }
  for (int64_t i = 0; i < size; ++i) weights[i] += (*scratch)[i];
  return absl::OkStatus();
}

}  // namespace terse
