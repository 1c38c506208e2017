// The client's MANIFEST: the one small file that says which blobs are the state. Byte by byte in storage/SCHEMA.md.
// Internal to storage/.
#ifndef TERSE_STORAGE_MANIFEST_H_
#define TERSE_STORAGE_MANIFEST_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/cohort.h"
#include "core/id128.h"
#include "storage/metric_bytes.h"

namespace terse {

// Names the file KIND.GENERATION. Nothing is stored for empty contents: size 0 means that there is no file.
struct BlobRef {
  int64_t generation = 0;
  uint64_t size = 0;  // bytes
  Id128 hash;         // HashBytes of the contents

  bool empty() const { return size == 0; }
};

struct Manifest {
  bool dirty = false;   // the state is in a process's memory (relaxed durability); no blob is named
  bool sealed = false;  // an update is sealed: `outbox` is its message; otherwise `outbox` is what was applied (minus)
  Id128 lineage;
  Id128 family;  // of the lineage; zero stands for the lineage itself, and is never read
  int64_t generation = 0;
  Id128 prev_applied;
  BlobRef dense;
  BlobRef outbox;
  BlobRef trainer;
  BlobRef history;  // without `outbox`, sealed or applied
  BlobRef parted;   // SerializeParted of the lineages that were left
  // The following fields describe the sealed update; they are all zero when none is sealed.
  Id128 update_id;
  int64_t round = 0;
  int64_t base_version = 0;
  int64_t train_us = 0;
  float loss = 0;
  std::string metrics;  // of the update, SerializeMetrics; empty for none
  CohortFacts cohort;
};

// A manifest has this many bytes, with a history as many as the second says, and never more than the last says. The
// fields of relays take kFamilyBytes.
constexpr size_t kManifestBytes = 212;
constexpr size_t kLongManifestBytes = 244;
constexpr size_t kFamilyBytes = 64;
constexpr size_t kMostManifestBytes = kLongManifestBytes + 4 + kMostMetricsBytes + kFamilyBytes;

std::string SerializeManifest(const Manifest& manifest);

// DATA_LOSS, with the reason, unless the bytes are exactly what SerializeManifest makes of some manifest.
absl::StatusOr<Manifest> ParseManifest(absl::string_view bytes);

}  // namespace terse

#endif  // TERSE_STORAGE_MANIFEST_H_
