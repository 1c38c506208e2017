#include "storage/weights_file.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "storage/byte_io.h"

namespace terse {
namespace {

constexpr uint32_t kFormat = 1;
constexpr size_t kTrailerBytes = 16;

}  // namespace

WeightsBytes::WeightsBytes(absl::string_view magic, int64_t version, const Id128& id,
                           absl::Span<const absl::Span<const float>> weights)
    : header_(magic) {
  uint64_t numbers = 0;
  for (const absl::Span<const float> part : weights) numbers += part.size();
  PutField(&header_, kFormat);
  PutField(&header_, version);
  PutField(&header_, id);
  PutField(&header_, numbers);
  for (const absl::Span<const float> part : weights) values_.push_back(BytesOf(part));
  PutField(&trailer_, HashBytes(parts()));
  size_ = header_.size() + numbers * sizeof(float) + trailer_.size();
}

std::vector<absl::string_view> WeightsBytes::parts() const {
  std::vector<absl::string_view> parts = {header_};
  parts.insert(parts.end(), values_.begin(), values_.end());
  parts.push_back(trailer_);
  return parts;
}

std::string SerializeWeights(absl::string_view magic, int64_t version, const Id128& id,
                             absl::Span<const float> weights) {
  const WeightsBytes file(magic, version, id, weights);
  std::string bytes;
  bytes.reserve(file.size());
  for (absl::string_view part : file.parts()) bytes.append(part.data(), part.size());
  return bytes;
}

absl::Status CheckWeightsHeader(absl::string_view magic, absl::string_view header, uint64_t file_bytes) {
  if (file_bytes < kWeightsHeaderBytes + kTrailerBytes || header.size() < kWeightsHeaderBytes) {
    return absl::DataLossError(absl::StrCat("has ", file_bytes, " bytes, fewer than an empty file of its kind"));
  }
  if (header.substr(0, magic.size()) != magic) {
    return absl::DataLossError(absl::StrCat("does not begin with '", magic, "'"));
  }
  absl::string_view rest = header.substr(magic.size());
  const uint32_t format = TakeField<uint32_t>(&rest);
  if (format != kFormat) {
    return absl::DataLossError(absl::StrCat("has format ", format, ", and this program reads ", kFormat));
  }
  rest.remove_prefix(sizeof(int64_t) + 16);
  const uint64_t count = TakeField<uint64_t>(&rest);
  const uint64_t value_bytes = file_bytes - kWeightsHeaderBytes - kTrailerBytes;
  if (value_bytes % sizeof(float) != 0 || count != value_bytes / sizeof(float)) {
    return absl::DataLossError(absl::StrCat("announces ", count, " weights and has ", value_bytes, " bytes for them"));
  }
  return absl::OkStatus();
}

absl::StatusOr<WeightsFile> ParseWeights(absl::string_view magic, absl::string_view bytes) {
  TERSE_RETURN_IF_ERROR(CheckWeightsHeader(magic, bytes.substr(0, kWeightsHeaderBytes), bytes.size()));
  absl::string_view rest = bytes.substr(magic.size() + sizeof kFormat);
  WeightsFile file;
  file.version = TakeField<int64_t>(&rest);
  file.id = TakeField<Id128>(&rest);
  const uint64_t count = TakeField<uint64_t>(&rest);
  absl::string_view trailer = bytes.substr(bytes.size() - kTrailerBytes);
  if (TakeField<Id128>(&trailer) != HashBytes(bytes.substr(0, bytes.size() - kTrailerBytes))) {
    return absl::DataLossError("does not match its checksum");
  }
  if (file.version < 0) return absl::DataLossError(absl::StrCat("has the version ", file.version));
  file.weights.resize(count);
  if (count > 0) std::memcpy(file.weights.data(), rest.data(), count * sizeof(float));
  return file;
}

}  // namespace terse
