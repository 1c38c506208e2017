#include "storage/module_file.h"

#include <openssl/sha.h>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace terse {
namespace {

std::string PathOf(const std::string& directory, absl::string_view model) {
  return absl::StrCat(directory, "/", ModelFileName(model));
}

}  // namespace

std::string ModuleHash(absl::string_view bytes) {
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
         reinterpret_cast<unsigned char*>(&digest[0]));
  return absl::BytesToHexString(digest);
}

absl::Status WriteModule(FileSystem& files, const std::string& directory, absl::string_view model,
                         absl::string_view bytes) {
  TERSE_RETURN_IF_ERROR(files.MakeDirectory(directory));
  return ReplaceFile(files, PathOf(directory, model), {bytes});
}

absl::Status CopyModule(FileSystem& files, const std::string& from, const std::string& to) {
  for (const absl::string_view model : {kTorchScriptModel, kExternalModel}) {
    const absl::StatusOr<std::string> bytes = files.Read(PathOf(from, model), kMaxModuleBytes);
    if (absl::IsNotFound(bytes.status())) continue;
    TERSE_RETURN_IF_ERROR(bytes.status());
    TERSE_RETURN_IF_ERROR(WriteFileSynced(files, PathOf(to, model), {*bytes}));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadModule(FileSystem& files, const std::string& directory, const ModelSpec& model) {
  if (!HasModelFile(model.name)) return std::string();
  const std::string path = PathOf(directory, model.name);
  absl::StatusOr<std::string> bytes = files.Read(path, kMaxModuleBytes);
  if (absl::IsNotFound(bytes.status())) {
    return absl::NotFoundError(absl::StrCat(
        "there is no ", path, ", the model of this run; make a new ",
        "run with `tersectl run create --run-file FILE --model FILE`",
        model.hash.empty() ? "" : absl::StrCat(", or put the file with the SHA-256 ", model.hash, " there")));
  }
  if (!bytes.ok()) return bytes;
  if (const std::string hash = ModuleHash(*bytes); hash != model.hash) {
    return absl::DataLossError(absl::StrCat(path, " has the SHA-256 ", hash, " and not ", model.hash,
                                            ", which the run was created with; put the original file there"));
  }
  return bytes;
}

}  // namespace terse
