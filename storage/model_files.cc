#include "storage/model_files.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "core/json_text.h"
#include "core/status.h"

namespace terse {
namespace {

absl::Status CheckLength(const Layout& layout, size_t weights) {
  if (static_cast<int64_t>(weights) == layout.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the model has ", layout.size(), " weights, got ", weights, "; export the weights of that model"));
}

bool IsPlainName(absl::string_view name) {
  return std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-' || c == '/';
  });
}

template <typename T>
void Put(std::string* out, T value) {
  out->append(reinterpret_cast<const char*>(&value), sizeof value);
}

using Json = nlohmann::json;

constexpr size_t kMostHeaderBytes = 16 << 20;
constexpr char kMetadata[] = "__metadata__";
constexpr char kBuffers[] = "terse.buffers";

absl::Status NoSafetensors(absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("the model's file is no safetensors file of float32 tensors: ", why));
}

struct SafetensorsParts {
  absl::string_view header;
  absl::string_view values;
};

absl::StatusOr<SafetensorsParts> SplitSafetensors(absl::string_view bytes) {
  uint64_t length = 0;
  if (bytes.size() < sizeof length) return NoSafetensors("it is shorter than the length of a header");
  std::memcpy(&length, bytes.data(), sizeof length);
  bytes.remove_prefix(sizeof length);
  if (length > kMostHeaderBytes || length > bytes.size()) {
    return NoSafetensors(absl::StrCat("its header would have ", length, " bytes"));
  }
  return SafetensorsParts{bytes.substr(0, length), bytes.substr(length)};
}

// A tensor, and where its values lie in the file.
struct FileTensor {
  Layout::Entry entry;
  uint64_t begin = 0;
  uint64_t end = 0;
};

// nullopt for anything but an array of numbers that are not negative.
absl::optional<std::vector<int64_t>> NumbersOf(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_array()) return absl::nullopt;
  std::vector<int64_t> numbers;
  for (const Json& number : *found) {
    const bool fits = number.is_number_unsigned() && number.get<uint64_t>() <= Layout::kMostElements * sizeof(float);
    if (!fits) return absl::nullopt;
    numbers.push_back(number.get<int64_t>());
  }
  return numbers;
}

absl::StatusOr<FileTensor> TensorOf(const std::string& name, const Json& description) {
  if (!IsPlainName(name)) return NoSafetensors("a tensor's name has other characters than letters, digits and . _ - /");
  const auto no_tensor = [&](absl::string_view why) {
    return NoSafetensors(absl::StrCat("tensor '", name, "' ", why));
  };
  if (!description.is_object()) return no_tensor("has no description");
  const auto dtype = description.find("dtype");
  if (dtype == description.end() || *dtype != "F32") return no_tensor("is not of type F32");
  const absl::optional<std::vector<int64_t>> shape = NumbersOf(description, "shape");
  const absl::optional<std::vector<int64_t>> offsets = NumbersOf(description, "data_offsets");
  if (!shape.has_value() || !offsets.has_value() || offsets->size() != 2) return no_tensor("has no shape or offsets");
  FileTensor tensor;
  tensor.entry = {name, *shape};
  tensor.begin = static_cast<uint64_t>((*offsets)[0]);
  tensor.end = static_cast<uint64_t>((*offsets)[1]);
  uint64_t elements = 1;
  for (const int64_t dimension : tensor.entry.shape) {
    if (dimension < 1 || elements > static_cast<uint64_t>(Layout::kMostElements / dimension)) {
      return no_tensor("has a shape that no model has");
    }
    elements *= static_cast<uint64_t>(dimension);
  }
  if (tensor.begin > tensor.end || tensor.end - tensor.begin != elements * sizeof(float)) {
    return no_tensor("has other bytes than its shape asks for");
  }
  return tensor;
}

absl::StatusOr<std::vector<std::string>> BuffersOf(const Json& header) {
  const auto metadata = header.find(kMetadata);
  if (metadata == header.end()) return std::vector<std::string>();
  if (!metadata->is_object()) return NoSafetensors("its metadata is no JSON object");
  const auto names = metadata->find(kBuffers);
  if (names == metadata->end()) return std::vector<std::string>();
  if (!names->is_string()) return NoSafetensors(absl::StrCat("'", kBuffers, "' is no string"));
  return std::vector<std::string>(absl::StrSplit(names->get<std::string>(), '\n', absl::SkipEmpty()));
}

// NPY, version 1.0: magic, the length of the header, and the header as a Python literal that pads the whole to 64
// bytes.
std::string NpyHeader(const std::vector<int64_t>& shape) {
  constexpr size_t kAlignment = 64;
  std::string header = absl::StrCat("{'descr': '<f4', 'fortran_order': False, 'shape': (", absl::StrJoin(shape, ", "),
                                    shape.size() == 1 ? ",), }" : "), }");
  std::string magic("\x93NUMPY\x01\x00", 8);
  const size_t bare = magic.size() + sizeof(uint16_t) + header.size() + 1;
  header.append((kAlignment - bare % kAlignment) % kAlignment, ' ');
  header += '\n';
  Put(&magic, static_cast<uint16_t>(header.size()));
  return magic + header;
}

// A ZIP archive without compression, as APPNOTE.TXT 6.3 describes it, without its 64-bit extension.
class ZipWriter {
 public:
  void Add(const std::string& name, absl::string_view head, absl::string_view body) {
    const auto size = static_cast<uint32_t>(head.size() + body.size());
    uint32_t crc = crc32(0, reinterpret_cast<const Bytef*>(head.data()), static_cast<uInt>(head.size()));
    crc = crc32(crc, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
    std::string fields;
    Put<uint16_t>(&fields, 20);      // version needed: 2.0
    Put<uint16_t>(&fields, 0);       // flags
    Put<uint16_t>(&fields, 0);       // method: stored
    Put<uint32_t>(&fields, kFirst);  // time and date
    Put<uint32_t>(&fields, crc);
    Put<uint32_t>(&fields, size);
    Put<uint32_t>(&fields, size);
    Put<uint16_t>(&fields, static_cast<uint16_t>(name.size()));
    Put<uint16_t>(&fields, 0);  // extra field
    const auto offset = static_cast<uint32_t>(archive_.size());
    absl::StrAppend(&archive_, kLocal, fields, name, head, body);
    absl::StrAppend(&directory_, kCentral);
    Put<uint16_t>(&directory_, 20);  // made by: 2.0
    absl::StrAppend(&directory_, fields);
    Put<uint16_t>(&directory_, 0);  // comment
    Put<uint16_t>(&directory_, 0);  // disk
    Put<uint16_t>(&directory_, 0);  // attributes
    Put<uint32_t>(&directory_, 0);
    Put<uint32_t>(&directory_, offset);
    directory_ += name;
    ++files_;
  }

  std::string Finish() && {
    const auto offset = static_cast<uint32_t>(archive_.size());
    const auto size = static_cast<uint32_t>(directory_.size());
    absl::StrAppend(&archive_, directory_, kEnd);
    Put<uint32_t>(&archive_, 0);  // disks
    Put<uint16_t>(&archive_, files_);
    Put<uint16_t>(&archive_, files_);
    Put<uint32_t>(&archive_, size);
    Put<uint32_t>(&archive_, offset);
    Put<uint16_t>(&archive_, 0);  // comment
    return std::move(archive_);
  }

 private:
  static constexpr absl::string_view kLocal = "PK\x03\x04";
  static constexpr absl::string_view kCentral = "PK\x01\x02";
  static constexpr absl::string_view kEnd = "PK\x05\x06";
  static constexpr uint32_t kFirst = 0x00210000;  // 1980-01-01: the same weights give the same file

  std::string archive_;
  std::string directory_;
  uint16_t files_ = 0;
};

}  // namespace

absl::StatusOr<std::string> ExportSafetensors(const Layout& layout, absl::Span<const float> weights) {
  static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "values are written as they lie in memory");
  TERSE_RETURN_IF_ERROR(CheckLength(layout, weights.size()));
  std::string header = "{", buffers;
  for (const TensorSpec& tensor : layout.tensors()) {
    if (!IsPlainName(tensor.name)) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor '", tensor.name, "' cannot be exported; use letters, digits and . _ - / in names"));
    }
    absl::StrAppend(&header, header.size() > 1 ? "," : "", "\"", tensor.name, "\":{\"dtype\":\"F32\",\"shape\":[",
                    absl::StrJoin(tensor.shape, ","), "],\"data_offsets\":[", tensor.offset * sizeof(float), ",",
                    (tensor.offset + tensor.size) * sizeof(float), "]}");
    if (tensor.kind == TensorKind::kBuffer) absl::StrAppend(&buffers, buffers.empty() ? "" : "\\n", tensor.name);
  }
  if (!buffers.empty()) absl::StrAppend(&header, ",\"", kMetadata, "\":{\"", kBuffers, "\":\"", buffers, "\"}");
  header += "}";
  header.append((8 - header.size() % 8) % 8, ' ');
  const uint64_t length = header.size();
  std::string bytes(sizeof length, '\0');
  std::memcpy(&bytes[0], &length, sizeof length);
  absl::StrAppend(&bytes, header,
                  absl::string_view(reinterpret_cast<const char*>(weights.data()), weights.size() * sizeof(float)));
  return bytes;
}

absl::StatusOr<NamedWeights> ParseSafetensors(absl::string_view bytes) {
  TERSE_ASSIGN_OR_RETURN(const SafetensorsParts parts, SplitSafetensors(bytes));
  const Json header = Json::parse(parts.header.begin(), parts.header.end(), nullptr, /*allow_exceptions=*/false);
  if (!header.is_object()) return NoSafetensors("its header is no JSON object");
  TERSE_ASSIGN_OR_RETURN(const std::vector<std::string> buffers, BuffersOf(header));
  std::vector<FileTensor> tensors;
  for (const auto& [name, description] : header.items()) {
    if (name == kMetadata) continue;
    absl::StatusOr<FileTensor> tensor = TensorOf(name, description);
    if (!tensor.ok()) return tensor.status();
    const bool is_buffer = std::find(buffers.begin(), buffers.end(), name) != buffers.end();
    if (is_buffer) tensor->entry.kind = TensorKind::kBuffer;
    tensors.push_back(*std::move(tensor));
  }
  std::sort(tensors.begin(), tensors.end(), [](const FileTensor& a, const FileTensor& b) { return a.begin < b.begin; });
  uint64_t end = 0;
  std::vector<Layout::Entry> entries;
  for (FileTensor& tensor : tensors) {
    if (tensor.begin != end)
      return NoSafetensors(absl::StrCat("there is a gap before tensor '", tensor.entry.name, "'"));
    end = tensor.end;
    entries.push_back(std::move(tensor.entry));
  }
  if (end != parts.values.size()) {
    return NoSafetensors(absl::StrCat("its tensors have ", end, " bytes, and ", parts.values.size(), " are there"));
  }
  absl::StatusOr<Layout> layout = Layout::Create(entries);
  if (!layout.ok()) return NoSafetensors(layout.status().message());
  // Each tensor has the bytes that its shape asks for, so that the layout has as many as the file.
  NamedWeights model = {*std::move(layout), {}};
  model.weights.resize(model.layout.size());
  std::memcpy(model.weights.data(), parts.values.data(), parts.values.size());
  return model;
}

absl::StatusOr<std::string> ExportNpz(const Layout& layout, absl::Span<const float> weights) {
  constexpr size_t kMostFloats = (size_t{2} << 30) / sizeof(float);
  TERSE_RETURN_IF_ERROR(CheckLength(layout, weights.size()));
  if (weights.size() > kMostFloats || layout.tensors().size() > std::numeric_limits<uint16_t>::max()) {
    return absl::InvalidArgumentError(absl::StrCat("a model of ", weights.size(), " weights in ",
                                                   layout.tensors().size(),
                                                   " tensors is too large for .npz; export it as safetensors"));
  }
  ZipWriter zip;
  for (const TensorSpec& tensor : layout.tensors()) {
    const absl::string_view values(reinterpret_cast<const char*>(weights.data() + tensor.offset),
                                   tensor.size * sizeof(float));
    zip.Add(absl::StrCat(tensor.name, ".npy"), NpyHeader(tensor.shape), values);
  }
  return std::move(zip).Finish();
}

std::string ExportVocabulary(const std::vector<std::string>& symbols) { return JsonText(symbols, 0) + "\n"; }

}  // namespace terse
