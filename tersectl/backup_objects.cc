#include "tersectl/backup_objects.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/file_system.h"
#include "core/status.h"
#include "nlohmann/json.hpp"
#include "security/file_hash.h"
#include "storage/temporary_directory.h"
#include "tersectl/objects/object_store.h"

namespace terse {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kManifest[] = "backup.json";
constexpr int kFormat = 1;
constexpr int64_t kMostManifestBytes = int64_t{64} << 20;

struct BackupFile {
  std::string name;
  int64_t bytes = 0;
  std::string sha256;
};

// The store, and the backup's name in it.
struct Place {
  std::unique_ptr<ObjectStore> store;
  std::string name;

  std::string NameOf(const std::string& file) const { return absl::StrCat(name, "/", file); }
};

absl::StatusOr<Place> PlaceOf(const std::string& address) {
  const size_t slash = address.rfind('/');
  const bool has_name = slash != std::string::npos && slash + 1 < address.size() && slash > sizeof("s3://") - 1;
  if (!has_name) {
    return absl::InvalidArgumentError(absl::StrCat(address, " names no backup; give s3://BUCKET/NAME"));
  }
  Place place;
  TERSE_ASSIGN_OR_RETURN(place.store, OpenObjectStore(address.substr(0, slash)));
  place.name = address.substr(slash + 1);
  TERSE_RETURN_IF_ERROR(CheckObjectName(place.name));
  return place;
}

absl::StatusOr<bool> HasManifest(Place& place) {
  TERSE_ASSIGN_OR_RETURN(const std::vector<ObjectInfo> objects, place.store->List(place.name));
  return std::any_of(objects.begin(), objects.end(),
                     [&](const ObjectInfo& object) { return object.name == place.NameOf(kManifest); });
}

// The files below `directory`, by name.
absl::StatusOr<std::vector<BackupFile>> FilesOf(const std::string& directory) {
  std::vector<BackupFile> files;
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    if (!entry->is_regular_file()) continue;
    BackupFile file;
    file.name = entry->path().lexically_relative(directory).string();
    file.bytes = static_cast<int64_t>(entry->file_size());
    TERSE_ASSIGN_OR_RETURN(file.sha256, Sha256OfFile(entry->path().string()));
    files.push_back(std::move(file));
  }
  if (error) return absl::UnavailableError(absl::StrCat("cannot list ", directory, ": ", error.message()));
  std::sort(files.begin(), files.end(), [](const BackupFile& a, const BackupFile& b) { return a.name < b.name; });
  return files;
}

std::string ManifestOf(const std::vector<BackupFile>& files) {
  Json list = Json::array();
  for (const BackupFile& file : files) {
    list.push_back({{"name", file.name}, {"bytes", file.bytes}, {"sha256", file.sha256}});
  }
  return absl::StrCat(Json({{"format", kFormat}, {"files", std::move(list)}}).dump(2), "\n");
}

absl::Status BadManifest(absl::string_view reason) {
  return absl::DataLossError(absl::StrCat(kManifest, " ", reason, "; restore another backup"));
}

// Anybody may have written the text, so names must be those of a run's files.
absl::StatusOr<std::vector<BackupFile>> ParseManifest(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("format") || !json.contains("files") || !json["files"].is_array()) {
    return BadManifest("is no list of a backup's files");
  }
  if (json["format"] != kFormat) return BadManifest("has a format of a later release");
  std::vector<BackupFile> files;
  for (const Json& entry : json["files"]) {
    const bool is_whole = entry.is_object() && entry.contains("name") && entry["name"].is_string() &&
                          entry.contains("bytes") && entry["bytes"].is_number_unsigned() && entry.contains("sha256") &&
                          entry["sha256"].is_string();
    if (!is_whole || !IsBackupFile(entry["name"].get<std::string>()))
      return BadManifest("names a file that no run has");
    files.push_back({entry["name"], entry["bytes"], entry["sha256"]});
  }
  return files;
}

absl::StatusOr<std::vector<BackupFile>> ReadManifest(Place& place, const std::string& directory) {
  const std::string path = absl::StrCat(directory, "/", kManifest);
  const absl::Status status = place.store->Get(place.NameOf(kManifest), path);
  if (absl::IsNotFound(status)) {
    return absl::NotFoundError(
        absl::StrCat(place.store->address(), "/", place.name, " holds no whole backup of a run (no ", kManifest, ")"));
  }
  TERSE_RETURN_IF_ERROR(status);
  TERSE_ASSIGN_OR_RETURN(const std::string text, PosixFiles().Read(path, kMostManifestBytes));
  TERSE_RETURN_IF_ERROR(PosixFiles().Remove(path));
  return ParseManifest(text);
}

}  // namespace

absl::StatusOr<BackupResult> UploadBackup(AdminClient& client, const std::string& address) {
  TERSE_ASSIGN_OR_RETURN(Place place, PlaceOf(address));
  TERSE_ASSIGN_OR_RETURN(const bool is_there, HasManifest(place));
  if (is_there) return absl::AlreadyExistsError(absl::StrCat(address, " exists; name a new backup with --out"));
  TERSE_ASSIGN_OR_RETURN(const std::string name, NewTemporaryName("terse-backup"));
  const TemporaryDirectory directory(name);
  TERSE_ASSIGN_OR_RETURN(const BackupResult result, SaveBackup(client, directory.path()));
  TERSE_ASSIGN_OR_RETURN(const std::vector<BackupFile> files, FilesOf(directory.path()));
  for (const BackupFile& file : files) {
    TERSE_RETURN_IF_ERROR(
        PutFile(*place.store, place.NameOf(file.name), absl::StrCat(directory.path(), "/", file.name)));
  }
  TERSE_RETURN_IF_ERROR(PutBytes(*place.store, place.NameOf(kManifest), ManifestOf(files)));
  return result;
}

absl::Status DownloadBackup(const std::string& address, const std::string& directory) {
  TERSE_ASSIGN_OR_RETURN(Place place, PlaceOf(address));
  TERSE_RETURN_IF_ERROR(PosixFiles().MakeDirectory(directory));
  TERSE_ASSIGN_OR_RETURN(const std::vector<BackupFile> files, ReadManifest(place, directory));
  for (const BackupFile& file : files) {
    const std::string path = absl::StrCat(directory, "/", file.name);
    TERSE_RETURN_IF_ERROR(PosixFiles().MakeDirectory(std::filesystem::path(path).parent_path().string()));
    const absl::Status status = place.store->Get(place.NameOf(file.name), path);
    if (absl::IsNotFound(status)) return absl::DataLossError(absl::StrCat(address, " lacks its ", file.name));
    TERSE_RETURN_IF_ERROR(status);
    TERSE_ASSIGN_OR_RETURN(const std::string sha256, Sha256OfFile(path));
    if (sha256 == file.sha256) continue;
    return absl::DataLossError(
        absl::StrCat(file.name, " of ", address, " is not what was backed up; restore another backup"));
  }
  return absl::OkStatus();
}

}  // namespace terse
