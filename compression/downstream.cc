#include "compression/downstream.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "absl/strings/str_cat.h"
#include "compression/aggregate.h"
#include "compression/choice_codec.h"
#include "compression/dense.h"
#include "compression/sparse_step.h"
#include "compression/varint.h"
#include "core/status.h"

namespace terse {
namespace {

constexpr char kForwardNumber = static_cast<char>(0x81);
constexpr char kDenseNumber = static_cast<char>(0x82);
constexpr char kWeightedForwardNumber = static_cast<char>(0x83);
constexpr char kCodedNumber = static_cast<char>(0x84);
constexpr char kSharedForwardNumber = static_cast<char>(0x85);
constexpr char kSparseNumber = static_cast<char>(0x89);  // 0x86 to 0x88: downstream_model.cc
// Before a message of the three forms that forward.
constexpr char kImputedForwardNumber = static_cast<char>(0x8a);
constexpr size_t kImputedBytes = 1 + sizeof(float);

bool IsForward(absl::string_view message) {
  return !message.empty() && (message[0] == kForwardNumber || message[0] == kWeightedForwardNumber ||
                              message[0] == kSharedForwardNumber || message[0] == kImputedForwardNumber);
}

int64_t ForwardBytes(absl::Span<const absl::string_view> messages, absl::Span<const int64_t> samples, int64_t total,
                     float trust) {
  int64_t bytes = trust > 0 ? kImputedBytes : 0;
  bytes += 1 + VarintBytes(messages.size()) + (total == 0 ? 0 : VarintBytes(total));
  for (absl::string_view message : messages) bytes += VarintBytes(message.size()) + message.size();
  for (int64_t count : samples) bytes += VarintBytes(count);
  return bytes;
}

std::string BuildForward(absl::Span<const absl::string_view> messages, absl::Span<const int64_t> samples, int64_t total,
                         float trust) {
  std::string out;
  out.reserve(ForwardBytes(messages, samples, total, trust));
  if (trust > 0) {
    out.push_back(kImputedForwardNumber);
    AppendFloats({trust}, &out);
  }
  out.push_back(samples.empty() ? kForwardNumber : total == 0 ? kWeightedForwardNumber : kSharedForwardNumber);
  PutVarint(messages.size(), &out);
  if (total != 0) PutVarint(total, &out);
  for (size_t i = 0; i < messages.size(); ++i) {
    if (!samples.empty()) PutVarint(samples[i], &out);
    PutVarint(messages[i].size(), &out);
    out.append(messages[i].data(), messages[i].size());
  }
  return out;
}

int64_t DenseBytes(size_t elements) { return 1 + 4 * static_cast<int64_t>(elements); }

// The sparse step as a message of fewer than `most_bytes` bytes; empty where it takes more.
std::string BuildSparse(absl::Span<const float> step, int64_t most_bytes) {
  std::string out(1, kSparseNumber);
  if (!AppendSparseStep(step, most_bytes - 1, &out)) out.clear();
  return out;
}

// *step = what the message of a step carries.
absl::Status ReadStep(const Layout& layout, absl::string_view message, absl::Span<float> step) {
  const absl::string_view body = message.substr(1);
  if (message[0] == kSparseNumber) {
    if (static_cast<int64_t>(message.size()) < DenseBytes(step.size())) return ReadSparseStep(layout, body, step);
    return absl::InvalidArgumentError("a sparse step that is longer than a dense one");
  }
  TERSE_RETURN_IF_ERROR(CheckFloats(layout, body));
  for (size_t i = 0; i < step.size(); ++i) step[i] = FloatAt(body, i);
  return absl::OkStatus();
}

absl::Status EndsIn(uint64_t update) {
  return absl::InvalidArgumentError(absl::StrCat("downstream message ends in update ", update, "; fetch it again"));
}

// Takes the trust off the front of a message that has one.
absl::Status TakeTrust(absl::string_view* message, float* trust) {
  if (message->empty() || (*message)[0] != kImputedForwardNumber) return absl::OkStatus();
  const bool whole = message->size() > kImputedBytes && (*message)[kImputedBytes] != kImputedForwardNumber;
  if (whole) *trust = FloatAt(message->substr(1), 0);
  if (!whole || !(*trust > 0 && *trust <= 1)) {
    return absl::InvalidArgumentError("downstream message with an unusable trust; fetch it again");
  }
  message->remove_prefix(kImputedBytes);
  return absl::OkStatus();
}

// Takes the number of samples of one update off the front; `total` is the sum of those before it.
absl::StatusOr<int64_t> TakeSamples(uint64_t update, absl::string_view* body, uint64_t* total) {
  uint64_t samples = 0;
  if (!TakeVarint(body, &samples)) return EndsIn(update);
  *total += samples;  // both are below 2^63
  if (samples >= 1 && *total <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return static_cast<int64_t>(samples);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("downstream message with an unusable number of samples in update ", update, "; fetch it again"));
}

}  // namespace

std::string BuildDownstream(DownstreamMode mode, absl::Span<const absl::string_view> messages,
                            absl::Span<const int64_t> samples, absl::Span<const float> step, int64_t total,
                            float trust) {
  if (mode == DownstreamMode::kForward) return BuildForward(messages, samples, total, trust);
  if (mode == DownstreamMode::kDense) return BuildDenseDownstream(step);
  const int64_t forward = ForwardBytes(messages, samples, total, trust), dense = DenseBytes(step.size());
  std::string sparse = BuildSparse(step, std::min(forward, dense));
  if (!sparse.empty()) return sparse;
  return forward <= dense ? BuildForward(messages, samples, total, trust) : BuildDenseDownstream(step);
}

std::string BuildStepDownstream(DownstreamMode mode, absl::Span<const float> step) {
  std::string sparse = mode == DownstreamMode::kAuto ? BuildSparse(step, DenseBytes(step.size())) : std::string();
  if (!sparse.empty()) return sparse;
  return BuildDenseDownstream(step);
}

bool IsStepDownstream(absl::string_view message) {
  return !message.empty() && (message[0] == kDenseNumber || message[0] == kSparseNumber);
}

std::string BuildDenseDownstream(absl::Span<const float> step) {
  std::string out;
  out.reserve(1 + 4 * step.size());
  out.push_back(kDenseNumber);
  AppendFloats(step, &out);
  return out;
}

std::string BuildCodedDownstream(absl::string_view message) {
  std::string out;
  out.reserve(1 + message.size());
  out.push_back(kCodedNumber);
  out.append(message.data(), message.size());
  return out;
}

int64_t CodedChoice(absl::string_view message) {
  return !message.empty() && message[0] == kCodedNumber ? ChoiceOf(message.substr(1)) : 0;
}

absl::StatusOr<Forwarded> ParseForwarded(absl::string_view message) {
  Forwarded forwarded;
  TERSE_RETURN_IF_ERROR(TakeTrust(&message, &forwarded.trust));
  if (!IsForward(message)) return absl::InvalidArgumentError("not a forward message");
  const bool weighted = message[0] != kForwardNumber;
  absl::string_view body = message.substr(1);
  uint64_t count = 0;
  // An update takes two or three bytes at least, so this bounds the memory too.
  if (!TakeVarint(&body, &count) || count < 1 || count > body.size() / (weighted ? 3 : 2)) {
    return absl::InvalidArgumentError("downstream message with an unusable number of updates; fetch it again");
  }
  if (message[0] == kSharedForwardNumber) {
    uint64_t shares = 0;
    if (!TakeVarint(&body, &shares) || shares < 1) {
      return absl::InvalidArgumentError("downstream message with an unusable number of shares; fetch it again");
    }
    forwarded.total = static_cast<int64_t>(shares);
  }
  forwarded.updates.reserve(count);
  forwarded.samples.reserve(weighted ? count : 0);
  uint64_t total = 0;
  for (uint64_t i = 0; i < count; ++i) {
    if (weighted) {
      TERSE_ASSIGN_OR_RETURN(const int64_t samples, TakeSamples(i, &body, &total));
      forwarded.samples.push_back(samples);
    }
    uint64_t length = 0;
    if (!TakeVarint(&body, &length) || length < 1 || length > body.size()) return EndsIn(i);
    forwarded.updates.push_back(body.substr(0, length));
    body.remove_prefix(length);
  }
  if (!body.empty()) return absl::InvalidArgumentError("downstream message with bytes after its last update");
  // With all of the shares it would be the other form.
  if (forwarded.total != 0 && static_cast<uint64_t>(forwarded.total) <= total) {
    return absl::InvalidArgumentError(
        "downstream message with fewer shares in all than its updates need; fetch it again");
  }
  return forwarded;
}

int64_t MaxBytesOf(DownstreamMode mode, const DownstreamCodecs& codecs, int64_t updates) {
  const Codec& codec = codecs.updates;
  const int64_t update = kMaxVarintBytes + VarintBytes(codec.MaxMessageBytes()) + codec.MaxMessageBytes();
  const int64_t forward =
      static_cast<int64_t>(kImputedBytes) + 1 + VarintBytes(updates) + kMaxVarintBytes + updates * update;
  const int64_t dense = DenseBytes(static_cast<size_t>(codec.layout().size()));
  switch (mode) {
    case DownstreamMode::kForward:
      return forward;
    case DownstreamMode::kDense:
    case DownstreamMode::kAuto:  // also of a step that is not made of the updates alone, which is never forwarded
      return dense;
    case DownstreamMode::kCoded:
      break;
  }
  return codecs.coded == nullptr ? 0 : 1 + codecs.coded->MaxMessageBytes();
}

int64_t MaxDownstreamBytes(const DownstreamCodecs& codecs, int64_t updates) {
  return std::max({MaxBytesOf(DownstreamMode::kForward, codecs, updates),
                   MaxBytesOf(DownstreamMode::kDense, codecs, updates),
                   MaxBytesOf(DownstreamMode::kCoded, codecs, updates)});
}

absl::Status ApplyDownstream(const DownstreamCodecs& codecs, absl::string_view message, std::vector<float>* scratch,
                             absl::Span<float> weights) {
  const Codec& codec = codecs.updates;
  const int64_t size = codec.layout().size();
  if (weights.size() != static_cast<size_t>(size)) {
    return absl::InvalidArgumentError(absl::StrCat("the weights have ", weights.size(), " elements, the model ", size));
  }
  scratch->resize(size);
  if (IsForward(message)) {
    TERSE_ASSIGN_OR_RETURN(const Forwarded forwarded, ParseForwarded(message));
    TERSE_RETURN_IF_ERROR(
        Annotate(ImputeUpdates(codec, forwarded.updates, AveragingWeights(forwarded.samples, forwarded.total),
                               forwarded.trust, 1, absl::MakeSpan(*scratch)),
                 "downstream message"));
  } else if (IsStepDownstream(message)) {
    TERSE_RETURN_IF_ERROR(Annotate(ReadStep(codec.layout(), message, absl::MakeSpan(*scratch)), "downstream message"));
  } else if (codecs.coded != nullptr && !message.empty() && message[0] == kCodedNumber) {
    std::fill(scratch->begin(), scratch->end(), 0.0f);
    TERSE_RETURN_IF_ERROR(
        Annotate(codecs.coded->AddDecoded(message.substr(1), 1.0f, absl::MakeSpan(*scratch)), "downstream message"));
  } else {
    return absl::InvalidArgumentError("not a downstream message of a known format; both ends need the same version");
  }
  for (int64_t i = 0; i < size; ++i) weights[i] += (*scratch)[i];
  return absl::OkStatus();
}

}  // namespace terse
