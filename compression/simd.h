// The choice of the SIMD instructions that the library uses. All targets give identical bits; the fastest one that the
// processor has is taken at run time (Google Highway).
#ifndef TERSE_COMPRESSION_SIMD_H_
#define TERSE_COMPRESSION_SIMD_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace terse {

// The targets that this processor can run, fastest first, such as {"avx512", "avx2", "sse4", "ssse3", "scalar"}.
// "scalar" is plain C++ and always there.
std::vector<std::string> SimdTargets();

// The target in use.
std::string SimdTarget();

// For tests and benchmarks: uses `target` from now on, in the whole process; "" goes back to the fastest. Not while
// other threads compress. INVALID_ARGUMENT for a target that is not in SimdTargets().
absl::Status UseSimdTarget(absl::string_view target);

// For the kernels: whether the target in use is "scalar".
bool ScalarInUse();

}  // namespace terse

#endif  // TERSE_COMPRESSION_SIMD_H_
