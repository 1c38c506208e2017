#include "trainer/take_result.h"

#include <cmath>
#include <cstdint>

#include "hwy/cache_control.h"
#include "hwy/highway.h"

namespace terse {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// `value(i)` and `values(i)` are one element of the change, and a vector of them from i on.
template <typename One, typename Many>
bool Write(const One& value, const Many& values, absl::Span<float> delta) {
  const hn::ScalableTag<float> tag;
  const size_t lanes = hn::Lanes(tag);
  size_t i = 0;
  bool finite = true;
  const auto write_one = [&] {
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

bool TakeResult(absl::Span<const float> left, absl::Span<const float> weights, absl::Span<float> delta) {
  const hn::ScalableTag<float> tag;
  if (weights.empty()) {
    return Write([&](size_t i) { return left[i]; }, [&](size_t i) { return hn::LoadU(tag, &left[i]); }, delta);
  }
  return Write([&](size_t i) { return left[i] - weights[i]; },
               [&](size_t i) { return hn::Sub(hn::LoadU(tag, &left[i]), hn::LoadU(tag, &weights[i])); }, delta);
}

}  // namespace terse
