// The files that a service needs, written so that the owner of the folder owns them, whoever writes them.
#ifndef TERSE_SECURITY_PRIVATE_FILES_H_
#define TERSE_SECURITY_PRIVATE_FILES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/file_system.h"

namespace terse {

// Acts on files as the owner of a folder while it lives, when the process is root and the folder is somebody else's: a
// file that root makes there would lock a service out of its own key, and a link that the owner left there must not
// lead root to a file that the owner may not touch. Without effect for others than root. For the thread that made it.
class AsOwner {
 public:
  explicit AsOwner(const std::string& directory);
  ~AsOwner();
  AsOwner(const AsOwner&) = delete;
  AsOwner& operator=(const AsOwner&) = delete;

  // NOT_FOUND and the like when there is no such folder; PERMISSION_DENIED when the system does not let us.
  const absl::Status& status() const { return status_; }

 private:
  absl::Status status_;
  bool acting_ = false;
};

// ReplaceFile of DIRECTORY/NAME as the folder's owner, mode 0600 whatever a temporary file that is already there has.
// Statuses of FileSystem and AsOwner.
absl::Status ReplacePrivateFile(const std::string& directory, const std::string& name, absl::string_view bytes);

}  // namespace terse

#endif  // TERSE_SECURITY_PRIVATE_FILES_H_
