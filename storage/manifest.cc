#include "storage/manifest.h"

#include "absl/strings/str_cat.h"
#include "storage/byte_io.h"

namespace terse {
namespace {

constexpr absl::string_view kMagic = "TRSM";
constexpr uint32_t kFormat = 1;
constexpr uint32_t kFormatWithHistory = 2;
constexpr uint32_t kFormatWithMetrics = 3;
constexpr uint32_t kFormatWithFamily = 4;
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
  bool blobs = false;
  for (const BlobRef* blob :
       {&manifest.dense, &manifest.outbox, &manifest.trainer, &manifest.history, &manifest.parted}) {
    if (!IsSound(*blob)) return false;
    blobs = blobs || !blob->empty();
  }
  if (manifest.dense.size % sizeof(float) != 0 || manifest.generation < 0 || manifest.lineage.IsZero()) return false;
  if (manifest.family.IsZero() || !IsCohort(manifest.cohort)) return false;
  if (manifest.cohort.clients != 0 && !manifest.sealed) return false;
  if (manifest.dirty && (blobs || manifest.sealed)) return false;
  if (!manifest.metrics.empty() && (!manifest.sealed || !ParseMetrics(manifest.metrics).ok())) return false;
  return manifest.sealed != manifest.update_id.IsZero();
}

// The oldest format that holds all of the manifest, which the most programs read.
uint32_t FormatOf(const Manifest& manifest) {
  const bool has_family = !manifest.family.IsZero() && manifest.family != manifest.lineage;
  if (has_family || !manifest.parted.empty() || manifest.cohort.clients != 0 || manifest.cohort.samples != 0) {
    return kFormatWithFamily;
  }
  if (!manifest.metrics.empty()) return kFormatWithMetrics;
  return manifest.history.empty() ? kFormat : kFormatWithHistory;
}

// Writes the fields that a manifest of the format has behind those of all.
void PutExtension(const Manifest& manifest, uint32_t format, std::string* bytes) {
  if (format >= kFormatWithHistory) PutBlob(bytes, manifest.history);
  if (format < kFormatWithMetrics) return;
  PutField(bytes, static_cast<uint32_t>(manifest.metrics.size()));
  *bytes += manifest.metrics;
  if (format < kFormatWithFamily) return;
  PutField(bytes, manifest.family.IsZero() ? manifest.lineage : manifest.family);
  PutField(bytes, manifest.cohort.clients);
  PutField(bytes, manifest.cohort.samples);
  PutBlob(bytes, manifest.parted);
}

// Reads it off the front. False when it is not the whole of `rest`.
bool TakeExtension(absl::string_view* rest, uint32_t format, Manifest* manifest) {
  if (format >= kFormatWithHistory) {
    if (rest->size() < kLongManifestBytes - kManifestBytes) return false;
    manifest->history = TakeBlob(rest);
  }
  if (format < kFormatWithMetrics) return rest->empty();
  if (rest->size() < sizeof(uint32_t)) return false;
  const size_t size = TakeField<uint32_t>(rest);
  const bool has_family = format >= kFormatWithFamily;
  if (rest->size() != size + (has_family ? kFamilyBytes : 0)) return false;
  manifest->metrics = std::string(rest->substr(0, size));
  rest->remove_prefix(size);
  if (!has_family) return true;
  manifest->family = TakeField<Id128>(rest);
  manifest->cohort.clients = TakeField<int64_t>(rest);
  manifest->cohort.samples = TakeField<int64_t>(rest);
  manifest->parted = TakeBlob(rest);
  return true;
}

}  // namespace

std::string SerializeManifest(const Manifest& manifest) {
  std::string bytes(kMagic);
  const uint32_t format = FormatOf(manifest);
  PutField(&bytes, format);
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
  PutExtension(manifest, format, &bytes);
  PutField(&bytes, HashBytes(bytes));
  return bytes;
}

absl::StatusOr<Manifest> ParseManifest(absl::string_view bytes) {
  if (bytes.size() < kManifestBytes || bytes.size() > kMostManifestBytes) {
    return absl::DataLossError(absl::StrCat("it has ", bytes.size(), " bytes, and a manifest has ", kManifestBytes,
                                            " to ", kMostManifestBytes));
  }
  if (bytes.substr(0, kMagic.size()) != kMagic) {
    return absl::DataLossError(absl::StrCat("it does not begin with '", kMagic, "'"));
  }
  absl::string_view trailer = bytes.substr(bytes.size() - kTrailerBytes);
  if (TakeField<Id128>(&trailer) != HashBytes(bytes.substr(0, bytes.size() - kTrailerBytes))) {
    return absl::DataLossError("it does not match its checksum");
  }
  absl::string_view rest = bytes.substr(kMagic.size(), bytes.size() - kMagic.size() - kTrailerBytes);
  const uint32_t format = TakeField<uint32_t>(&rest);
  if (format < kFormat || format > kFormatWithFamily) {
    return absl::DataLossError(
        absl::StrCat("it has format ", format, ", and this program reads ", kFormat, " to ", kFormatWithFamily));
  }
  const uint32_t flags = TakeField<uint32_t>(&rest);
  Manifest manifest;
  manifest.dirty = (flags & kDirtyFlag) != 0;
  manifest.sealed = (flags & kSealedFlag) != 0;
  manifest.lineage = manifest.family = TakeField<Id128>(&rest);
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
  if (!TakeExtension(&rest, format, &manifest)) {
    return absl::DataLossError(
        absl::StrCat("it has ", bytes.size(), " bytes, which is not the size of format ", format));
  }
  const bool one_form = format == FormatOf(manifest);
  if (flags > (kDirtyFlag | kSealedFlag) || reserved != 0 || !one_form || !IsSound(manifest)) {
    return absl::DataLossError("its fields contradict each other");
  }
  return manifest;
}

}  // namespace terse
