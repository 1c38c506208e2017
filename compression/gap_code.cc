#include "compression/gap_code.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace terse {

int64_t MaxGapBits(int64_t count, int64_t size, int (*cost)(int log2_gap)) {
  constexpr int kLogs = 31;  // size < 2^31
  __int128 best = static_cast<__int128>(count) * cost(kLogs);
  for (int price = 0; price < kLogs; ++price) {  // 2^-price bits an element
    int64_t surplus = 0;
    for (int n = 0; n < kLogs; ++n) {
      surplus = std::max(surplus, (int64_t{cost(n)} << price) - (int64_t{1} << n));
    }
    best = std::min(best, (size + static_cast<__int128>(count) * surplus) >> price);
  }
  return static_cast<int64_t>(best);
}

absl::Status RefusePositions(absl::string_view coder, absl::string_view reason) {
  return absl::InvalidArgumentError(
      absl::StrCat(coder, " positions: ", reason, "; send the bits as they were encoded, for the same model"));
}

absl::Status PositionsEndEarly(absl::string_view coder) { return RefusePositions(coder, "the bits end early"); }

absl::Status PositionPastTheEnd(absl::string_view coder) {
  return RefusePositions(coder, "one lies past the end of the tensor");
}

}  // namespace terse
