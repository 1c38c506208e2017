#include "storage/segment_messages.h"

#include "core/fault.h"
#include "core/status.h"
#include "storage/message_rows.h"

namespace terse {

absl::StatusOr<std::unique_ptr<SegmentMessages>> SegmentMessages::Open(SqlDb& db, FileSystem& files,
                                                                       const std::string& run_directory,
                                                                       const MessageLimits& limits) {
  TERSE_ASSIGN_OR_RETURN(const SegmentEnds named, NamedSegments(db));
  TERSE_ASSIGN_OR_RETURN(std::unique_ptr<Segments> segments,
                         Segments::Open(files, SegmentsDirectory(run_directory), named, limits));
  return std::unique_ptr<SegmentMessages>(new SegmentMessages(files, std::move(segments)));
}

absl::StatusOr<SegmentPlace> SegmentMessages::Append(SqlDb&, absl::string_view message) {
  return segments_->Append(message);
}

absl::Status SegmentMessages::Sync() {
  if (!segments_->needs_sync()) return absl::OkStatus();
  TERSE_RETURN_IF_ERROR(segments_->Sync());
  TERSE_FAILPOINT("coordinator.segment.synced");
  return absl::OkStatus();
}

absl::StatusOr<std::string> SegmentMessages::Read(SqlDb&, const SegmentPlace& place) {
  return ReadSegment(files_, segments_->directory(), place);
}

absl::Status SegmentMessages::RemoveUnnamed(SqlDb& db) {
  TERSE_ASSIGN_OR_RETURN(const SegmentEnds named, NamedSegments(db));
  return segments_->RemoveExcept(named);
}

std::shared_ptr<void> SegmentMessages::Hold() { return std::make_shared<Segments::Hold>(*segments_); }

}  // namespace terse
