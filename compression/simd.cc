#include "compression/simd.h"

#include <atomic>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "hwy/highway.h"

namespace terse {
namespace {

struct Named {
  int64_t target;  // one bit of Highway's
  const char* name;
};

// The targets by name, the fastest first.
constexpr Named kNames[] = {
    {HWY_AVX3_DL, "avx512_dl"}, {HWY_AVX3, "avx512"},       {HWY_AVX2, "avx2"}, {HWY_SSE4, "sse4"},
    {HWY_SSSE3, "ssse3"},       {HWY_SVE2_128, "sve2_128"}, {HWY_SVE2, "sve2"}, {HWY_SVE_256, "sve_256"},
    {HWY_SVE, "sve"},           {HWY_NEON, "neon"},
};
constexpr char kScalar[] = "scalar";

// Returns the targets that were compiled and that this processor has, as Highway's bits, before any target was chosen.
int64_t Available() {
  static const int64_t available = hwy::SupportedTargets() & HWY_TARGETS;
  return available;
}

bool HasVectors() {
  for (const Named& named : kNames) {
    if ((Available() & named.target) != 0) return true;
  }
  return false;
}

std::atomic<bool>& Scalar() {
  static std::atomic<bool> scalar{!HasVectors()};
  return scalar;
}

// Asking the processor takes longer than encoding a small update, so Highway is told what was found once.
void Choose(int64_t targets) {
  hwy::SetSupportedTargetsForTest(targets);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace

std::vector<std::string> SimdTargets() {
  std::vector<std::string> targets;
  for (const Named& named : kNames) {
    if ((Available() & named.target) != 0) targets.emplace_back(named.name);
  }
  targets.emplace_back(kScalar);
  return targets;
}

std::string SimdTarget() {
  if (ScalarInUse()) return kScalar;
  const int64_t usable = hwy::SupportedTargets() & Available();
  for (const Named& named : kNames) {
    if ((usable & named.target) != 0) return named.name;
  }
  return kScalar;
}

absl::Status UseSimdTarget(absl::string_view target) {
  Available();  // must be known before Highway's answer is changed
  if (target.empty() || target == kScalar) {
    Choose(Available());
    Scalar() = !target.empty() || !HasVectors();
    return absl::OkStatus();
  }
  for (const Named& named : kNames) {
    if (target != named.name || (Available() & named.target) == 0) continue;
    Choose(named.target);
    Scalar() = false;
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("SIMD target '", target, "' is not one of this processor: ", absl::StrJoin(SimdTargets(), ", ")));
}

bool ScalarInUse() { return Scalar().load(std::memory_order_relaxed); }

}  // namespace terse
