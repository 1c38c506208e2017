// The TorchScript file of a run: DIR/module.pt in the run's directory of the coordinator and in the state directory of
// each client. It is named by its SHA-256, which the run's configuration holds (model.hash), so that whoever trusts a
// hash trusts these bytes.
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
// Larger ones are refused by both ends.
inline constexpr int64_t kMaxModuleBytes = int64_t{1} << 30;

// SHA-256 as 64 hexadecimal digits in lower case.
std::string ModuleHash(absl::string_view bytes);

// Replaces DIR/module.pt. Statuses of FileSystem.
absl::Status WriteModule(FileSystem& files, const std::string& directory, absl::string_view bytes);

// Copies FROM/module.pt, where there is one, to TO/module.pt and syncs it; the directory entry is not yet durable.
// Statuses of FileSystem.
absl::Status CopyModule(FileSystem& files, const std::string& from, const std::string& to);

// The bytes whose hash is model.hash; nothing for a model that is no TorchScript module. NOT_FOUND when there is no
// file, DATA_LOSS when it has another hash, both with the path.
absl::StatusOr<std::string> ReadModule(FileSystem& files, const std::string& directory, const ModelSpec& model);

}  // namespace terse

#endif  // TERSE_STORAGE_MODULE_FILE_H_
