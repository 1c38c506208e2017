#include "learning/datasets/file_bytes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "learning/datasets/inflate.h"

namespace terse {
namespace {

constexpr absl::string_view kRemedy = "; the file is damaged or not the one meant here: fetch it again";

absl::Status NotReadable(const std::string& path) {
  return absl::NotFoundError(absl::StrCat(path, ": cannot be opened; check that the file is there and may be read"));
}

// Maps the regular file `path`. An empty one cannot be mapped and needs no memory.
absl::StatusOr<FileBytes> Map(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe must not keep us waiting
  if (file < 0) return NotReadable(path);
  struct stat info;
  const bool regular = fstat(file, &info) == 0 && S_ISREG(info.st_mode);
  const size_t size = regular ? info.st_size : 0;
  void* const start = size == 0 ? nullptr : mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  if (!regular || start == MAP_FAILED) return NotReadable(path);
  if (size == 0) return FileBytes(path, "", nullptr);
  std::shared_ptr<const void> owner(start, [size](void* at) { munmap(at, size); });
  return FileBytes(path, absl::string_view(static_cast<const char*>(start), size), std::move(owner));
}

}  // namespace

absl::StatusOr<FileBytes> FileBytes::Open(const std::string& path) {
  TERSE_ASSIGN_OR_RETURN(FileBytes file, Map(path));
  if (!absl::StartsWith(file.bytes(), "\x1f\x8b")) return file;
  Inflated inflated = Inflate(file.bytes(), Compression::kGzip, kMaxDataBytes);
  if (inflated.bytes == nullptr) {
    return file.Malformed(inflated.offset, absl::StrCat("it cannot be decompressed (", inflated.reason, ")"));
  }
  const absl::string_view bytes = *inflated.bytes;
  return FileBytes(path, bytes, std::move(inflated.bytes));
}

absl::string_view FileBytes::text() const { return absl::StripPrefix(bytes_, "\xef\xbb\xbf"); }

absl::Status FileBytes::Malformed(int64_t offset, absl::string_view reason) const {
  return absl::InvalidArgumentError(absl::StrCat(name_, ", offset ", offset, ": ", reason, kRemedy));
}

absl::Status FileBytes::MalformedLine(int64_t line, absl::string_view reason) const {
  return absl::InvalidArgumentError(
      absl::StrCat(name_, ", line ", line, ": ", reason, "; correct the line, or the settings under [data]"));
}

absl::StatusOr<absl::string_view> ByteReader::Take(int64_t size, absl::string_view what) {
  if (size > left()) {
    return file_.Malformed(
        offset_, absl::StrCat("the file ends where ", size - left(), " more bytes of ", what, " should follow"));
  }
  offset_ += size;
  return file_.bytes().substr(offset_ - size, size);
}

absl::StatusOr<uint32_t> ByteReader::TakeBigEndian32(absl::string_view what) {
  TERSE_ASSIGN_OR_RETURN(const uint32_t number, TakeNumber<uint32_t>(what));
  return __builtin_bswap32(number);
}

}  // namespace terse
