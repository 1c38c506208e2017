#include "learning/trainer_state.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace terse {
namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are stored as they lie in memory");

constexpr absl::string_view kMagic = "TERSETS1";
constexpr size_t kIdSize = 16;
constexpr size_t kHeaderSize = 8 + kIdSize + 3 * sizeof(int64_t);

absl::string_view AsBytes(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

size_t BodySize(const OptimizerState& optimizer, const std::vector<std::string>& extras) {
  size_t size = 0;
  for (const std::vector<float>& slot : optimizer.slots) size += AsBytes(slot).size();
  for (const std::string& extra : extras) size += extra.size();
  return size;
}

// Takes `size` floats from the front of `bytes`, which has as many.
std::vector<float> TakeFloats(int64_t size, absl::string_view* bytes) {
  std::vector<float> values(size);
  std::memcpy(values.data(), bytes->data(), size * sizeof(float));
  bytes->remove_prefix(size * sizeof(float));
  return values;
}

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
    return Unusable(absl::StrCat("it has ", content.size() - kHeaderSize, " bytes of state instead of ", body));
  }
  return absl::OkStatus();
}

}  // namespace

std::string EncodeTrainerState(const BatchStream::Position& position, const OptimizerState& optimizer,
                               const std::vector<std::string>& extras, Id128 identity) {
  std::string bytes;
  bytes.reserve(kHeaderSize + BodySize(optimizer, extras) + kIdSize);
  absl::StrAppend(&bytes, kMagic, identity.ToBytes());
  AppendNumber(position.epoch, &bytes);
  AppendNumber(position.offset, &bytes);
  AppendNumber(optimizer.step, &bytes);
  for (const std::vector<float>& slot : optimizer.slots) absl::StrAppend(&bytes, AsBytes(slot));
  for (const std::string& extra : extras) bytes += extra;
  bytes += HashBytes(bytes).ToBytes();
  return bytes;
}

absl::StatusOr<TrainerState> DecodeTrainerState(absl::string_view bytes, Id128 identity,
                                                const TrainerStateShape& shape) {
  size_t body = shape.slots * shape.parameters * sizeof(float);
  for (const int64_t size : shape.extras) body += size;
  TERSE_RETURN_IF_ERROR(CheckFrame(bytes, identity, body));
  TrainerState state;
  const size_t numbers = kMagic.size() + kIdSize;
  state.position.epoch = NumberAt(bytes, numbers);
  state.position.offset = NumberAt(bytes, numbers + 8);
  state.optimizer.step = NumberAt(bytes, numbers + 16);
  bytes.remove_prefix(kHeaderSize);
  for (int i = 0; i < shape.slots; ++i) state.optimizer.slots.push_back(TakeFloats(shape.parameters, &bytes));
  for (const int64_t size : shape.extras) {
    state.extras.emplace_back(bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
  return state;
}

}  // namespace terse
