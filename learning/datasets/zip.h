// Members of a zip archive, as .npz files are.
#ifndef TERSE_LEARNING_DATASETS_ZIP_H_
#define TERSE_LEARNING_DATASETS_ZIP_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "learning/datasets/file_bytes.h"

namespace terse {

// The central directory, held against the file's length. Immutable; thread-safe.
class ZipArchive {
 public:
  // INVALID_ARGUMENT, with the offset, when there is no such directory or it is damaged; for archives of 4 GiB or more
  // too.
  static absl::StatusOr<ZipArchive> Open(FileBytes file);

  bool Has(absl::string_view member) const;
  // The contents, which a stored member shares with the archive; messages call it "ARCHIVE:MEMBER". NOT_FOUND when
  // there is none; INVALID_ARGUMENT when it is encrypted, compressed otherwise than with deflate, damaged (its CRC-32
  // is checked), or becomes more than it promises.
  absl::StatusOr<FileBytes> Read(absl::string_view member) const;
  std::vector<std::string> Names() const;

 private:
  struct Member {
    std::string name;
    uint32_t flags = 0;
    uint32_t method = 0;
    uint32_t crc = 0;
    int64_t packed = 0;
    int64_t size = 0;
    int64_t header = 0;  // offset
  };

  explicit ZipArchive(FileBytes file) : file_(std::move(file)) {}
  const Member* Find(absl::string_view member) const;
  absl::Status ReadDirectory();
  // The member's bytes as they lie in the archive.
  absl::StatusOr<absl::string_view> Packed(const Member& member) const;

  FileBytes file_;
  std::vector<Member> members_;
};

}  // namespace terse

#endif  // TERSE_LEARNING_DATASETS_ZIP_H_
