#include "storage/module_file.h"

#include <openssl/sha.h>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace terse {
namespace {

std::string PathOf(const std::string& directory) { return absl::StrCat(directory, "/", kModuleFile); }

}  // namespace

std::string ModuleHash(absl::string_view bytes) {
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
         reinterpret_cast<unsigned char*>(&digest[0]));
  return absl::BytesToHexString(digest);
}

absl::Status WriteModule(FileSystem& files, const std::string& directory, absl::string_view bytes) {
  TERSE_RETURN_IF_ERROR(files.MakeDirectory(directory));
  return ReplaceFile(files, PathOf(directory), {bytes});
}

absl::Status CopyModule(FileSystem& files, const std::string& from, const std::string& to) {
  const absl::StatusOr<std::string> bytes = files.Read(PathOf(from), kMaxModuleBytes);
  if (absl::IsNotFound(bytes.status())) return absl::OkStatus();
  TERSE_RETURN_IF_ERROR(bytes.status());
  return WriteFileSynced(files, PathOf(to), {*bytes});
}

absl::StatusOr<std::string> ReadModule(FileSystem& files, const std::string& directory, const ModelSpec& model) {
  if (model.name != kTorchScriptModel) return std::string();
  absl::StatusOr<std::string> bytes = files.Read(PathOf(directory), kMaxModuleBytes);
  if (absl::IsNotFound(bytes.status())) {
    return absl::NotFoundError(
        absl::StrCat("there is no ", PathOf(directory), ", the model of this run; make a new ",
                     "run with `tersectl run create --run-file FILE --model FILE`, or put the file ",
                     "with the SHA-256 ", model.hash, " there"));
  }
  if (!bytes.ok()) return bytes;
  if (const std::string hash = ModuleHash(*bytes); hash != model.hash) {
    return absl::DataLossError(absl::StrCat(PathOf(directory), " has the SHA-256 ", hash, " and not ", model.hash,
                                            ", which the run was created with; put the original file there"));
  }
  return bytes;
}

}  // namespace terse
