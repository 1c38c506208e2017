// Append-only files beside a run's database, for messages that are too large for its rows (storage/SCHEMA.md). Internal
// to storage/.
//
//   DIR/segments/NNNNNNNNNN.seg
//
// A segment has no header: a row of the database names the place of each message and its hash. Bytes that no row names
// are harmless; a transaction that was rolled back leaves some.
#ifndef TERSE_STORAGE_SEGMENTS_H_
#define TERSE_STORAGE_SEGMENTS_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/file_system.h"
#include "storage/large_messages.h"
#include "storage/run_records.h"

namespace terse {

// Segments by number, each with the end of the last message in it that is named: its first so many bytes matter.
using SegmentEnds = std::map<int64_t, int64_t>;

// A run's directory of segments, and the name of a segment in it.
std::string SegmentsDirectory(const std::string& run_directory);
std::string SegmentName(int64_t segment);

// Reads a message. DATA_LOSS with the file, the place and the remedy when the file is missing or too short, or the
// bytes have another hash; otherwise as FileSystem::ReadPart.
absl::StatusOr<std::string> ReadSegment(FileSystem& files, const std::string& directory, const SegmentPlace& place);

// Whether the segments are there and as long as they have to be; looks at no message. Statuses of ReadSegment.
absl::Status CheckLengths(FileSystem& files, const std::string& directory, const SegmentEnds& ends);

// Copies of each segment what matters into `to`, which it makes, durably. Statuses of ReadSegment and of FileSystem.
absl::Status CopySegments(FileSystem& files, const std::string& from, const std::string& to, const SegmentEnds& ends);

// Writes the segments of one directory. One thread at a time may call what is not const. Holds may come and go in any
// thread meanwhile.
class Segments {
 public:
  // While one lives no segment is removed. Whoever reads a place takes one before the snapshot of the database that
  // names it.
  class Hold {
   public:
    explicit Hold(Segments& segments) : holds_(&segments.holds_) { ++*holds_; }
    ~Hold() {
      if (holds_ != nullptr) --*holds_;
    }
    Hold(Hold&& other) noexcept : holds_(std::exchange(other.holds_, nullptr)) {}
    Hold& operator=(Hold&&) = delete;

   private:
    std::atomic<int64_t>* holds_;
  };

  // Removes the segments that are not in `named`. The directory need not be there. `files` must outlive it. Statuses of
  // FileSystem.
  static absl::StatusOr<std::unique_ptr<Segments>> Open(FileSystem& files, std::string directory,
                                                        const SegmentEnds& named, const MessageLimits& limits = {});

  // Writes the message, which is not empty, and returns its place. Durable only after Sync. What an earlier process
  // wrote to is never appended to, because a crash may have left a tail that no row names. Statuses of FileSystem;
  // after an error the caller gives up all that was appended since the last Sync.
  absl::StatusOr<SegmentPlace> Append(absl::string_view message);
  // Whether something was appended since the last Sync.
  bool needs_sync() const { return is_dirty_ || !full_.empty(); }
  // Makes all that was appended durable. UNKNOWN (IsSyncFailure) when that failed: no place may be named any more.
  absl::Status Sync();
  // Removes the segments that are not in `named`, but for the one that is written. All that was appended is named, or
  // given up. Removes nothing while somebody holds them: the next call does. Statuses of FileSystem.
  absl::Status RemoveExcept(const SegmentEnds& named);

  const std::string& directory() const { return directory_; }
  const MessageLimits& limits() const { return limits_; }

 private:
  Segments(FileSystem& files, std::string directory, const MessageLimits& limits)
      : files_(files), directory_(std::move(directory)), limits_(limits) {}
  absl::Status Begin();
  // After a failed write nobody knows where the file ends, so nothing more is appended to it.
  void Abandon();

  FileSystem& files_;
  const std::string directory_;
  const MessageLimits limits_;
  std::atomic<int64_t> holds_{0};

  int64_t newest_ = 0;                               // the number of the segment that is written, or was last
  std::unique_ptr<WritableFile> file_;               // that segment; null: the next message begins one
  int64_t bytes_ = 0;                                // in it
  bool is_dirty_ = false;                            // it has bytes that are not synced
  bool has_new_name_ = false;                        // the directory has names that are not synced
  std::vector<std::unique_ptr<WritableFile>> full_;  // segments before it, with bytes that are not synced
};

}  // namespace terse

#endif  // TERSE_STORAGE_SEGMENTS_H_
