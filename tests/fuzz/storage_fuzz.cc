#include <cstdint>
#include <string>

#include "storage/byte_io.h"
#include "storage/manifest.h"
#include "storage/parted_lineages.h"
#include "storage/run_store.h"
#include "storage/weights_file.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/targets.h"

namespace terse {
namespace {

constexpr size_t kTrailerBytes = 16;
constexpr uint64_t kMostBlobBytes = uint64_t{1} << 34;
// The offsets of a checkpoint's model hash and of its weights (storage/SCHEMA.md).
constexpr size_t kIdOffset = 4 + 4 + 8;
constexpr size_t kWeightsOffset = kIdOffset + 16 + 8;

// A parser checks hashes before it looks at anything else, and no mutation makes a hash right.
void MakeHashesRight(bool model, std::string* bytes) {
  if (bytes->size() < kWeightsOffset + kTrailerBytes) return;
  const size_t end = bytes->size() - kTrailerBytes;
  if (model) {
    std::vector<float> weights((end - kWeightsOffset) / sizeof(float));
    if (!weights.empty()) std::memcpy(weights.data(), &(*bytes)[kWeightsOffset], weights.size() * sizeof(float));
    bytes->replace(kIdOffset, 16, HashWeights(weights).ToBytes());
  }
  bytes->replace(end, kTrailerBytes, HashBytes(absl::string_view(*bytes).substr(0, end)).ToBytes());
}

void RequireDataLoss(const absl::Status& status) {
  Require(status.code() == absl::StatusCode::kDataLoss, "a file that is not whole is a DATA_LOSS");
  Require(!status.message().empty(), "the status says what is wrong");
}

}  // namespace

void FuzzManifest(const char*, const uint8_t* data, size_t size) {
  Input input(data, size);
  const bool right = (input.Byte() & 1) != 0;
  std::string bytes(input.Rest());
  if (right) MakeHashesRight(/*model=*/false, &bytes);
  const absl::StatusOr<Manifest> manifest = ParseManifest(bytes);
  if (!manifest.ok()) return RequireDataLoss(manifest.status());
  Require(SerializeManifest(*manifest) == bytes, "a manifest has one form");
  Require(manifest->dense.size % sizeof(float) == 0 && manifest->generation >= 0, "a manifest makes sense");
  Require(!(manifest->dirty && manifest->sealed), "what is only in memory is not sealed");
  Require(!manifest->family.IsZero() && IsCohort(manifest->cohort), "a manifest's fields of relays make sense");
  for (const BlobRef* blob :
       {&manifest->dense, &manifest->outbox, &manifest->trainer, &manifest->history, &manifest->parted}) {
    Require(blob->size <= kMostBlobBytes && blob->generation >= 0, "a manifest names files that there can be");
  }
}

void FuzzParted(const char*, const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<std::vector<PartedLineage>> parted = ParseParted(bytes);
  if (!parted.ok()) return RequireDataLoss(parted.status());
  Require(SerializeParted(*parted) == bytes, "what a client parts with has one form");
  size_t updates = 0;
  for (const PartedLineage& one : *parted) updates += one.sealed.has_value() ? 1 : 0;
  Require(parted->size() <= kMostPartedLineages && updates <= ClientState::kMostParted, "a client keeps so much");
}

void FuzzCheckpoint(const char*, const uint8_t* data, size_t size) {
  Input input(data, size);
  const uint8_t flags = input.Byte();
  std::string bytes(input.Rest());
  if ((flags & 1) != 0) MakeHashesRight((flags & 2) != 0, &bytes);
  const absl::StatusOr<Checkpoint> checkpoint = ParseCheckpoint(bytes);
  if (!checkpoint.ok()) return RequireDataLoss(checkpoint.status());
  Require(SerializeCheckpoint(*checkpoint) == bytes, "a checkpoint has one form");
  Require(HashWeights(checkpoint->weights) == checkpoint->model_hash, "a checkpoint's weights have its hash");
  Require(checkpoint->version >= 0, "versions count from 0");
}

void FuzzCachedModel(const char*, const uint8_t* data, size_t size) {
  Input input(data, size);
  const bool right = (input.Byte() & 1) != 0;
  std::string bytes(input.Rest());
  if (right) MakeHashesRight(/*model=*/false, &bytes);
  const absl::StatusOr<WeightsFile> file = ParseWeights(kCachedModelMagic, bytes);
  if (!file.ok()) return RequireDataLoss(file.status());
  Require(SerializeWeights(kCachedModelMagic, file->version, file->id, file->weights) == bytes, "a file has one form");
  Require(!ParseWeights(kCheckpointMagic, bytes).ok(), "a cached model is no checkpoint");
}

}  // namespace terse
