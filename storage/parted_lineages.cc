#include "storage/parted_lineages.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "storage/byte_io.h"
#include "storage/metric_bytes.h"

namespace terse {
namespace {

constexpr absl::string_view kMagic = "TRSP";
constexpr uint32_t kFormat = 1;
constexpr size_t kHeaderBytes = 12;
constexpr size_t kLineageBytes = 36;  // lineage, prev_applied, flags
constexpr size_t kUpdateBytes = 72;   // of an update before its metrics
constexpr uint32_t kUpdateFlag = 1;

bool HasUpdate(const PartedLineage& one) { return one.sealed.has_value(); }
bool HasNoUpdate(const PartedLineage& one) { return !one.sealed.has_value(); }

void PutUpdate(const SealedUpdate& update, std::string* bytes) {
  PutField(bytes, update.update_id);
  PutField(bytes, update.round);
  PutField(bytes, update.base_version);
  PutField(bytes, update.train_us);
  PutField(bytes, update.loss);
  PutField(bytes, update.cohort.clients);
  PutField(bytes, update.cohort.samples);
  const std::string metrics = SerializeMetrics(update.metrics);
  PutField(bytes, static_cast<uint32_t>(metrics.size()));
  PutField(bytes, static_cast<uint64_t>(update.message.size()));
  bytes->append(metrics);
  bytes->append(update.message);
}

absl::Status CutOff() { return absl::DataLossError("it ends within a lineage"); }

// Takes an update off the front of `bytes`.
absl::Status TakeUpdate(absl::string_view* bytes, SealedUpdate* update) {
  if (bytes->size() < kUpdateBytes) return CutOff();
  update->update_id = TakeField<Id128>(bytes);
  update->round = TakeField<int64_t>(bytes);
  update->base_version = TakeField<int64_t>(bytes);
  update->train_us = TakeField<int64_t>(bytes);
  update->loss = TakeField<float>(bytes);
  update->cohort.clients = TakeField<int64_t>(bytes);
  update->cohort.samples = TakeField<int64_t>(bytes);
  const uint64_t metrics = TakeField<uint32_t>(bytes);
  const uint64_t message = TakeField<uint64_t>(bytes);
  if (update->update_id.IsZero()) return absl::DataLossError("it has an update without an id");
  if (!IsCohort(update->cohort)) return absl::DataLossError("it has an update of a cohort that cannot be");
  if (metrics > bytes->size() || message > bytes->size() - metrics) return CutOff();
  TERSE_ASSIGN_OR_RETURN(update->metrics, ParseMetrics(bytes->substr(0, metrics)));
  update->message = std::string(bytes->substr(metrics, message));
  bytes->remove_prefix(metrics + message);
  return absl::OkStatus();
}

// Takes a lineage off the front of `bytes`.
absl::Status TakeLineage(absl::string_view* bytes, PartedLineage* one) {
  if (bytes->size() < kLineageBytes) return CutOff();
  one->lineage = TakeField<Id128>(bytes);
  one->prev_applied = TakeField<Id128>(bytes);
  const auto flags = TakeField<uint32_t>(bytes);
  if (one->lineage.IsZero()) return absl::DataLossError("it has a lineage of zero");
  if (flags > kUpdateFlag) return absl::DataLossError(absl::StrCat("it has flags ", flags));
  return flags == kUpdateFlag ? TakeUpdate(bytes, &one->sealed.emplace()) : absl::OkStatus();
}

}  // namespace

const PartedLineage* FindParted(absl::Span<const PartedLineage> parted, Id128 lineage) {
  const auto found =
      std::find_if(parted.begin(), parted.end(), [&](const PartedLineage& one) { return one.lineage == lineage; });
  return found == parted.end() ? nullptr : &*found;
}

int64_t MoveHead(Id128 lineage, StoredHead* head) {
  std::vector<PartedLineage>& parted = head->parted;
  PartedLineage left = {head->lineage, head->prev_applied, std::move(head->sealed)};
  PartedLineage next = {lineage, Id128(), absl::nullopt};
  if (const PartedLineage* const known = FindParted(parted, lineage)) {
    const auto at = parted.begin() + (known - parted.data());
    next = std::move(*at);
    parted.erase(at);
  }
  parted.push_back(std::move(left));
  head->lineage = lineage;
  head->prev_applied = next.prev_applied;
  head->sealed = std::move(next.sealed);
  head->minus.clear();
  const bool loses = std::count_if(parted.begin(), parted.end(), HasUpdate) > int64_t{ClientState::kMostParted};
  if (loses) std::find_if(parted.begin(), parted.end(), HasUpdate)->sealed.reset();
  if (parted.size() > kMostPartedLineages) parted.erase(std::find_if(parted.begin(), parted.end(), HasNoUpdate));
  return loses ? 1 : 0;
}

std::string SerializeParted(absl::Span<const PartedLineage> parted) {
  if (parted.empty()) return "";
  std::string bytes(kMagic);
  PutField(&bytes, kFormat);
  PutField(&bytes, static_cast<uint32_t>(parted.size()));
  for (const PartedLineage& one : parted) {
    PutField(&bytes, one.lineage);
    PutField(&bytes, one.prev_applied);
    PutField(&bytes, one.sealed.has_value() ? kUpdateFlag : uint32_t{0});
    if (one.sealed.has_value()) PutUpdate(*one.sealed, &bytes);
  }
  return bytes;
}

absl::StatusOr<std::vector<PartedLineage>> ParseParted(absl::string_view bytes) {
  std::vector<PartedLineage> parted;
  if (bytes.empty()) return parted;
  if (bytes.size() < kHeaderBytes || bytes.substr(0, kMagic.size()) != kMagic) {
    return absl::DataLossError(absl::StrCat("it does not begin with '", kMagic, "' and a count"));
  }
  absl::string_view rest = bytes.substr(kMagic.size());
  const auto format = TakeField<uint32_t>(&rest);
  const auto count = TakeField<uint32_t>(&rest);
  if (format != kFormat) {
    return absl::DataLossError(absl::StrCat("it has format ", format, ", and this program reads ", kFormat));
  }
  if (count == 0 || count > kMostPartedLineages) {
    return absl::DataLossError(
        absl::StrCat("it announces ", count, " lineages, and 1 to ", kMostPartedLineages, " are kept"));
  }
  for (uint32_t i = 0; i < count; ++i) {
    PartedLineage one;
    TERSE_RETURN_IF_ERROR(TakeLineage(&rest, &one));
    if (FindParted(parted, one.lineage) != nullptr) return absl::DataLossError("it has a lineage twice");
    parted.push_back(std::move(one));
  }
  if (!rest.empty()) return absl::DataLossError(absl::StrCat("it has ", rest.size(), " bytes after its lineages"));
  if (std::count_if(parted.begin(), parted.end(), HasUpdate) > int64_t{ClientState::kMostParted}) {
    return absl::DataLossError(absl::StrCat("it has more than ", ClientState::kMostParted, " updates"));
  }
  return parted;
}

}  // namespace terse
