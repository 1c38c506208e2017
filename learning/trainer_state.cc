#include "learning/trainer_state.h"

#include <cstring>

#include "absl/strings/str_cat.h"

namespace terse {
namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are stored as they lie in memory");

constexpr absl::string_view kMagic = "TERSETS1";
constexpr size_t kIdSize = 16;
constexpr size_t kHeaderSize = 8 + kIdSize + 3 * sizeof(int64_t);

void AppendNumber(int64_t number, std::string* out) {
  out->append(reinterpret_cast<const char*>(&number), sizeof number);
}

int64_t NumberAt(absl::string_view bytes, size_t offset) {
  int64_t number;
  std::memcpy(&number, bytes.data() + offset, sizeof number);
  return number;
}

absl::Status Unusable(absl::string_view reason) {
  return absl::DataLossError(
      absl::StrCat("the saved training state cannot be used: ", reason, "; remove it to start with a fresh optimizer"));
}

absl::Status CheckFrame(absl::string_view bytes, Id128 identity, size_t body) {
  if (bytes.size() < kMagic.size() || bytes.substr(0, kMagic.size()) != kMagic) {
    return Unusable("it does not begin with TERSETS1");
  }
  if (bytes.size() < kHeaderSize + kIdSize)
    return Unusable(absl::StrCat("it is cut short at ", bytes.size(), " bytes"));
  const absl::string_view content = bytes.substr(0, bytes.size() - kIdSize);
  if (HashBytes(content).ToBytes() != bytes.substr(content.size())) return Unusable("its checksum does not match");
  if (bytes.substr(kMagic.size(), kIdSize) != identity.ToBytes()) {
    return Unusable("it belongs to another model, optimizer, data set, shard or seed");
  }
  if (content.size() != kHeaderSize + body) {
    return Unusable(
        absl::StrCat("it has ", content.size() - kHeaderSize, " bytes of optimizer state instead of ", body));
  }
  return absl::OkStatus();
}

}  // namespace

std::string EncodeTrainerState(const TrainerState& state, Id128 identity) {
  size_t body = 0;
  for (const auto& slot : state.optimizer.slots) body += slot.size() * sizeof(float);
  std::string bytes;
  bytes.reserve(kHeaderSize + body + kIdSize);
  absl::StrAppend(&bytes, kMagic, identity.ToBytes());
  AppendNumber(state.position.epoch, &bytes);
  AppendNumber(state.position.offset, &bytes);
  AppendNumber(state.optimizer.step, &bytes);
  for (const auto& slot : state.optimizer.slots) {
    bytes.append(reinterpret_cast<const char*>(slot.data()), slot.size() * sizeof(float));
  }
  bytes += HashBytes(bytes).ToBytes();
  return bytes;
}

absl::StatusOr<TrainerState> DecodeTrainerState(absl::string_view bytes, Id128 identity, int slots, int64_t size) {
  const size_t slot_bytes = size * sizeof(float);
  if (absl::Status status = CheckFrame(bytes, identity, slots * slot_bytes); !status.ok()) return status;
  TrainerState state;
  const size_t numbers = kMagic.size() + kIdSize;
  state.position.epoch = NumberAt(bytes, numbers);
  state.position.offset = NumberAt(bytes, numbers + 8);
  state.optimizer.step = NumberAt(bytes, numbers + 16);
  state.optimizer.slots.assign(slots, std::vector<float>(size));
  for (int i = 0; i < slots; ++i) {
    std::memcpy(state.optimizer.slots[i].data(), bytes.data() + kHeaderSize + i * slot_bytes, slot_bytes);
  }
  return state;
}

}  // namespace terse
