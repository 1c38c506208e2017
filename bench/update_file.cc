#include "bench/update_file.h"

#include <cmath>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "compression/bit_stream.h"
#include "core/file_system.h"
#include "core/status.h"
#include "nlohmann/json.hpp"

namespace terse {
namespace {

constexpr char kFormat[] = "terse-updates 1";
constexpr size_t kWord = 4;

nlohmann::ordered_json Header(const UpdateFile& file) {
  nlohmann::ordered_json header = {{"format", kFormat}, {"origin", file.origin}, {"density", file.density}};
  for (const TensorSpec& tensor : file.layout.tensors()) {
    header["tensors"].push_back({{"name", tensor.name}, {"shape", tensor.shape}});
  }
  for (const RecordedUpdate& update : file.updates) {
    header["updates"].push_back(
        {{"iteration", update.iteration}, {"client", update.client}, {"positions", update.positions.size()}});
  }
  return header;
}

void AppendWord(uint32_t word, std::string* out) {
  char bytes[kWord];
  StoreLittle32(word, bytes);
  out->append(bytes, kWord);
}

// A member of the type T, or nothing.
template <typename T>
bool Take(const nlohmann::json& json, const char* key, bool (nlohmann::json::*is)() const noexcept, T* value) {
  const auto found = json.find(key);
  if (found == json.end() || !((*found).*is)()) return false;
  *value = found->get<T>();
  return true;
}

absl::StatusOr<Layout> ParseLayout(const nlohmann::json& header) {
  std::vector<Layout::Entry> entries;
  for (const nlohmann::json& tensor : header.value("tensors", nlohmann::json::array())) {
    Layout::Entry entry;
    const auto shape = tensor.find("shape");
    if (!Take(tensor, "name", &nlohmann::json::is_string, &entry.name) || shape == tensor.end()) {
      return absl::InvalidArgumentError("a tensor without name or shape");
    }
    for (const nlohmann::json& dimension : *shape) {
      if (!dimension.is_number_unsigned()) return absl::InvalidArgumentError("a shape that is none");
      entry.shape.push_back(dimension.get<int64_t>());
    }
    entries.push_back(std::move(entry));
  }
  return Layout::Create(entries);
}

// Takes one update from the front of `bytes`.
absl::Status ParseUpdate(const nlohmann::json& described, int64_t size, absl::string_view* bytes,
                         RecordedUpdate* update) {
  uint64_t count = 0;
  if (!Take(described, "iteration", &nlohmann::json::is_number_integer, &update->iteration) ||
      !Take(described, "client", &nlohmann::json::is_number_integer, &update->client) ||
      !Take(described, "positions", &nlohmann::json::is_number_unsigned, &count)) {
    return absl::InvalidArgumentError("an update without iteration, client or positions");
  }
  if (count > static_cast<uint64_t>(size) || bytes->size() < kWord * (size + count)) {
    return absl::InvalidArgumentError("the file ends inside an update");
  }
  for (int64_t i = 0; i < size; ++i, bytes->remove_prefix(kWord)) {
    update->values.push_back(FloatFromBits(LoadLittle32(bytes->data())));
    if (!std::isfinite(update->values.back())) return absl::InvalidArgumentError("an element is not finite");
  }
  for (uint64_t i = 0; i < count; ++i, bytes->remove_prefix(kWord)) {
    const uint32_t position = LoadLittle32(bytes->data());
    if (position >= size || (i > 0 && position <= update->positions.back())) {
      return absl::InvalidArgumentError("positions do not increase or exceed the model");
    }
    update->positions.push_back(position);
  }
  return absl::OkStatus();
}

absl::StatusOr<UpdateFile> Parse(absl::string_view bytes) {
  const size_t end = bytes.find('\n');
  const nlohmann::json header = nlohmann::json::parse(bytes.substr(0, end), /*cb=*/nullptr, /*allow_exceptions=*/false);
  UpdateFile file;
  std::string format;
  if (end == absl::string_view::npos || !header.is_object() ||
      !Take(header, "format", &nlohmann::json::is_string, &format) || format != kFormat ||
      !Take(header, "origin", &nlohmann::json::is_string, &file.origin) ||
      !Take(header, "density", &nlohmann::json::is_number, &file.density)) {
    return absl::InvalidArgumentError(absl::StrCat("not a file of the format '", kFormat, "'"));
  }
  TERSE_ASSIGN_OR_RETURN(file.layout, ParseLayout(header));
  bytes.remove_prefix(end + 1);
  for (const nlohmann::json& described : header.value("updates", nlohmann::json::array())) {
    file.updates.emplace_back();
    TERSE_RETURN_IF_ERROR(ParseUpdate(described, file.layout.size(), &bytes, &file.updates.back()));
  }
  if (!bytes.empty()) return absl::InvalidArgumentError("bytes behind the last update");
  if (file.updates.empty()) return absl::InvalidArgumentError("no updates");
  return file;
}

}  // namespace

absl::Status WriteUpdateFile(const std::string& path, const UpdateFile& file) {
  std::string bytes = absl::StrCat(Header(file).dump(), "\n");
  for (const RecordedUpdate& update : file.updates) {
    for (float value : update.values) AppendWord(FloatBits(value), &bytes);
    for (uint32_t position : update.positions) AppendWord(position, &bytes);
  }
  return ReplaceFile(PosixFiles(), path, {bytes});
}

absl::StatusOr<UpdateFile> ReadUpdateFile(const std::string& path) {
  TERSE_ASSIGN_OR_RETURN(const std::string bytes, PosixFiles().Read(path));
  absl::StatusOr<UpdateFile> file = Parse(bytes);
  if (file.ok()) return file;
  return Annotate(file.status(), absl::StrCat(path, " (make it with 'terse-bench updates')"));
}

}  // namespace terse
