// A directory under construction, or one that is needed for a moment.
#ifndef TERSE_STORAGE_TEMPORARY_DIRECTORY_H_
#define TERSE_STORAGE_TEMPORARY_DIRECTORY_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace terse {

// Removes `path` and everything in it, best effort.
void RemoveTree(const std::string& path);

// The name of a directory that is gone with everything in it when the object goes, unless it was renamed until then.
// The constructor removes what an earlier process left under that name. The caller makes the directory.
class TemporaryDirectory {
 public:
  explicit TemporaryDirectory(std::string path) : path_(std::move(path)) { RemoveTree(path_); }
  ~TemporaryDirectory() { RemoveTree(path_); }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

// Returns the path of PREFIX-RANDOM in the folder for temporary files, which nothing has yet. UNAVAILABLE when there is
// no such folder.
absl::StatusOr<std::string> NewTemporaryName(absl::string_view prefix);

}  // namespace terse

#endif  // TERSE_STORAGE_TEMPORARY_DIRECTORY_H_
