// The contents of one data file, and how to say what is wrong with them. Every reader of this folder stands on it.
#ifndef TERSE_LEARNING_DATASETS_FILE_BYTES_H_
#define TERSE_LEARNING_DATASETS_FILE_BYTES_H_

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/status.h"

namespace terse {

// The most memory that one data set's file may ask for, and that one may become when it is decompressed or spread out.
constexpr int64_t kMaxDataBytes = int64_t{1} << 34;

// A plain file is mapped, so that processes which read the same file share its memory; it must stay as it is while
// they run. A gzip file is decompressed, into memory that grows with what really comes out. Immutable; copies share
// the contents. Thread-safe.
class FileBytes {
 public:
  // NOT_FOUND when there is no readable file at `path`; INVALID_ARGUMENT, with the offset in the compressed file, for
  // gzip that is damaged, cut short, or becomes more than kMaxDataBytes.
  static absl::StatusOr<FileBytes> Open(const std::string& path);
  // Contents that came out of another file, such as a member of an archive; `name` stands for them in messages.
  FileBytes(std::string name, absl::string_view bytes, std::shared_ptr<const void> owner)
      : name_(std::move(name)), bytes_(bytes), owner_(std::move(owner)) {}

  const std::string& name() const { return name_; }
  absl::string_view bytes() const { return bytes_; }
  // The contents of a text: without the byte order mark that some programs put before UTF-8.
  absl::string_view text() const;
  int64_t size() const { return static_cast<int64_t>(bytes_.size()); }
  // Keeps bytes() alive.
  const std::shared_ptr<const void>& owner() const { return owner_; }

  // Returns INVALID_ARGUMENT with file, offset, reason and remedy.
  absl::Status Malformed(int64_t offset, absl::string_view reason) const;
  // Returns the same for texts, with a line, counted from 1, instead of the offset.
  absl::Status MalformedLine(int64_t line, absl::string_view reason) const;

 private:
  std::string name_;
  absl::string_view bytes_;
  std::shared_ptr<const void> owner_;
};

// Takes a file's bytes from front to back. Every method returns INVALID_ARGUMENT with the offset when the file is too
// short; `what` names the wanted bytes. Keep the FileBytes alive.
class ByteReader {
 public:
  explicit ByteReader(const FileBytes& file) : file_(file) {}

  int64_t offset() const { return offset_; }
  int64_t left() const { return file_.size() - offset_; }
  absl::StatusOr<absl::string_view> Take(int64_t size, absl::string_view what);
  absl::StatusOr<uint32_t> TakeBigEndian32(absl::string_view what);
  // An unsigned number as it lies in memory (little-endian).
  template <typename T>
  absl::StatusOr<T> TakeNumber(absl::string_view what) {
    static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are read as they lie in memory");
    TERSE_ASSIGN_OR_RETURN(const absl::string_view bytes, Take(sizeof(T), what));
    T number;
    std::memcpy(&number, bytes.data(), sizeof number);
    return number;
  }

 private:
  const FileBytes& file_;
  int64_t offset_ = 0;
};

}  // namespace terse

#endif  // TERSE_LEARNING_DATASETS_FILE_BYTES_H_
