#include "security/private_files.h"

#include <errno.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace terse {
namespace {

// These two only tell who we were before, so asking for nobody tells who we are.
uid_t FileUser() { return static_cast<uid_t>(setfsuid(static_cast<uid_t>(-1))); }
gid_t FileGroup() { return static_cast<gid_t>(setfsgid(static_cast<gid_t>(-1))); }

}  // namespace

AsOwner::AsOwner(const std::string& directory) {
  struct stat info;
  if (stat(directory.c_str(), &info) != 0) {
    status_ = absl::ErrnoToStatus(errno, absl::StrCat("cannot examine ", directory));
    return;
  }
  if (geteuid() != 0 || info.st_uid == 0) return;
  acting_ = true;
  setfsgid(info.st_gid);  // first: afterwards we may not
  setfsuid(info.st_uid);
  if (FileUser() == info.st_uid && FileGroup() == info.st_gid) return;
  status_ = absl::PermissionDeniedError(
      absl::StrCat("cannot write to ", directory, " as its owner, user ", info.st_uid, "; run this as that user"));
}

AsOwner::~AsOwner() {
  if (!acting_) return;
  setfsuid(geteuid());
  setfsgid(getegid());
}

absl::Status ReplacePrivateFile(const std::string& directory, const std::string& name, absl::string_view bytes) {
  const AsOwner owner(directory);
  TERSE_RETURN_IF_ERROR(owner.status());
  const std::string path = FilePath(directory, name);
  // It would keep its mode and its readers.
  TERSE_RETURN_IF_ERROR(PosixFiles().Remove(absl::StrCat(path, kTemporarySuffix)));
  return ReplaceFile(PosixFiles(), path, {bytes});
}

}  // namespace terse
