#include "learning/datasets/zip.h"

#include <zlib.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "learning/datasets/inflate.h"

namespace terse {
namespace {

// APPNOTE.TXT 6.3.10 of PKWARE, sections 4.3.7, 4.3.12 and 4.3.16.
constexpr absl::string_view kEndMagic("PK\5\6", 4);
constexpr absl::string_view kEntryMagic("PK\1\2", 4);
constexpr absl::string_view kLocalMagic("PK\3\4", 4);
constexpr int64_t kEndSize = 22, kEntrySize = 46, kLocalSize = 30;
constexpr int64_t kLongestComment = 65535;
constexpr uint32_t kEncrypted = 1;
constexpr uint32_t kStored = 0, kDeflated = 8;

uint32_t NumberAt(absl::string_view bytes, size_t offset, int size) {
  uint32_t number = 0;
  for (int i = size - 1; i >= 0; --i) number = number << 8 | static_cast<unsigned char>(bytes[offset + i]);
  return number;
}

}  // namespace

absl::StatusOr<ZipArchive> ZipArchive::Open(FileBytes file) {
  ZipArchive archive(std::move(file));
  TERSE_RETURN_IF_ERROR(archive.ReadDirectory());
  return archive;
}

absl::Status ZipArchive::ReadDirectory() {
  const absl::string_view bytes = file_.bytes();
  if (file_.size() > 0xffffffffLL) {
    return file_.Malformed(0, "an archive of 4 GiB or more is not read; save each array as a file of its own");
  }
  const int64_t last = file_.size() - kEndSize;
  int64_t end = last < 0 ? -1 : static_cast<int64_t>(bytes.rfind(kEndMagic, last));
  if (end < 0 || end < last - kLongestComment) {
    return file_.Malformed(file_.size(), "the file does not end as a zip archive does");
  }
  const int64_t count = NumberAt(bytes, end + 10, 2), size = NumberAt(bytes, end + 12, 4);
  int64_t at = NumberAt(bytes, end + 16, 4);
  if (at > end || size > end - at) return file_.Malformed(end + 12, "its directory does not lie in the file");
  end = at + size;
  for (int64_t i = 0; i < count; ++i) {
    if (end - at < kEntrySize || bytes.substr(at, 4) != kEntryMagic) {
      return file_.Malformed(at, absl::StrCat("entry ", i + 1, " of the archive's directory is damaged"));
    }
    const int64_t name = NumberAt(bytes, at + 28, 2);
    const int64_t rest = name + NumberAt(bytes, at + 30, 2) + NumberAt(bytes, at + 32, 2);
    if (rest > end - at - kEntrySize) {
      return file_.Malformed(at, absl::StrCat("entry ", i + 1, " of the archive's directory is cut short"));
    }
    members_.push_back({std::string(bytes.substr(at + kEntrySize, name)), NumberAt(bytes, at + 8, 2),
                        NumberAt(bytes, at + 10, 2), NumberAt(bytes, at + 16, 4), NumberAt(bytes, at + 20, 4),
                        NumberAt(bytes, at + 24, 4), NumberAt(bytes, at + 42, 4)});
    at += kEntrySize + rest;
  }
  return absl::OkStatus();
}

const ZipArchive::Member* ZipArchive::Find(absl::string_view member) const {
  for (const Member& candidate : members_) {
    if (candidate.name == member) return &candidate;
  }
  return nullptr;
}

bool ZipArchive::Has(absl::string_view member) const { return Find(member) != nullptr; }

std::vector<std::string> ZipArchive::Names() const {
  std::vector<std::string> names;
  for (const Member& member : members_) names.push_back(member.name);
  return names;
}

absl::StatusOr<absl::string_view> ZipArchive::Packed(const Member& member) const {
  const absl::string_view bytes = file_.bytes();
  if (file_.size() - member.header < kLocalSize || bytes.substr(member.header, 4) != kLocalMagic) {
    return file_.Malformed(member.header, absl::StrCat("the header of member ", member.name, " is not here"));
  }
  const int64_t start =
      member.header + kLocalSize + NumberAt(bytes, member.header + 26, 2) + NumberAt(bytes, member.header + 28, 2);
  if (start > file_.size() || member.packed > file_.size() - start) {
    return file_.Malformed(member.header, absl::StrCat("member ", member.name, " does not lie in the file"));
  }
  return bytes.substr(start, member.packed);
}

absl::StatusOr<FileBytes> ZipArchive::Read(absl::string_view name) const {
  const Member* const member = Find(name);
  if (member == nullptr) return absl::NotFoundError(absl::StrCat(file_.name(), " has no member ", name));
  const auto damaged = [&](absl::string_view reason) {
    return file_.Malformed(member->header, absl::StrCat("member ", name, " cannot be read (", reason, ")"));
  };
  if ((member->flags & kEncrypted) != 0) return damaged("it is encrypted");
  TERSE_ASSIGN_OR_RETURN(absl::string_view contents, Packed(*member));
  std::shared_ptr<const void> owner = file_.owner();
  if (member->method == kDeflated) {
    Inflated inflated = Inflate(contents, Compression::kDeflate, member->size);
    if (inflated.bytes == nullptr) return damaged(inflated.reason);
    contents = *inflated.bytes;
    owner = std::move(inflated.bytes);
  } else if (member->method != kStored) {
    return damaged(absl::StrCat("compression method ", member->method, "; only stored and deflate are read"));
  }
  if (static_cast<int64_t>(contents.size()) != member->size) return damaged("its length is not the one it promises");
  if (crc32_z(0, reinterpret_cast<const Bytef*>(contents.data()), contents.size()) != member->crc) {
    return damaged("its checksum does not match");
  }
  return FileBytes(absl::StrCat(file_.name(), ":", name), contents, std::move(owner));
}

}  // namespace terse
