// The lineages that a client has left for others of their family (client_state.h), and their form as bytes: the blob
// `parted` of storage/SCHEMA.md. Internal to storage/ and to states that tests make; thread-compatible.
#ifndef TERSE_STORAGE_PARTED_LINEAGES_H_
#define TERSE_STORAGE_PARTED_LINEAGES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/id128.h"
#include "storage/client_state.h"

namespace terse {

// The most lineages that are kept, with and without an update. One more takes the place of the oldest without one.
inline constexpr size_t kMostPartedLineages = 256;
static_assert(kMostPartedLineages > ClientState::kMostParted);

// Null when `lineage` is not among them.
const PartedLineage* FindParted(absl::Span<const PartedLineage> parted, Id128 lineage);

// MOVE of everything but the residual: what ClientState::Move says of the head, except for `has_dense`. Returns the
// number of updates that are lost, 0 or 1.
int64_t MoveHead(Id128 lineage, StoredHead* head);

// No bytes for no lineages.
std::string SerializeParted(absl::Span<const PartedLineage> parted);

// DATA_LOSS, with the reason, unless the bytes are what SerializeParted makes of lineages as MoveHead leaves them.
// Takes no more memory than a small multiple of the bytes.
absl::StatusOr<std::vector<PartedLineage>> ParseParted(absl::string_view bytes);

}  // namespace terse

#endif  // TERSE_STORAGE_PARTED_LINEAGES_H_
