#include "compression/dense.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace terse {
namespace {

constexpr char kFormatNumber = 1;

absl::Status CheckMessage(const Layout& layout, absl::string_view message) {
  if (message.empty() || message[0] != kFormatNumber) {
    return absl::InvalidArgumentError("not a dense message; both ends need the same codec");
  }
  return Annotate(CheckFloats(layout, message.substr(1)), "dense message");
}

}  // namespace

std::string DescribeElement(const Layout& layout, int64_t i) {
  const auto after = std::upper_bound(layout.tensors().begin(), layout.tensors().end(), i,
                                      [](int64_t index, const TensorSpec& tensor) { return index < tensor.offset; });
  const TensorSpec& tensor = *(after - 1);
  return absl::StrCat("tensor '", tensor.name, "', index ", i - tensor.offset);
}

void AppendFloats(absl::Span<const float> values, std::string* bytes) {
  const size_t begin = bytes->size();
  bytes->resize(begin + 4 * values.size());
  char* out = &(*bytes)[begin];
  for (size_t i = 0; i < values.size(); ++i) StoreLittle32(FloatBits(values[i]), out + 4 * i);
}

absl::Status CheckFloats(const Layout& layout, absl::string_view bytes) {
  const int64_t size = layout.size();
  if (bytes.size() != static_cast<size_t>(4 * size)) {
    return absl::InvalidArgumentError(
        absl::StrCat(bytes.size(), " bytes of values where the model needs ", 4 * size, "; send it whole"));
  }
  uint32_t bad = 0;
  for (int64_t i = 0; i < size; ++i) {
    bad |= static_cast<uint32_t>(MagnitudeBits(LoadLittle32(bytes.data() + 4 * i)) >= kInfinityBits);
  }
  if (bad == 0) return absl::OkStatus();
  int64_t i = 0;
  while (MagnitudeBits(FloatBits(FloatAt(bytes, i))) < kInfinityBits) ++i;
  return absl::InvalidArgumentError(
      absl::StrCat(DescribeElement(layout, i), ": the value is ", FloatAt(bytes, i), "; it must be finite"));
}

absl::StatusOr<std::unique_ptr<const Codec>> DenseCodec::Create(const CodecSpec& /*spec*/, const Layout& layout) {
  return std::make_unique<const DenseCodec>(layout);
}

absl::StatusOr<std::string> DenseCodec::Encode(absl::Span<const float> update) const {
  if (update.size() != static_cast<size_t>(layout_.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("the update has ", update.size(), " elements, the model ", layout_.size()));
  }
  std::string message;
  message.reserve(MaxMessageBytes());
  message.push_back(kFormatNumber);
  AppendFloats(update, &message);
  absl::Status status = CheckFloats(layout_, absl::string_view(message).substr(1));
  if (!status.ok()) return Annotate(status, "training has diverged, try a lower learning rate");
  return message;
}

absl::Status DenseCodec::Validate(absl::string_view message) const { return CheckMessage(layout_, message); }

absl::Status DenseCodec::AddDecoded(absl::string_view message, float sign, absl::Span<float> accumulator) const {
  if (accumulator.size() != static_cast<size_t>(layout_.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("the accumulator has ", accumulator.size(), " elements, the model ", layout_.size()));
  }
  TERSE_RETURN_IF_ERROR(CheckMessage(layout_, message));
  const absl::string_view values = message.substr(1);
  for (int64_t i = 0; i < layout_.size(); ++i) accumulator[i] += sign * FloatAt(values, i);
  return absl::OkStatus();
}

absl::StatusOr<absl::optional<std::vector<uint32_t>>> DenseCodec::SentPositions(absl::string_view message) const {
  TERSE_RETURN_IF_ERROR(CheckMessage(layout_, message));
  return absl::optional<std::vector<uint32_t>>();
}

}  // namespace terse
