#include <algorithm>
#include <string>
#include <vector>

#include "compression/simd.h"
#include "tests/fuzz/agreement.h"
#include "tests/fuzz/codec_cases.h"
#include "tests/fuzz/targets.h"

namespace terse {
namespace {

constexpr double kRates[] = {0.001, 0.02, 0.3, 1, 0, -1, 1e300, 0.7};

struct Case {
  const Codec* codec;
  EncodeOptions options;
  uint64_t pieces;
  bool must_code;  // finite numbers and no odd rates
};

// Encodes with and without SIMD; the outcome must be the same. Only at times: asking the processor what it has is slow.
absl::StatusOr<std::string> EncodeEverywhere(const Case& c, absl::Span<const float> update) {
  absl::StatusOr<std::string> message = c.codec->Encode(update, c.options);
  if (c.pieces % 16 != 0) return message;
  Require(UseSimdTarget("scalar").ok(), "there is always a scalar target");
  const absl::StatusOr<std::string> scalar = c.codec->Encode(update, c.options);
  Require(UseSimdTarget("").ok(), "the fastest target can be chosen again");
  Require(message == scalar, "all SIMD targets give the same bytes or the same error");
  return message;
}

void CheckMessage(const Case& c, absl::Span<const float> update, const std::string& message) {
  const absl::StatusOr<int64_t> cost = c.codec->CostBits(update, c.options);
  Require(cost.ok(), "what can be encoded has a cost");
  Require(static_cast<int64_t>(message.size()) == 1 + (*cost + 7) / 8, "the cost by formula is the message's size");
  const absl::optional<Elements> elements = ReadEveryWay(*c.codec, message, c.pieces);
  Require(elements.has_value(), "what was encoded is accepted");
  if (c.codec->traits().lossless) {
    Require(FloatsAsBits(elements->values) == FloatsAsBits(update), "a lossless codec gives every bit back");
  }
}

void CheckUpdate(const Case& c, absl::Span<const float> update) {
  const absl::StatusOr<std::string> message = EncodeEverywhere(c, update);
  if (message.ok()) {
    Require(AllFinite(update), "NaN and infinity are refused");
    return CheckMessage(c, update, *message);
  }
  Require(message.status().code() == absl::StatusCode::kInvalidArgument, "an update is coded or an INVALID_ARGUMENT");
  Require(c.codec->CostBits(update, c.options).status() == message.status(), "CostBits fails as Encode does");
  Require(!c.must_code || !AllFinite(update), "every finite update is coded");
}

// AddAndEncode is Encode of the sum.
void CheckSum(Case c, absl::Span<const float> residual, std::vector<float> delta) {
  const std::vector<float> latest = delta;
  c.options.latest = latest;
  std::vector<float> sum(delta.size());
  for (size_t i = 0; i < sum.size(); ++i) sum[i] = residual[i] + delta[i];
  const absl::StatusOr<std::string> expected = c.codec->Encode(sum, c.options);
  const absl::StatusOr<std::string> message = c.codec->AddAndEncode(residual, absl::MakeSpan(delta), c.options);
  Require(message.ok() == expected.ok(), "AddAndEncode succeeds when Encode of the sum does");
  if (!message.ok()) {
    Require(message.status().code() == absl::StatusCode::kInvalidArgument, "a sum is coded or an INVALID_ARGUMENT");
    return;
  }
  Require(*message == *expected, "AddAndEncode gives the message of the sum");
  Require(FloatsAsBits(delta) == FloatsAsBits(sum), "AddAndEncode leaves the sum");
}

}  // namespace

void FuzzRoundTrip(const char*, const uint8_t* data, size_t size) {
  static auto& cases = *new CodecCases("");
  Input input(data, size);
  const size_t codec_case = input.Word16(), layout = input.Byte();
  Case c;
  c.codec = &cases.Pick(codec_case, layout);
  c.options.key = {1, 2, input.Byte()};
  const uint8_t flags = input.Byte();
  c.pieces = input.Byte();
  std::vector<double> rates;
  if ((flags & 2) != 0) {
    for (size_t i = 0; i < c.codec->layout().tensors().size(); ++i) rates.push_back(kRates[(flags / 4 + i) % 8]);
  }
  c.options.rates = rates;
  c.must_code = rates.empty();
  const bool finite = (flags & 1) != 0;
  const size_t elements = static_cast<size_t>(c.codec->layout().size());
  const std::vector<float> update = Numbers(input.Rest(), elements, finite);
  if (c.pieces % 4 != 3) return CheckUpdate(c, update);
  std::vector<float> residual = update;
  std::rotate(residual.begin(), residual.begin() + elements / 3, residual.end());
  CheckSum(c, residual, update);
}

}  // namespace terse
