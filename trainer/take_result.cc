#include "trainer/take_result.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "hwy/cache_control.h"
#include "hwy/highway.h"

// Highway's functions are for its static target, which on some machines is more than what the compiler takes by itself.
HWY_BEFORE_NAMESPACE();
namespace terse {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr uint32_t kLargestBfloat16 = 0x7f7f;

// A bfloat16 is the upper half of a float.
float Widened(uint16_t half) {
  const uint32_t bits = uint32_t{half} << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

uint16_t Rounded(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const uint32_t magnitude = bits & 0x7fffffff;
  const uint32_t nearest = (magnitude + 0x7fff + ((magnitude >> 16) & 1)) >> 16;
  return static_cast<uint16_t>((bits >> 16 & 0x8000) | std::min(nearest, kLargestBfloat16));
}

// The same of as many elements as a vector has.
auto Widen(const uint16_t* halves) {
  const hn::ScalableTag<float> tag;
  const hn::Rebind<uint16_t, decltype(tag)> of_halves;
  const hn::RebindToUnsigned<decltype(tag)> bits;
  return hn::BitCast(tag, hn::ShiftLeft<16>(hn::PromoteTo(bits, hn::LoadU(of_halves, halves))));
}

auto Round(const float* values) {
  const hn::ScalableTag<float> tag;
  const hn::RebindToUnsigned<decltype(tag)> of_bits;
  const auto bits = hn::BitCast(of_bits, hn::LoadU(tag, values));
  const auto magnitude = hn::And(bits, hn::Set(of_bits, 0x7fffffffU));
  const auto odd = hn::And(hn::ShiftRight<16>(magnitude), hn::Set(of_bits, 1U));
  const auto nearest = hn::Add(hn::Add(magnitude, hn::Set(of_bits, 0x7fffU)), odd);
  const auto upper = hn::And(hn::Min(nearest, hn::Set(of_bits, kLargestBfloat16 << 16)), hn::Set(of_bits, 0xffff0000U));
  return hn::BitCast(tag, hn::Or(upper, hn::And(bits, hn::Set(of_bits, 0x80000000U))));
}

// `value(i)` and `values(i)` are one element of the change, and a vector of them from i on.
template <typename One, typename Many>
bool Write(const One& value, const Many& values, absl::Span<float> delta) {
  const hn::ScalableTag<float> tag;
  const size_t lanes = hn::Lanes(tag);
  size_t i = 0;
  bool finite = true;
  const auto write_one = [&]() HWY_ATTR {
    delta[i] = value(i);
    finite = finite && std::isfinite(delta[i]);
    ++i;
  };
  while (i < delta.size() && reinterpret_cast<uintptr_t>(&delta[i]) % (lanes * sizeof(float)) != 0) write_one();
  auto difference = hn::Zero(tag);  // of values from themselves: 0, or NaN once one of them was not finite
  for (; i + lanes <= delta.size(); i += lanes) {
    const auto block = values(i);
    difference = hn::Or(difference, hn::Sub(block, block));
    hn::Stream(block, tag, &delta[i]);
  }
  hwy::FlushStream();
  while (i < delta.size()) write_one();
  return finite && hn::AllTrue(tag, hn::Eq(difference, hn::Zero(tag)));
}

}  // namespace

bool TakeResult(absl::Span<const uint16_t> left, absl::Span<const float> weights, absl::Span<float> delta) {
  if (weights.empty()) {
    return Write([&](size_t i) HWY_ATTR { return Widened(left[i]); },
                 [&](size_t i) HWY_ATTR { return Widen(&left[i]); }, delta);
  }
  return Write([&](size_t i) HWY_ATTR { return Widened(left[i]) - Widened(Rounded(weights[i])); },
               [&](size_t i) HWY_ATTR { return hn::Sub(Widen(&left[i]), Round(&weights[i])); }, delta);
}

void RoundToBfloat16(absl::Span<const float> values, absl::Span<uint16_t> rounded) {
  const hn::ScalableTag<float> tag;
  const hn::Rebind<uint16_t, decltype(tag)> halves;
  const hn::RebindToUnsigned<decltype(tag)> bits;
  size_t i = 0;
  for (; i + hn::Lanes(tag) <= values.size(); i += hn::Lanes(tag)) {
    const auto upper = hn::ShiftRight<16>(hn::BitCast(bits, Round(&values[i])));
    hn::StoreU(hn::TruncateTo(halves, upper), halves, &rounded[i]);
  }
  for (; i < values.size(); ++i) rounded[i] = Rounded(values[i]);
}

bool TakeResult(absl::Span<const float> left, absl::Span<const float> weights, absl::Span<float> delta) {
  const hn::ScalableTag<float> tag;
  if (weights.empty()) {
    return Write([&](size_t i) HWY_ATTR { return left[i]; },
                 [&](size_t i) HWY_ATTR { return hn::LoadU(tag, &left[i]); }, delta);
  }
  return Write([&](size_t i) HWY_ATTR { return left[i] - weights[i]; },
               [&](size_t i) HWY_ATTR { return hn::Sub(hn::LoadU(tag, &left[i]), hn::LoadU(tag, &weights[i])); },
               delta);
}

}  // namespace terse
HWY_AFTER_NAMESPACE();
