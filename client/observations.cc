#include "client/observations.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "compression/bit_stream.h"

namespace terse {
namespace {

constexpr size_t kLengthBytes = 4;

}  // namespace

std::string WithObservations(absl::string_view observations, std::string trainer_state) {
  if (observations.empty()) return trainer_state;
  char length[kLengthBytes];
  StoreLittle32(static_cast<uint32_t>(observations.size()), length);
  return absl::StrCat(kObservationsMark, absl::string_view(length, kLengthBytes), observations, trainer_state);
}

absl::StatusOr<ObservedState> ReadObservations(absl::string_view stored) {
  if (!absl::ConsumePrefix(&stored, kObservationsMark)) return ObservedState{"", stored};
  const size_t length = stored.size() < kLengthBytes ? stored.size() : LoadLittle32(stored.data());
  if (stored.size() < kLengthBytes || length > stored.size() - kLengthBytes) {
    return absl::DataLossError("what was observed before the trainer's state has another length than is stored");
  }
  return ObservedState{stored.substr(kLengthBytes, length), stored.substr(kLengthBytes + length)};
}

}  // namespace terse
