#include "learning/datasets/npy.h"

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/status.h"

namespace terse {
namespace {

constexpr absl::string_view kMagic = "\x93NUMPY";
constexpr int64_t kLongestHeader = 1 << 20;
constexpr size_t kMostDimensions = 32;

struct Header {
  std::string type;  // "f4"
  std::vector<int64_t> shape;
};

// A type that NumPy writes and this reader does not take, by how its code begins.
struct OtherType {
  absl::string_view code;
  absl::string_view name;
  absl::string_view remedy;
};

constexpr absl::string_view kToInt32 = "save array.astype(numpy.int32)";
constexpr absl::string_view kToInt64 = "save array.astype(numpy.int64)";
constexpr absl::string_view kToFloat = "save array.astype(numpy.float32)";
constexpr absl::string_view kToNumbers = "number the texts with numpy.unique(array, return_inverse=True)[1]";
constexpr OtherType kOtherTypes[] = {
    {"i1", "int8", kToInt32},
    {"i2", "int16", kToInt32},
    {"u2", "uint16", kToInt32},
    {"u4", "uint32", kToInt64},
    {"u8", "uint64", kToInt64},
    {"f2", "float16", kToFloat},
    {"f16", "longdouble", kToFloat},
    {"O", "object", "make an array of numbers with numpy.array(rows, dtype=numpy.float32), all rows of one length"},
    {"U", "str", kToNumbers},
    {"S", "bytes", kToNumbers},
};
constexpr absl::string_view kTypesRead = "uint8, float32, float64, int32, int64 and bool are read";

// The text between a key of the header's dictionary and the comma or bracket that ends its value.
absl::string_view ValueOf(absl::string_view header, absl::string_view key) {
  for (const absl::string_view quote : {"'", "\""}) {
    const size_t at = header.find(absl::StrCat(quote, key, quote));
    if (at == absl::string_view::npos) continue;
    absl::string_view value = absl::StripLeadingAsciiWhitespace(header.substr(at + key.size() + 2));
    if (!absl::ConsumePrefix(&value, ":")) return "";
    value = absl::StripLeadingAsciiWhitespace(value);
    const size_t end = absl::StartsWith(value, "(") ? value.find(')') + 1 : value.find_first_of(",}");
    return value.substr(0, end);
  }
  return "";
}

// Reads the shape; returns an empty string when it is right, else what is wrong with it.
std::string ParseShape(absl::string_view value, std::vector<int64_t>* shape) {
  if (!absl::ConsumePrefix(&value, "(") || !absl::ConsumeSuffix(&value, ")")) return "the shape is no tuple";
  const std::vector<absl::string_view> sizes = absl::StrSplit(value, ',');
  for (size_t i = 0; i < sizes.size(); ++i) {
    const absl::string_view size = absl::StripAsciiWhitespace(sizes[i]);
    if (size.empty() && i + 1 == sizes.size()) break;  // (5,)
    int64_t number = 0;
    if (!absl::SimpleAtoi(size, &number) || number < 0) return absl::StrCat("the shape has '", size.substr(0, 40), "'");
    shape->push_back(number);
  }
  return "";
}

// Returns the bytes of a value; 0 for a type that is not read.
int64_t SizeOf(absl::string_view type) {
  if (type == "u1" || type == "b1") return 1;
  if (type == "f4" || type == "i4") return 4;
  return type == "f8" || type == "i8" ? 8 : 0;
}

// The file is whole, and holds what is not read.
absl::Status NotRead(const FileBytes& file, absl::string_view what, absl::string_view remedy) {
  return absl::InvalidArgumentError(absl::StrCat(file.name(), ": ", what, "; ", remedy));
}

absl::Status TypeNotRead(const FileBytes& file, absl::string_view type) {
  for (const OtherType& other : kOtherTypes) {
    if (!absl::StartsWith(type, other.code)) continue;
    return NotRead(file, absl::StrCat("the array's dtype is ", other.name, "; ", kTypesRead), other.remedy);
  }
  return NotRead(file, absl::StrCat("the array's dtype is ", type.substr(0, 40), "; ", kTypesRead), kToFloat);
}

// Takes the type out of "'<f4'". A list stands there for arrays whose values have several fields.
absl::Status ParseType(const FileBytes& file, int64_t start, absl::string_view value, std::string* type) {
  if (absl::StartsWith(value, "[")) {
    return NotRead(file, absl::StrCat("the array's dtype has fields; ", kTypesRead),
                   "save numpy.lib.recfunctions.structured_to_unstructured(array)");
  }
  const absl::string_view quote = value.substr(0, 1);
  if ((quote != "'" && quote != "\"") || !absl::ConsumePrefix(&value, quote) || !absl::ConsumeSuffix(&value, quote) ||
      value.size() < 2) {
    return file.Malformed(start, "the header names no type");
  }
  *type = std::string(value.substr(1));
  if (SizeOf(*type) == 0) return TypeNotRead(file, *type);
  if (value[0] != '>') return absl::OkStatus();
  return NotRead(file, "the values are big-endian", absl::StrCat("save array.astype('<", *type, "')"));
}

// `start` is where `text`, the header, begins in the file.
absl::Status ParseHeader(const FileBytes& file, int64_t start, absl::string_view text, Header* header) {
  TERSE_RETURN_IF_ERROR(ParseType(file, start, ValueOf(text, "descr"), &header->type));
  const absl::string_view order = ValueOf(text, "fortran_order");
  if (order == "True") return NotRead(file, "the array is in Fortran order", "save numpy.ascontiguousarray(array)");
  if (order != "False") return file.Malformed(start, absl::StrCat("fortran_order is ", order.substr(0, 40)));
  const std::string wrong = ParseShape(ValueOf(text, "shape"), &header->shape);
  if (!wrong.empty()) return file.Malformed(start, wrong);
  if (!header->shape.empty() && header->shape.size() <= kMostDimensions) return absl::OkStatus();
  return NotRead(file, absl::StrCat("the array has ", header->shape.size(), " dimensions"),
                 absl::StrCat("save one with 1 to ", kMostDimensions, "; the first counts the examples"));
}

template <typename From, typename To>
std::vector<To> Converted(absl::string_view bytes) {
  std::vector<To> values(bytes.size() / sizeof(From));
  for (size_t i = 0; i < values.size(); ++i) {
    From value;
    std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
    values[i] = static_cast<To>(value);
  }
  return values;
}

// Returns the values in memory of their own.
template <typename T>
Column Owned(Element element, std::vector<int64_t> shape, int64_t count, std::vector<T> values) {
  const auto owner = std::make_shared<const std::vector<T>>(std::move(values));
  return Column::Shared(element, std::move(shape), count, owner->data(), owner);
}

// Returns the values where they are, or a copy when they are not aligned there.
Column InPlace(Element element, std::vector<int64_t> shape, int64_t count, absl::string_view bytes,
               const FileBytes& file) {
  if (reinterpret_cast<uintptr_t>(bytes.data()) % BytesOf(element) == 0) {
    return Column::Shared(element, std::move(shape), count, bytes.data(), file.owner());
  }
  // A vector's memory is aligned for every number.
  return Owned(element, std::move(shape), count, std::vector<char>(bytes.begin(), bytes.end()));
}

// The header, with the reader behind it.
absl::StatusOr<Header> TakeHeader(const FileBytes& file, ByteReader* reader) {
  TERSE_ASSIGN_OR_RETURN(const absl::string_view magic, reader->Take(kMagic.size(), "the magic string"));
  if (magic != kMagic) return file.Malformed(0, "the file does not begin as a .npy file does");
  TERSE_ASSIGN_OR_RETURN(const uint8_t major, reader->TakeNumber<uint8_t>("the version"));
  TERSE_ASSIGN_OR_RETURN(const uint8_t minor, reader->TakeNumber<uint8_t>("the version"));
  if (major < 1 || major > 3 || minor != 0) {
    return file.Malformed(6, absl::StrCat("version ", major, ".", minor, " is not 1.0, 2.0 or 3.0"));
  }
  int64_t length = 0;
  if (major == 1) {
    TERSE_ASSIGN_OR_RETURN(length, reader->TakeNumber<uint16_t>("the header's length"));
  } else {
    TERSE_ASSIGN_OR_RETURN(length, reader->TakeNumber<uint32_t>("the header's length"));
  }
  if (length > kLongestHeader) return file.Malformed(8, absl::StrCat("a header of ", length, " bytes is too long"));
  const int64_t start = reader->offset();
  TERSE_ASSIGN_OR_RETURN(const absl::string_view text, reader->Take(length, "the header"));
  Header header;
  TERSE_RETURN_IF_ERROR(ParseHeader(file, start, text, &header));
  return header;
}

}  // namespace

absl::StatusOr<Column> ReadNpy(const FileBytes& file) {
  ByteReader reader(file);
  TERSE_ASSIGN_OR_RETURN(Header header, TakeHeader(file, &reader));
  const int64_t start = reader.offset(), most = reader.left() / SizeOf(header.type);
  int64_t values = 1;
  for (const int64_t size : header.shape) {
    if (size > 0 && values > most / size) {
      return file.Malformed(start, absl::StrCat("the shape promises more than the ", most, " values that are left"));
    }
    values *= size;
  }
  if (values * SizeOf(header.type) != reader.left()) {
    return file.Malformed(
        start, absl::StrCat("the shape promises ", values, " values and ", reader.left(), " bytes are left"));
  }
  const int64_t count = header.shape[0];
  header.shape.erase(header.shape.begin());
  const absl::string_view bytes = file.bytes().substr(start);
  const std::string& type = header.type;
  if (type == "f8") return Column::FromFloats(header.shape, Converted<double, float>(bytes));
  if (type == "b1") return Owned(Element::kInt32, header.shape, count, Converted<uint8_t, int32_t>(bytes));
  const Element element = type == "u1"   ? Element::kByte
                          : type == "f4" ? Element::kFloat
                          : type == "i4" ? Element::kInt32
                                         : Element::kInt64;
  return InPlace(element, header.shape, count, bytes, file);
}

}  // namespace terse
