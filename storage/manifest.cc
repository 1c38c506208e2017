#include "storage/manifest.h"

#include "absl/strings/str_cat.h"
#include "storage/byte_io.h"

namespace terse {
namespace {

constexpr absl::string_view kMagic = "TRSM";
constexpr uint32_t kFormat = 1;
constexpr uint32_t kFormatWithHistory = 2;
constexpr size_t kTrailerBytes = 16;
constexpr uint32_t kDirtyFlag = 1;
constexpr uint32_t kSealedFlag = 2;

void PutBlob(std::string* out, const BlobRef& blob) {
  PutField(out, blob.generation);
  PutField(out, blob.size);
  PutField(out, blob.hash);
}

BlobRef TakeBlob(absl::string_view* bytes) {
  BlobRef blob;
  blob.generation = TakeField<int64_t>(bytes);
  blob.size = TakeField<uint64_t>(bytes);
  blob.hash = TakeField<Id128>(bytes);
  return blob;
}

bool IsSound(const BlobRef& blob) {
  if (blob.empty()) return blob.generation == 0 && blob.hash.IsZero();
  return blob.generation >= 0 && blob.size <= uint64_t{1} << 34;
}

// Returns false for a manifest that no program writes, though its checksum holds.
bool IsSound(const Manifest& manifest) {
  for (const BlobRef* blob : {&manifest.dense, &manifest.outbox, &manifest.trainer, &manifest.history}) {
    if (!IsSound(*blob)) return false;
  }
  if (manifest.dense.size % sizeof(float) != 0 || manifest.generation < 0 || manifest.lineage.IsZero()) return false;
  const bool blobs =
      !manifest.dense.empty() || !manifest.outbox.empty() || !manifest.trainer.empty() || !manifest.history.empty();
  if (manifest.dirty && (blobs || manifest.sealed)) return false;
  return manifest.sealed != manifest.update_id.IsZero();
}

}  // namespace

std::string SerializeManifest(const Manifest& manifest) {
  std::string bytes(kMagic);
  PutField(&bytes, manifest.history.empty() ? kFormat : kFormatWithHistory);
  PutField(&bytes, (manifest.dirty ? kDirtyFlag : 0) | (manifest.sealed ? kSealedFlag : 0));
  PutField(&bytes, manifest.lineage);
  PutField(&bytes, manifest.generation);
  PutField(&bytes, manifest.prev_applied);
  PutBlob(&bytes, manifest.dense);
  PutBlob(&bytes, manifest.outbox);
  PutBlob(&bytes, manifest.trainer);
  PutField(&bytes, manifest.update_id);
  PutField(&bytes, manifest.round);
  PutField(&bytes, manifest.base_version);
  PutField(&bytes, manifest.train_us);
  PutField(&bytes, manifest.loss);
  PutField(&bytes, uint32_t{0});
  if (!manifest.history.empty()) PutBlob(&bytes, manifest.history);
  PutField(&bytes, HashBytes(bytes));
  return bytes;
}

absl::StatusOr<Manifest> ParseManifest(absl::string_view bytes) {
  if (bytes.size() != kManifestBytes && bytes.size() != kLongManifestBytes) {
    return absl::DataLossError(
        absl::StrCat("it has ", bytes.size(), " bytes instead of ", kManifestBytes, " or ", kLongManifestBytes));
  }
  if (bytes.substr(0, kMagic.size()) != kMagic) {
    return absl::DataLossError(absl::StrCat("it does not begin with '", kMagic, "'"));
  }
  absl::string_view trailer = bytes.substr(bytes.size() - kTrailerBytes);
  if (TakeField<Id128>(&trailer) != HashBytes(bytes.substr(0, bytes.size() - kTrailerBytes))) {
    return absl::DataLossError("it does not match its checksum");
  }
  absl::string_view rest = bytes.substr(kMagic.size());
  const uint32_t format = TakeField<uint32_t>(&rest);
  if (format != kFormat && format != kFormatWithHistory) {
    return absl::DataLossError(
        absl::StrCat("it has format ", format, ", and this program reads ", kFormat, " and ", kFormatWithHistory));
  }
  if (bytes.size() != (format == kFormat ? kManifestBytes : kLongManifestBytes)) {
    return absl::DataLossError(
        absl::StrCat("it has ", bytes.size(), " bytes, which is not the size of format ", format));
  }
  const uint32_t flags = TakeField<uint32_t>(&rest);
  Manifest manifest;
  manifest.dirty = (flags & kDirtyFlag) != 0;
  manifest.sealed = (flags & kSealedFlag) != 0;
  manifest.lineage = TakeField<Id128>(&rest);
  manifest.generation = TakeField<int64_t>(&rest);
  manifest.prev_applied = TakeField<Id128>(&rest);
  manifest.dense = TakeBlob(&rest);
  manifest.outbox = TakeBlob(&rest);
  manifest.trainer = TakeBlob(&rest);
  manifest.update_id = TakeField<Id128>(&rest);
  manifest.round = TakeField<int64_t>(&rest);
  manifest.base_version = TakeField<int64_t>(&rest);
  manifest.train_us = TakeField<int64_t>(&rest);
  manifest.loss = TakeField<float>(&rest);
  const uint32_t reserved = TakeField<uint32_t>(&rest);
  if (format == kFormatWithHistory) manifest.history = TakeBlob(&rest);
  const bool one_form = format == kFormat || !manifest.history.empty();
  if (flags > (kDirtyFlag | kSealedFlag) || reserved != 0 || !one_form || !IsSound(manifest)) {
    return absl::DataLossError("its fields contradict each other");
  }
  return manifest;
}

}  // namespace terse
