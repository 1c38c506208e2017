#include "storage/segments.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "core/status.h"
#include "storage/sqlite_db.h"

namespace terse {
namespace {

// A segment is copied in blocks, because it may be larger than memory.
constexpr int64_t kCopyBlock = int64_t{1} << 20;

std::string SegmentPath(const std::string& directory, int64_t segment) {
  return FilePath(directory, SegmentName(segment));
}

absl::Status DamagedSegment(const std::string& path, absl::string_view what) {
  return absl::DataLossError(absl::StrCat(path, what, kDatabaseRemedy));
}

// Reads a part that has to be there.
absl::StatusOr<std::string> ReadWhole(FileSystem& files, const std::string& path, int64_t offset, int64_t bytes) {
  absl::StatusOr<std::string> part = files.ReadPart(path, offset, bytes);
  if (absl::IsNotFound(part.status())) return DamagedSegment(path, " is missing");
  TERSE_RETURN_IF_ERROR(part.status());
  if (static_cast<int64_t>(part->size()) == bytes) return part;
  return DamagedSegment(path, absl::StrCat(" is damaged: it has ", offset + static_cast<int64_t>(part->size()),
                                           " bytes, and the database names ", offset + bytes));
}

// Returns the number of a segment's file; 0 for a name that is none.
int64_t NumberOf(absl::string_view name) {
  int64_t number = 0;
  if (!absl::ConsumeSuffix(&name, ".seg") || !absl::SimpleAtoi(name, &number)) return 0;
  return number > 0 && SegmentName(number) == absl::StrCat(name, ".seg") ? number : 0;
}

absl::StatusOr<std::vector<int64_t>> ListSegments(FileSystem& files, const std::string& directory) {
  std::vector<int64_t> numbers;
  const absl::StatusOr<std::vector<std::string>> names = files.List(directory);
  if (absl::IsNotFound(names.status())) return numbers;
  TERSE_RETURN_IF_ERROR(names.status());
  for (const std::string& name : *names) {
    if (const int64_t number = NumberOf(name); number > 0) numbers.push_back(number);
  }
  return numbers;
}

absl::Status CopySegment(FileSystem& files, const std::string& from, const std::string& to, int64_t bytes) {
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> out, files.Create(to));
  for (int64_t at = 0; at < bytes; at += kCopyBlock) {
    TERSE_ASSIGN_OR_RETURN(const std::string block, ReadWhole(files, from, at, std::min(kCopyBlock, bytes - at)));
    TERSE_RETURN_IF_ERROR(out->Append(block));
  }
  return out->Sync();
}

}  // namespace

std::string SegmentsDirectory(const std::string& run_directory) { return FilePath(run_directory, "segments"); }

std::string SegmentName(int64_t segment) { return absl::StrFormat("%010d.seg", segment); }

absl::StatusOr<std::string> ReadSegment(FileSystem& files, const std::string& directory, const SegmentPlace& place) {
  const std::string path = SegmentPath(directory, place.segment);
  TERSE_ASSIGN_OR_RETURN(std::string message, ReadWhole(files, path, place.offset, place.length));
  if (HashBytes(message) == place.hash) return message;
  return DamagedSegment(path, absl::StrCat(" is damaged: the ", place.length, " bytes at ", place.offset,
                                           " are not the message that was written there"));
}

absl::Status CheckLengths(FileSystem& files, const std::string& directory, const SegmentEnds& ends) {
  for (const auto& [segment, end] : ends) {
    TERSE_RETURN_IF_ERROR(ReadWhole(files, SegmentPath(directory, segment), end - 1, 1).status());
  }
  return absl::OkStatus();
}

absl::Status CopySegments(FileSystem& files, const std::string& from, const std::string& to, const SegmentEnds& ends) {
  if (ends.empty()) return absl::OkStatus();
  TERSE_RETURN_IF_ERROR(files.MakeDirectory(to));
  for (const auto& [segment, end] : ends) {
    TERSE_RETURN_IF_ERROR(CopySegment(files, SegmentPath(from, segment), SegmentPath(to, segment), end));
  }
  return files.SyncDirectory(to);
}

absl::StatusOr<std::unique_ptr<Segments>> Segments::Open(FileSystem& files, std::string directory,
                                                         const SegmentEnds& named, const MessageLimits& limits) {
  std::unique_ptr<Segments> segments(new Segments(files, std::move(directory), limits));
  TERSE_ASSIGN_OR_RETURN(const std::vector<int64_t> found, ListSegments(files, segments->directory_));
  for (const int64_t number : found) segments->newest_ = std::max(segments->newest_, number);
  // A file that is named and missing is damage, which a new file of that name would hide.
  if (!named.empty()) segments->newest_ = std::max(segments->newest_, named.rbegin()->first);
  TERSE_RETURN_IF_ERROR(segments->RemoveExcept(named));
  return segments;
}

absl::Status Segments::Begin() {
  // The directory comes with the first large message: most runs have none.
  TERSE_RETURN_IF_ERROR(files_.MakeDirectory(directory_));
  TERSE_ASSIGN_OR_RETURN(file_, files_.Create(SegmentPath(directory_, newest_ + 1)));
  ++newest_;
  bytes_ = 0;
  has_new_name_ = true;
  return absl::OkStatus();
}

absl::StatusOr<SegmentPlace> Segments::Append(absl::string_view message) {
  const auto length = static_cast<int64_t>(message.size());
  if (file_ != nullptr && length > limits_.segment_bytes - bytes_) {
    if (is_dirty_) full_.push_back(std::move(file_));
    file_.reset();
    is_dirty_ = false;
  }
  if (file_ == nullptr) TERSE_RETURN_IF_ERROR(Begin());
  if (const absl::Status status = file_->Append(message); !status.ok()) {
    Abandon();
    return status;
  }
  const SegmentPlace place{newest_, bytes_, length, HashBytes(message)};
  bytes_ += length;
  is_dirty_ = true;
  return place;
}

void Segments::Abandon() {
  file_.reset();
  full_.clear();
  is_dirty_ = false;
  // On a full disk the half of a large message may be all that is missing for what comes next.
  if (bytes_ == 0) files_.Remove(SegmentPath(directory_, newest_)).IgnoreError();
}

absl::Status Segments::Sync() {
  for (const std::unique_ptr<WritableFile>& file : full_) TERSE_RETURN_IF_ERROR(file->Sync());
  if (is_dirty_) TERSE_RETURN_IF_ERROR(file_->Sync());
  if (has_new_name_) TERSE_RETURN_IF_ERROR(files_.SyncDirectory(directory_));
  full_.clear();
  is_dirty_ = false;
  has_new_name_ = false;
  return absl::OkStatus();
}

absl::Status Segments::RemoveExcept(const SegmentEnds& named) {
  if (holds_.load() > 0) return absl::OkStatus();
  TERSE_ASSIGN_OR_RETURN(const std::vector<int64_t> found, ListSegments(files_, directory_));
  for (const int64_t number : found) {
    if (named.count(number) > 0 || (file_ != nullptr && number == newest_)) continue;
    TERSE_RETURN_IF_ERROR(files_.Remove(SegmentPath(directory_, number)));
  }
  return absl::OkStatus();
}

}  // namespace terse
