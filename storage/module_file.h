// The file that came with a run. Of a TorchScript model: DIR/module.pt, in the run's directory of the coordinator and
// in the state directory of each client. Of an external model: DIR/start.safetensors, in the run's directory. It is
// named by its SHA-256, which the run's configuration holds (model.hash), so that whoever trusts a hash trusts these
// bytes.
#ifndef TERSE_STORAGE_MODULE_FILE_H_
#define TERSE_STORAGE_MODULE_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/file_system.h"
#include "core/run_config.h"

namespace terse {

inline constexpr char kModuleFile[] = "module.pt";
inline constexpr char kStartFile[] = "start.safetensors";
// The name of the file of such a model; empty where none comes with its runs.
inline absl::string_view ModelFileName(absl::string_view model) {
  return model == kTorchScriptModel ? kModuleFile : model == kExternalModel ? kStartFile : absl::string_view();
}
inline bool IsModelFile(absl::string_view name) { return name == kModuleFile || name == kStartFile; }
// Larger ones are refused by both ends.
inline constexpr int64_t kMaxModuleBytes = int64_t{1} << 30;

// SHA-256 as 64 hexadecimal digits in lower case.
std::string ModuleHash(absl::string_view bytes);

// Replaces the file of the model of that name, which has one. Statuses of FileSystem.
absl::Status WriteModule(FileSystem& files, const std::string& directory, absl::string_view model,
                         absl::string_view bytes);

// Copies the file of a run, where there is one, from a directory to another and syncs it; the directory entry is not
// yet durable. Statuses of FileSystem.
absl::Status CopyModule(FileSystem& files, const std::string& from, const std::string& to);

// The bytes whose hash is model.hash; nothing for a model without a file. NOT_FOUND when there is no
// file, DATA_LOSS when it has another hash, both with the path.
absl::StatusOr<std::string> ReadModule(FileSystem& files, const std::string& directory, const ModelSpec& model);

}  // namespace terse

#endif  // TERSE_STORAGE_MODULE_FILE_H_
