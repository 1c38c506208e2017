#include "compression/quantize_kernels.h"

#include <algorithm>

#include "compression/bit_stream.h"
#include "compression/half_bits.h"
#include "compression/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compression/quantize_kernels.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#ifndef TERSE_QUANTIZE_KERNELS_SCALAR
#define TERSE_QUANTIZE_KERNELS_SCALAR

namespace terse {
namespace {
namespace scalar {
#define TERSE_CONVERTS_UNSIGNED 0
#include "compression/quantize_loops.inc"
#undef TERSE_CONVERTS_UNSIGNED
}  // namespace scalar
}  // namespace
}  // namespace terse

#endif  // TERSE_QUANTIZE_KERNELS_SCALAR

HWY_BEFORE_NAMESPACE();
namespace terse {
namespace HWY_NAMESPACE {
namespace {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

using scalar::kKernels;

#else

#define TERSE_CONVERTS_UNSIGNED (HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL)
#include "compression/quantize_loops.inc"
#undef TERSE_CONVERTS_UNSIGNED

#endif  // HWY_TARGET
}  // namespace

const QuantizeKernels* QuantizeKernelsOfTarget() { return &kKernels; }

}  // namespace HWY_NAMESPACE
}  // namespace terse
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace terse {

HWY_EXPORT(QuantizeKernelsOfTarget);

const QuantizeKernels& GetQuantizeKernels() {
  return ScalarInUse() ? scalar::kKernels : *HWY_DYNAMIC_DISPATCH(QuantizeKernelsOfTarget)();
}

}  // namespace terse
#endif  // HWY_ONCE
