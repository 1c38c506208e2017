#include "tersectl/objects/object_store.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/file_system.h"
#include "core/status.h"
#include "tersectl/objects/folder_objects.h"
#include "tersectl/objects/s3_objects.h"

namespace terse {
namespace {

constexpr char kBucketScheme[] = "s3://";

}  // namespace

bool IsBucketAddress(absl::string_view address) { return absl::StartsWith(address, kBucketScheme); }

absl::StatusOr<std::unique_ptr<ObjectStore>> OpenObjectStore(const std::string& address,
                                                             std::function<bool()> give_up) {
  if (!IsBucketAddress(address)) return MakeFolderObjects(address);
  TERSE_ASSIGN_OR_RETURN(S3Access access, S3AccessOfEnvironment());
  access.give_up = std::move(give_up);
  return MakeS3Objects(address.substr(sizeof(kBucketScheme) - 1), access);
}

absl::Status PutBytes(ObjectStore& store, const std::string& name, absl::string_view bytes) {
  return store.Put(name, static_cast<int64_t>(bytes.size()), [bytes](int64_t offset, int64_t count) {
    return absl::StatusOr<std::string>(bytes.substr(offset, count));
  });
}

absl::Status PutFile(ObjectStore& store, const std::string& name, const std::string& path) {
  std::error_code error;
  const auto bytes = static_cast<int64_t>(std::filesystem::file_size(path, error));
  if (error) return absl::UnavailableError(absl::StrCat("cannot read ", path, ": ", error.message()));
  return store.Put(name, bytes, [&](int64_t offset, int64_t count) -> absl::StatusOr<std::string> {
    TERSE_ASSIGN_OR_RETURN(std::string part, PosixFiles().ReadPart(path, offset, count));
    if (static_cast<int64_t>(part.size()) < count) {
      return absl::UnavailableError(absl::StrCat(path, " became shorter while it was read"));
    }
    return part;
  });
}

absl::Status CheckObjectName(absl::string_view name) {
  const std::vector<absl::string_view> parts = absl::StrSplit(name, '/');
  const bool is_bad = std::any_of(parts.begin(), parts.end(),
                                  [](absl::string_view part) { return part.empty() || part == "." || part == ".."; });
  if (!is_bad) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("'", absl::CHexEscape(name), "' is no name of a stored file; use words with '/' between them"));
}

}  // namespace terse
