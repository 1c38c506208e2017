// The permissions of a process's files.
#ifndef TERSE_CORE_FILE_MODES_H_
#define TERSE_CORE_FILE_MODES_H_

#include <string>

#include "absl/status/status.h"

namespace terse {

// Takes all rights to a file or directory from everybody but its owner. OK, and nothing is changed, when there is none,
// when it is another user's, and when it is neither a regular file nor a directory or is a directory for everybody such
// as /tmp. Other errors of the system name the path, as of FileSystem.
absl::Status MakePrivate(const std::string& path);

}  // namespace terse

#endif  // TERSE_CORE_FILE_MODES_H_
