#include "learning/datasets/dataset.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace terse {
namespace {

int64_t Product(const std::vector<int64_t>& shape) {
  int64_t product = 1;
  for (const int64_t size : shape) product *= size;
  return product;
}

template <typename T>
Column Own(Element element, std::vector<int64_t> shape, std::vector<T> values) {
  const auto owner = std::make_shared<const std::vector<T>>(std::move(values));
  const int64_t each = Product(shape);
  const int64_t count = each == 0 ? 0 : static_cast<int64_t>(owner->size()) / each;
  return Column::Shared(element, std::move(shape), count, owner->data(), owner);
}

template <typename T>
double NumberAt(const char* at) {
  T number;
  std::memcpy(&number, at, sizeof number);
  return static_cast<double>(number);
}

}  // namespace

int64_t BytesOf(Element element) {
  switch (element) {
    case Element::kByte:
      return 1;
    case Element::kFloat:
    case Element::kInt32:
      return 4;
    case Element::kInt64:
      return 8;
  }
  return 0;
}

const char* NameOf(Element element) {
  switch (element) {
    case Element::kByte:
      return "byte";
    case Element::kFloat:
      return "float";
    case Element::kInt32:
      return "int32";
    case Element::kInt64:
      return "int64";
  }
  return "";
}

Column Column::FromBytes(std::vector<int64_t> shape, std::vector<uint8_t> values) {
  return Own(Element::kByte, std::move(shape), std::move(values));
}

Column Column::FromFloats(std::vector<int64_t> shape, std::vector<float> values) {
  return Own(Element::kFloat, std::move(shape), std::move(values));
}

Column Column::FromInt64s(std::vector<int64_t> shape, std::vector<int64_t> values) {
  return Own(Element::kInt64, std::move(shape), std::move(values));
}

Column Column::Shared(Element element, std::vector<int64_t> shape, int64_t count, const void* data,
                      std::shared_ptr<const void> owner) {
  Column column;
  column.element_ = element;
  column.shape_ = std::move(shape);
  column.count_ = count;
  column.data_ = static_cast<const char*>(data);
  column.owner_ = std::move(owner);
  return column;
}

int64_t Column::elements_each() const { return Product(shape_); }

void Column::Gather(absl::Span<const uint32_t> indices, char* out) const {
  const int64_t size = bytes_each();
  for (const uint32_t index : indices) {
    std::memcpy(out, data_ + index * size, size);
    out += size;
  }
}

double Column::Number(int64_t example) const {
  const char* at = data_ + example * bytes_each();
  switch (element_) {
    case Element::kByte:
      return NumberAt<uint8_t>(at);
    case Element::kFloat:
      return NumberAt<float>(at);
    case Element::kInt32:
      return NumberAt<int32_t>(at);
    case Element::kInt64:
      return NumberAt<int64_t>(at);
  }
  return 0;
}

Column Column::Reshaped(std::vector<int64_t> shape) const {
  return Shared(element_, std::move(shape), count_, data_, owner_);
}

Column Column::Slice(int64_t first, int64_t count) const {
  return Shared(element_, shape_, count, data_ + first * bytes_each(), owner_);
}

std::string Examples::Place(int64_t example) const {
  const auto after = std::upper_bound(files.begin(), files.end(), example,
                                      [](int64_t number, const DataFile& file) { return number < file.first; });
  if (after == files.begin()) return absl::StrCat("example ", example);
  const DataFile& file = *std::prev(after);
  return absl::StrCat(file.name, ", example ", example - file.first);
}

Id128 Column::Hash() const {
  const Id128 values = HashBytes(absl::string_view(data_, count_ * bytes_each()));
  return HashBytes(absl::StrCat(NameOf(element_), "/", absl::StrJoin(shape_, ","), "/", count_, "/", values.ToBytes()));
}

}  // namespace terse
