#include "compression/downstream_model.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "compression/bit_stream.h"
#include "compression/dense.h"
#include "core/status.h"

namespace terse {
namespace {

constexpr char kModelNumber = static_cast<char>(0x86);
constexpr char kCodedModelNumber = static_cast<char>(0x87);
constexpr char kCenteredModelNumber = static_cast<char>(0x88);

std::string WithNumber(char number, absl::string_view body) {
  return absl::StrCat(absl::string_view(&number, 1), body);
}

absl::Status ReadModel(const Layout& layout, absl::string_view values, std::vector<float>* model) {
  TERSE_RETURN_IF_ERROR(CheckFloats(layout, values));
  for (int64_t i = 0; i < layout.size(); ++i) (*model)[i] = FloatAt(values, i);
  return absl::OkStatus();
}

// *model = `center` + what the message carries; an empty message carries nothing.
absl::Status Decode(const Codec* codec, absl::string_view message, absl::Span<const float> center,
                    std::vector<float>* model) {
  std::fill(model->begin(), model->end(), 0.0f);
  if (!message.empty()) {
    if (codec == nullptr) return absl::InvalidArgumentError("a coded model in a run that codes none");
    TERSE_RETURN_IF_ERROR(codec->AddDecoded(message, 1.0f, absl::MakeSpan(*model)));
  }
  for (size_t i = 0; i < center.size(); ++i) {
    (*model)[i] += center[i];
    if (MagnitudeBits(FloatBits((*model)[i])) >= kInfinityBits) {
      return absl::InvalidArgumentError(absl::StrCat("element ", i, " is beyond the range of float32"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string BuildModelDownstream(absl::Span<const float> model) {
  std::string out;
  out.reserve(1 + 4 * model.size());
  out.push_back(kModelNumber);
  AppendFloats(model, &out);
  return out;
}

std::string BuildCodedModelDownstream(absl::string_view message) { return WithNumber(kCodedModelNumber, message); }

std::string BuildCenteredModelDownstream(absl::string_view message) {
  return WithNumber(kCenteredModelNumber, message);
}

std::string BuildSnapshotDownstream() { return WithNumber(kCenteredModelNumber, ""); }

absl::Status ApplyModel(const DownstreamCodecs& codecs, absl::string_view message, absl::Span<const float> snapshot,
                        std::vector<float>* scratch, absl::Span<float> weights) {
  const Layout& layout = codecs.updates.layout();
  const size_t size = static_cast<size_t>(layout.size());
  const char number = message.empty() ? '\0' : message[0];
  if (weights.size() != size || (number == kCenteredModelNumber && snapshot.size() != size)) {
    return absl::InvalidArgumentError(absl::StrCat("the weights have ", weights.size(), " elements, the snapshot ",
                                                   snapshot.size(), ", the model ", size));
  }
  const absl::string_view body = message.substr(message.empty() ? 0 : 1);
  scratch->resize(size);
  absl::Status status;
  if (number == kModelNumber) {
    status = ReadModel(layout, body, scratch);
  } else if (number == kCodedModelNumber && !body.empty()) {
    status = Decode(codecs.coded, body, {}, scratch);
  } else if (number == kCenteredModelNumber) {
    status = Decode(codecs.coded, body, snapshot, scratch);
  } else {
    status = absl::InvalidArgumentError("not a model of a known format; both ends need the same version");
  }
  TERSE_RETURN_IF_ERROR(Annotate(status, "downstream message"));
  std::copy(scratch->begin(), scratch->end(), weights.begin());
  return absl::OkStatus();
}

}  // namespace terse
