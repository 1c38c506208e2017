#include "compression/history_kernels.h"

#include <algorithm>

#include "compression/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compression/history_kernels.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#ifndef TERSE_HISTORY_KERNELS_SCALAR
#define TERSE_HISTORY_KERNELS_SCALAR

namespace terse {
namespace {
namespace scalar {

HWY_INLINE void Masses(const HistoryTables& tables, const HistoryRow& row, int64_t count, uint8_t* masses) {
  for (int64_t i = 0; i < count; ++i) {
    const int level =
        std::min(std::max(row.columns[i] + row.row - kLowestLevelSum, 0) >> kLevelSumShift, kHistoryLevels - 1);
    const int age = (row.now - row.last[i]) & 127;
    int bin = 0;
    for (int a = kHistoryAges; a > 0; --a) bin = age < tables.age_limits[a - 1] ? a : bin;
    if (bin > 0 && row.last[i] >> 7 == row.side) bin += kHistoryAges;
    masses[i] = tables.masses[bin][level];
  }
}

constexpr HistoryKernels kKernels = {Masses};

}  // namespace scalar
}  // namespace
}  // namespace terse

#endif  // TERSE_HISTORY_KERNELS_SCALAR

HWY_BEFORE_NAMESPACE();
namespace terse {
namespace HWY_NAMESPACE {
namespace {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

using scalar::kKernels;

#else
namespace hn = hwy::HWY_NAMESPACE;

static_assert(kHistoryAges == 3, "the vectors below are that many");

void Masses(const HistoryTables& tables, const HistoryRow& row, int64_t count, uint8_t* masses) {
  const hn::ScalableTag<uint8_t> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  if (count < lanes) return scalar::Masses(tables, row, count, masses);
  const auto row_level = hn::Set(d, row.row);
  const auto now = hn::Set(d, row.now);
  const auto side = hn::Set(d, static_cast<uint8_t>(row.side << 7));
  const auto limit1 = hn::Set(d, tables.age_limits[0]);
  const auto limit2 = hn::Set(d, tables.age_limits[1]);
  const auto limit3 = hn::Set(d, tables.age_limits[2]);
  const auto oldest = hn::LoadDup128(d, tables.masses[0]);
  const auto other1 = hn::LoadDup128(d, tables.masses[1]);
  const auto other2 = hn::LoadDup128(d, tables.masses[2]);
  const auto other3 = hn::LoadDup128(d, tables.masses[3]);
  const auto same1 = hn::LoadDup128(d, tables.masses[4]);
  const auto same2 = hn::LoadDup128(d, tables.masses[5]);
  const auto same3 = hn::LoadDup128(d, tables.masses[6]);
  // The last ones may be done twice.
  for (int64_t next = 0; next < count; next += lanes) {
    const int64_t i = next + lanes <= count ? next : count - lanes;
    const auto sums =
        hn::SaturatedSub(hn::Add(hn::LoadU(d, row.columns + i), row_level), hn::Set(d, uint8_t{kLowestLevelSum}));
    const auto levels = hn::Min(hn::ShiftRight<kLevelSumShift>(sums), hn::Set(d, uint8_t{kHistoryLevels - 1}));
    const auto last = hn::LoadU(d, row.last + i);
    hwy::Prefetch(row.last + i + kHistoryAhead);
    const auto ages = hn::And(hn::Sub(now, last), hn::Set(d, uint8_t{127}));
    const auto same = hn::Lt(hn::Xor(last, side), hn::Set(d, uint8_t{128}));
    const auto class1 = hn::IfThenElse(same, hn::TableLookupBytes(same1, levels), hn::TableLookupBytes(other1, levels));
    const auto class2 = hn::IfThenElse(same, hn::TableLookupBytes(same2, levels), hn::TableLookupBytes(other2, levels));
    const auto class3 = hn::IfThenElse(same, hn::TableLookupBytes(same3, levels), hn::TableLookupBytes(other3, levels));
    auto result = hn::IfThenElse(hn::Lt(ages, limit3), class3, hn::TableLookupBytes(oldest, levels));
    result = hn::IfThenElse(hn::Lt(ages, limit2), class2, result);
    hn::StoreU(hn::IfThenElse(hn::Lt(ages, limit1), class1, result), d, masses + i);
  }
}

constexpr HistoryKernels kKernels = {Masses};

#endif  // HWY_TARGET
}  // namespace

const HistoryKernels* HistoryKernelsOfTarget() { return &kKernels; }

}  // namespace HWY_NAMESPACE
}  // namespace terse
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace terse {

HWY_EXPORT(HistoryKernelsOfTarget);

const HistoryKernels& GetHistoryKernels() {
  return ScalarInUse() ? scalar::kKernels : *HWY_DYNAMIC_DISPATCH(HistoryKernelsOfTarget)();
}

}  // namespace terse
#endif  // HWY_ONCE
