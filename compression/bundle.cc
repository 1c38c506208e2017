#include "compression/bundle.h"

#include "absl/strings/str_cat.h"
#include "compression/varint.h"

namespace terse {
namespace {

constexpr char kBundleNumber = static_cast<char>(0x1c);

absl::Status BadBundle(size_t update, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("bundle with ", what, " in update ", update));
}

// Takes one update off the front of `body`.
absl::StatusOr<BundledUpdate> TakeUpdate(size_t number, absl::string_view* body) {
  uint64_t clients = 0, samples = 0, length = 0;
  if (!TakeVarint(body, &clients) || !TakeVarint(body, &samples) || !TakeVarint(body, &length)) {
    return BadBundle(number, "an end");
  }
  BundledUpdate update;
  update.cohort = {static_cast<int64_t>(clients), static_cast<int64_t>(samples)};
  if (clients == 0 || !IsCohort(update.cohort)) return BadBundle(number, "unusable numbers of clients or samples");
  if (length == 0 || length > body->size()) return BadBundle(number, "an end");
  update.message = body->substr(0, length);
  body->remove_prefix(length);
  if (IsBundle(update.message)) return BadBundle(number, "another bundle");
  return update;
}

}  // namespace

absl::StatusOr<std::string> BuildBundle(absl::Span<const BundledUpdate> updates) {
  if (updates.empty()) return absl::InvalidArgumentError("a bundle of no updates");
  if (static_cast<int64_t>(updates.size()) > kMostBundled) {
    return absl::ResourceExhaustedError(
        absl::StrCat(updates.size(), " updates, and a relay forwards at most ", kMostBundled, " in a round"));
  }
  std::string bundle(1, kBundleNumber);
  PutVarint(updates.size(), &bundle);
  for (const BundledUpdate& update : updates) {
    PutVarint(static_cast<uint64_t>(update.cohort.clients), &bundle);
    PutVarint(static_cast<uint64_t>(update.cohort.samples), &bundle);
    PutVarint(update.message.size(), &bundle);
    bundle.append(update.message.data(), update.message.size());
    if (static_cast<int64_t>(bundle.size()) > kMostBundleBytes) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the updates of a round have more than the ", kMostBundleBytes, " bytes that a relay forwards"));
    }
  }
  return bundle;
}

bool IsBundle(absl::string_view message) { return !message.empty() && message[0] == kBundleNumber; }

absl::StatusOr<std::vector<BundledUpdate>> ParseBundle(absl::string_view bundle) {
  if (!IsBundle(bundle)) return absl::InvalidArgumentError("no bundle");
  absl::string_view body = bundle.substr(1);
  uint64_t count = 0;
  if (!TakeVarint(&body, &count) || count == 0 || count > static_cast<uint64_t>(kMostBundled)) {
    return absl::InvalidArgumentError("bundle with an unusable number of updates");
  }
  std::vector<BundledUpdate> updates;
  for (size_t i = 0; i < count; ++i) {
    absl::StatusOr<BundledUpdate> update = TakeUpdate(i, &body);
    if (!update.ok()) return update.status();
    updates.push_back(*update);
  }
  if (!body.empty()) return absl::InvalidArgumentError(absl::StrCat("bundle with ", body.size(), " bytes too many"));
  return updates;
}

CohortFacts CohortOf(absl::Span<const BundledUpdate> updates) {
  CohortFacts sum;
  for (const BundledUpdate& update : updates) {
    sum.clients += update.cohort.clients;
    sum.samples += update.cohort.samples;
  }
  return sum;
}

}  // namespace terse
