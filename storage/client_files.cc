#include "storage/client_files.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/fault.h"
#include "core/status.h"
#include "storage/byte_io.h"
#include "storage/module_file.h"
#include "storage/parted_lineages.h"
#include "storage/weights_file.h"

namespace terse {
namespace {

constexpr absl::string_view kManifest = "MANIFEST";
constexpr absl::string_view kModel = "model";
constexpr absl::string_view kDense = "dense";
constexpr absl::string_view kOutbox = "outbox";
constexpr absl::string_view kTrainer = "trainer";
constexpr absl::string_view kHistory = "history";
constexpr absl::string_view kParted = "parted";

absl::Status Damaged(const std::string& path, absl::string_view reason) {
  return absl::DataLossError(absl::StrCat(path, " is damaged: ", reason, kClientRemedy));
}

// A file that is missing or too long is damage; one that cannot be read now may be whole.
absl::Status DamagedUnlessDenied(const std::string& path, const absl::Status& status) {
  if (!absl::IsNotFound(status) && !absl::IsResourceExhausted(status)) return status;
  return Damaged(path, status.message());
}

std::string BlobName(absl::string_view kind, int64_t generation) { return absl::StrCat(kind, ".", generation); }

// The kind of a blob of this name; empty when it is none. Blobs are files that only this class makes; everything else
// in the directory is left alone.
absl::string_view KindOf(absl::string_view name) {
  const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(name, absl::MaxSplits('.', 1));
  int64_t generation = 0;
  if (!absl::SimpleAtoi(parts.second, &generation)) return "";
  for (absl::string_view kind : {kDense, kOutbox, kTrainer, kHistory, kParted}) {
    if (parts.first == kind) return kind;
  }
  return "";
}

bool IsBlobName(absl::string_view name) { return !KindOf(name).empty(); }

// For kRenameBeforeSync only.
absl::Status WriteUnsynced(FileSystem& files, absl::Span<const FileContents> contents) {
  for (const FileContents& blob : contents) {
    TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, files.Create(blob.path));
    for (absl::string_view part : blob.parts) TERSE_RETURN_IF_ERROR(file->Append(part));
  }
  return absl::OkStatus();
}

BlobRef RefTo(int64_t generation, absl::string_view contents) {
  return BlobRef{generation, contents.size(), HashBytes(contents)};
}

std::vector<float> FloatsOf(absl::string_view bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

}  // namespace

bool IsClientFile(absl::string_view name) {
  return name == kManifest || name == kModel || name == kModuleFile || IsBlobName(name) ||
         absl::EndsWith(name, kTemporarySuffix);
}

std::vector<NamedBlob> BlobsOf(const Manifest& manifest) {
  std::vector<NamedBlob> blobs;
  const std::pair<absl::string_view, const BlobRef&> all[] = {{kDense, manifest.dense},
                                                              {kOutbox, manifest.outbox},
                                                              {kTrainer, manifest.trainer},
                                                              {kHistory, manifest.history},
                                                              {kParted, manifest.parted}};
  for (const auto& [kind, blob] : all) {
    if (!blob.empty()) blobs.push_back({BlobName(kind, blob.generation), blob});
  }
  return blobs;
}

absl::StatusOr<std::string> ReadBlob(FileSystem& files, const std::string& directory, const NamedBlob& named) {
  const std::string path = FilePath(directory, named.name);
  absl::StatusOr<std::string> bytes = files.Read(path, static_cast<int64_t>(named.blob.size));
  if (!bytes.ok()) return DamagedUnlessDenied(path, bytes.status());
  if (bytes->size() != named.blob.size) {
    return Damaged(path, absl::StrCat("it has ", bytes->size(), " bytes instead of ", named.blob.size));
  }
  if (HashBytes(*bytes) != named.blob.hash) return Damaged(path, "it does not match its checksum");
  return bytes;
}

absl::StatusOr<std::vector<PartedLineage>> ReadParted(FileSystem& files, const std::string& directory,
                                                      const Manifest& manifest) {
  if (manifest.parted.empty()) return std::vector<PartedLineage>();
  const NamedBlob named = {BlobName(kParted, manifest.parted.generation), manifest.parted};
  TERSE_ASSIGN_OR_RETURN(const std::string bytes, ReadBlob(files, directory, named));
  absl::StatusOr<std::vector<PartedLineage>> parted = ParseParted(bytes);
  const std::string path = FilePath(directory, named.name);
  if (!parted.ok()) return Damaged(path, parted.status().message());
  if (FindParted(*parted, manifest.lineage) == nullptr) return parted;
  return Damaged(path, "it has the lineage that the manifest is of");
}

absl::StatusOr<Manifest> ReadManifest(FileSystem& files, const std::string& directory) {
  const std::string path = FilePath(directory, kManifest);
  absl::StatusOr<std::string> bytes = files.Read(path, kMostManifestBytes);
  if (absl::IsNotFound(bytes.status())) {
    // Begin writes the manifest before Seal writes the first blob.
    TERSE_ASSIGN_OR_RETURN(const std::vector<std::string> names, files.List(directory));
    for (const std::string& name : names) {
      if (IsBlobName(name)) return Damaged(path, absl::StrCat("it is missing, though there is a ", name));
    }
    return Manifest();
  }
  if (!bytes.ok()) return DamagedUnlessDenied(path, bytes.status());
  absl::StatusOr<Manifest> manifest = ParseManifest(*bytes);
  if (!manifest.ok()) return Damaged(path, manifest.status().message());
  return manifest;
}

ClientFiles::ClientFiles(std::string directory, FileSystem& files, std::unique_ptr<DirectoryLock> lock)
    : directory_(std::move(directory)), files_(files), lock_(std::move(lock)) {}

std::string ClientFiles::PathOf(absl::string_view name) const { return FilePath(directory_, name); }

absl::StatusOr<std::string> ClientFiles::Contents(absl::string_view kind, const BlobRef& blob) const {
  if (blob.empty()) return std::string();
  return ReadBlob(files_, directory_, {BlobName(kind, blob.generation), blob});
}

absl::Status ClientFiles::Load() {
  TERSE_RETURN_IF_ERROR(files_.Remove(absl::StrCat(PathOf(kManifest), kTemporarySuffix)));
  TERSE_ASSIGN_OR_RETURN(manifest_, ReadManifest(files_, directory_));
  return absl::OkStatus();
}

absl::StatusOr<LargeState> ClientFiles::ReadLarge() const {
  LargeState large;
  {
    TERSE_ASSIGN_OR_RETURN(const std::string dense, Contents(kDense, manifest_.dense));
    large.dense = FloatsOf(dense);
  }
  TERSE_ASSIGN_OR_RETURN(large.trainer_state, Contents(kTrainer, manifest_.trainer));
  TERSE_ASSIGN_OR_RETURN(large.history, Contents(kHistory, manifest_.history));
  return large;
}

absl::StatusOr<std::string> ClientFiles::ReadOutbox() const { return Contents(kOutbox, manifest_.outbox); }

absl::StatusOr<std::vector<PartedLineage>> ClientFiles::ReadParted() const {
  return terse::ReadParted(files_, directory_, manifest_);
}

// A seal's generation is greater than those of the blobs on disk, unless they are of a move, which seals nothing.
int64_t ClientFiles::NumberFor(int64_t generation) const {
  for (const NamedBlob& blob : BlobsOf(manifest_)) generation = std::max(generation, blob.blob.generation + 1);
  return generation;
}

absl::Status ClientFiles::WriteBlobs(const SealedBlobs& sealed, Manifest* manifest) {
  TERSE_RETURN_IF_ERROR(broken_);
  const int64_t number = NumberFor(manifest->generation);
  std::vector<FileContents> blobs;
  absl::Status reused;
  const auto add = [&](absl::string_view kind, absl::string_view contents) {
    if (contents.empty()) return BlobRef();
    const std::string name = BlobName(kind, number);
    reused.Update(ReuseSpare(kind, name));
    blobs.push_back({PathOf(name), {contents}, /*overwrite=*/true});
    return RefTo(number, contents);
  };
  manifest->dense = add(kDense, BytesOf(sealed.dense));
  manifest->outbox = add(kOutbox, sealed.outbox);
  manifest->trainer = add(kTrainer, sealed.trainer);
  manifest->history = add(kHistory, sealed.history);
  manifest->parted = add(kParted, sealed.parted);
  TERSE_RETURN_IF_ERROR(reused);
  if (blobs.empty()) return absl::OkStatus();
  if (Mutated(Mutant::kRenameBeforeSync)) return WriteUnsynced(files_, blobs);
  TERSE_RETURN_IF_ERROR(Watch(WriteFilesSynced(files_, blobs)));
  return Watch(files_.SyncDirectory(directory_));
}

absl::Status ClientFiles::Watch(const absl::Status& status) {
  if (IsSyncFailure(status))
    broken_ = Annotate(status, "the client's state may or may not be on disk; restart the client");
  return status;
}

bool ClientFiles::IsUnchanged() const {
  const absl::StatusOr<std::string> bytes = files_.Read(PathOf(kManifest), kMostManifestBytes);
  if (manifest_.lineage.IsZero()) return absl::IsNotFound(bytes.status());
  return bytes.ok() && *bytes == SerializeManifest(manifest_);
}

absl::Status ClientFiles::Replace(const Manifest& manifest) {
  TERSE_RETURN_IF_ERROR(broken_);
  const std::string bytes = SerializeManifest(manifest);
  absl::Status status = ReplaceFile(files_, PathOf(kManifest), {bytes});
  // An error after the rename, or in it: the new manifest is there, and whether it stays is not known.
  if (!status.ok() && !IsUnchanged()) status = absl::UnknownError(status.message());
  TERSE_RETURN_IF_ERROR(Watch(status));
  if (manifest.lineage != manifest_.lineage) spares_.clear();  // nothing of another run stays
  const std::vector<NamedBlob> before =
      manifest.lineage == manifest_.lineage ? BlobsOf(manifest_) : std::vector<NamedBlob>();
  manifest_ = manifest;
  const std::set<std::string> named = Named();
  for (const NamedBlob& blob : before) {
    if (named.count(blob.name) == 0) spares_.try_emplace(KindOf(blob.name), blob.name);
  }
  RemoveUnnamed();
  return absl::OkStatus();
}

std::set<std::string> ClientFiles::Named() const {
  std::set<std::string> named;
  for (const NamedBlob& blob : BlobsOf(manifest_)) named.insert(blob.name);
  return named;
}

absl::Status ClientFiles::ReuseSpare(absl::string_view kind, const std::string& name) {
  const auto spare = spares_.find(kind);
  if (spare == spares_.end()) return absl::OkStatus();
  const std::string path = PathOf(spare->second);
  spares_.erase(spare);
  const absl::Status status = files_.Rename(path, PathOf(name));
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

void ClientFiles::RemoveUnnamed() const {
  std::set<std::string> kept = Named();
  for (const auto& [kind, name] : spares_) kept.insert(name);
  const absl::StatusOr<std::vector<std::string>> names = files_.List(directory_);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    if (IsBlobName(name) && kept.count(name) == 0) files_.Remove(PathOf(name)).IgnoreError();
  }
}

absl::Status ClientFiles::SaveModel(const CachedModel& model) {
  TERSE_RETURN_IF_ERROR(broken_);
  const WeightsBytes bytes(kCachedModelMagic, model.version, model.lineage, model.weights);
  return Watch(ReplaceFile(files_, PathOf(kModel), bytes.parts()));
}

absl::optional<CachedModel> ClientFiles::LoadModel() const {
  const absl::StatusOr<std::string> bytes = files_.Read(PathOf(kModel));
  if (!bytes.ok()) return absl::nullopt;
  absl::StatusOr<WeightsFile> file = ParseWeights(kCachedModelMagic, *bytes);
  if (!file.ok()) return absl::nullopt;
  return CachedModel{file->id, file->version, std::move(file->weights)};
}

absl::Status ClientFiles::SaveModule(absl::string_view bytes) {
  TERSE_RETURN_IF_ERROR(broken_);
  return Watch(WriteModule(files_, directory_, kTorchScriptModel, bytes));
}

absl::optional<std::string> ClientFiles::LoadModule(const ModelSpec& model) const {
  absl::StatusOr<std::string> bytes = ReadModule(files_, directory_, model);
  if (!bytes.ok()) return absl::nullopt;
  return *std::move(bytes);
}

}  // namespace terse
