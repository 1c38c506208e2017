// LargeMessages in segment files beside a SQLite database. Internal to storage/.
#ifndef TERSE_STORAGE_SEGMENT_MESSAGES_H_
#define TERSE_STORAGE_SEGMENT_MESSAGES_H_

#include <memory>
#include <string>

#include "storage/large_messages.h"
#include "storage/segments.h"

namespace terse {

class SegmentMessages final : public LargeMessages {
 public:
  // Removes the segments that `db` does not name. `files` must outlive it. Statuses of Segments::Open.
  static absl::StatusOr<std::unique_ptr<SegmentMessages>> Open(SqlDb& db, FileSystem& files,
                                                               const std::string& run_directory,
                                                               const MessageLimits& limits);

  int64_t inline_bytes() const override { return segments_->limits().inline_bytes; }
  absl::StatusOr<SegmentPlace> Append(SqlDb& db, absl::string_view message) override;
  absl::Status Sync() override;
  absl::StatusOr<std::string> Read(SqlDb& db, const SegmentPlace& place) override;
  absl::Status RemoveUnnamed(SqlDb& db) override;
  std::shared_ptr<void> Hold() override;

 private:
  SegmentMessages(FileSystem& files, std::unique_ptr<Segments> segments)
      : files_(files), segments_(std::move(segments)) {}

  FileSystem& files_;
  const std::unique_ptr<Segments> segments_;
};

}  // namespace terse

#endif  // TERSE_STORAGE_SEGMENT_MESSAGES_H_
