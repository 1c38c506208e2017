#include "coordinator/message_checks.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "compression/bundle.h"
#include "core/status.h"

namespace terse {
namespace {

// Far above any data set, and low enough that the sum over a fleet does not overflow.
constexpr int64_t kMaxSamples = int64_t{1} << 40;

absl::Status ValidateHeader(const Update& update) {
  if (update.round < 1 || update.train_us < 0 || !std::isfinite(update.loss)) {
    return absl::InvalidArgumentError("the header of the update has an impossible round, time or loss");
  }
  TERSE_RETURN_IF_ERROR(CheckMetrics(update.metrics));
  for (const NamedMetric& metric : update.metrics) {
    if (metric.kind == MetricKind::kTest) {
      return absl::InvalidArgumentError("the header of the update has a metric that only an evaluator reports");
    }
  }
  return update.update_id.IsZero() ? absl::InvalidArgumentError("the update has no id") : absl::OkStatus();
}

// A bundle is as large as the largest update in it.
absl::StatusOr<UpdateSize> MeasureUpdate(const Codec& codec, const Update& update) {
  if (update.cohort.clients == 0 || !IsBundle(update.message)) return codec.Measure(update.message);
  TERSE_ASSIGN_OR_RETURN(const std::vector<BundledUpdate> parts, ParseBundle(update.message));
  const CohortFacts cohort = CohortOf(parts);
  if (cohort.clients != update.cohort.clients || cohort.samples != update.cohort.samples) {
    return absl::InvalidArgumentError(absl::StrCat("a bundle of ", cohort.clients, " clients with ", cohort.samples,
                                                   " samples, whose header says ", update.cohort.clients, " and ",
                                                   update.cohort.samples));
  }
  UpdateSize size;
  for (const BundledUpdate& part : parts) {
    TERSE_ASSIGN_OR_RETURN(const UpdateSize one, codec.Measure(part.message));
    size = {std::max(size.norm, one.norm), std::max(size.largest, one.largest)};
  }
  return size;
}

}  // namespace

absl::Status ValidateMessage(const Codec& codec, const FromClient& message) {
  if (const auto* update = std::get_if<Update>(&message)) {
    TERSE_RETURN_IF_ERROR(ValidateHeader(*update));
    return update->packed ? absl::OkStatus() : MeasureUpdate(codec, *update).status();
  }
  const auto* ready = std::get_if<Ready>(&message);
  if (ready != nullptr && (ready->samples < 0 || ready->samples > kMaxSamples)) {
    return absl::InvalidArgumentError(absl::StrCat(ready->samples, " training samples are impossible"));
  }
  return absl::OkStatus();
}

absl::Status TakeMessage(const Codec& codec, const UpdateHistories* histories, int64_t client, FromClient* message,
                         bool is_due) {
  auto* const update = std::get_if<Update>(message);
  if (update == nullptr) return ValidateMessage(codec, *message);
  // Everything that is cheap to look at comes first.
  TERSE_RETURN_IF_ERROR(ValidateHeader(*update));
  if (update->packed && histories == nullptr) {
    return absl::InvalidArgumentError("a packed update, and codec.positions of the run is not 'shared'");
  }
  update->unread = !is_due;
  if (update->unread) {
    if (update->packed) update->message.clear();  // as one that cannot be unpacked
    return absl::OkStatus();
  }
  if (update->packed) histories->Unpack(client, update);
  if (update->packed) return absl::OkStatus();
  TERSE_ASSIGN_OR_RETURN(const UpdateSize size, MeasureUpdate(codec, *update));
  update->norm = size.norm;
  update->largest = size.largest;
  return absl::OkStatus();
}

absl::Status PutAway(UpdateSpool& spool, FromClient* message) {
  auto* const update = std::get_if<Update>(message);
  if (update == nullptr || update->unread || update->packed) return absl::OkStatus();
  absl::StatusOr<std::shared_ptr<const HeldBytes>> held = spool.Keep(std::move(update->message));
  if (!held.ok()) return held.status();
  update->held = *std::move(held);
  update->message.clear();
  return absl::OkStatus();
}

}  // namespace terse
