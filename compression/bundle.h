// The update of a relay that forwards (docs/SCALE.md): its clients' updates as they came. Format:
// compression/FORMAT.md, 0x1c.
#ifndef TERSE_COMPRESSION_BUNDLE_H_
#define TERSE_COMPRESSION_BUNDLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/cohort.h"

namespace terse {

// The most updates of a bundle, and the most bytes: a receiver needs memory for so many.
inline constexpr int64_t kMostBundled = 1024;
inline constexpr int64_t kMostBundleBytes = int64_t{256} << 20;

// One update of a bundle.
struct BundledUpdate {
  absl::string_view message;  // of the run's codec; not empty
  CohortFacts cohort;         // that it stands for: at least one client
};

// Returns a bundle of `updates`, in their order. RESOURCE_EXHAUSTED for more than kMostBundled, or more than
// kMostBundleBytes bytes; INVALID_ARGUMENT for none.
absl::StatusOr<std::string> BuildBundle(absl::Span<const BundledUpdate> updates);

// Whether a message is a bundle, by its first byte. No message of a codec is.
bool IsBundle(absl::string_view message);

// Returns the updates of a bundle, whose messages point into it and are not decoded. INVALID_ARGUMENT with the place
// for bytes that BuildBundle does not make; that there are at most kMostBundleBytes is for the caller to see to.
absl::StatusOr<std::vector<BundledUpdate>> ParseBundle(absl::string_view bundle);

// Returns the clients that all of them stand for. They add up without an overflow.
CohortFacts CohortOf(absl::Span<const BundledUpdate> updates);

}  // namespace terse

#endif  // TERSE_COMPRESSION_BUNDLE_H_
