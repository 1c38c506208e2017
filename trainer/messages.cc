#include "trainer/messages.h"

#include <cstring>
#include <limits>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/json_text.h"
#include "nlohmann/json.hpp"
#include "trainer/run_config_fields.h"

namespace terse {
namespace {

using Json = nlohmann::json;

class JsonWriter {
 public:
  template <typename... T>
  void operator()(const char* names, T&... values) {
    const std::vector<std::string> keys = absl::StrSplit(names, ", ");
    size_t i = 0;
    (Put(keys[i++], values), ...);
  }
  Json Take() { return std::move(object_); }

 private:
  template <typename T>
  void Put(const std::string& key, T& value) {
    if constexpr (IsOptional<T>::value) {
      if (value.has_value()) object_[key] = Made(*value);
    } else {
      object_[key] = Made(value);
    }
  }
  template <typename T>
  static Json Made(T& value) {
    if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
      return value;
    } else if constexpr (std::is_enum_v<T>) {
      return static_cast<std::underlying_type_t<T>>(value);
    } else if constexpr (IsVector<T>::value) {
      Json array = Json::array();
      for (auto& element : value) array.push_back(Made(element));
      return array;
    } else {
      JsonWriter writer;
      Fields(writer, value);
      return writer.Take();
    }
  }

  Json object_ = Json::object();
};

// Reads an object that anybody may have written. Remembers the first thing that is wrong.
class JsonReader {
 public:
  JsonReader(const Json& object, std::string* wrong) : object_(object), wrong_(wrong) {}

  template <typename... T>
  void operator()(const char* names, T&... values) {
    const std::vector<std::string> keys = absl::StrSplit(names, ", ");
    size_t i = 0;
    (Get(keys[i++], values), ...);
  }

 private:
  template <typename T>
  void Get(const std::string& key, T& value) {
    const auto found = object_.find(key);
    if constexpr (IsOptional<T>::value) {
      value.reset();
      if (found != object_.end()) Read(key, *found, value.emplace());
    } else {
      if (found == object_.end()) return Wrong(key, "is missing");
      Read(key, *found, value);
    }
  }

  template <typename T>
  void Read(const std::string& key, const Json& json, T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      if (!json.is_boolean()) return Wrong(key, "is neither true nor false");
      value = json.get<bool>();
    } else if constexpr (std::is_integral_v<T>) {
      static_assert(sizeof(T) == sizeof(int64_t), "the check below is of 64 bits");
      const bool fits = json.is_number_unsigned() ? json.get<uint64_t>() <= uint64_t{std::numeric_limits<T>::max()}
                                                  : json.is_number_integer() && std::is_signed_v<T>;
      if (!fits) return Wrong(key, "is no whole number of 64 bits");
      value = json.get<T>();
    } else if constexpr (std::is_enum_v<T>) {
      int64_t number = 0;
      Read(key, json, number);
      value = static_cast<T>(number);
    } else if constexpr (std::is_floating_point_v<T>) {
      if (!json.is_number() && !json.is_null()) return Wrong(key, "is no number");
      value = json.is_null() ? std::numeric_limits<T>::quiet_NaN() : json.get<T>();
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (!json.is_string()) return Wrong(key, "is no string");
      value = json.get<std::string>();
    } else if constexpr (IsVector<T>::value) {
      if (!json.is_array()) return Wrong(key, "is no array");
      value.clear();
      for (size_t i = 0; i < json.size() && wrong_->empty(); ++i) {
        Read(absl::StrCat(key, "[", i, "]"), json[i], value.emplace_back());
      }
    } else {
      if (!json.is_object()) return Wrong(key, "is no object");
      JsonReader reader(json, wrong_);
      Fields(reader, value);
    }
  }

  void Wrong(const std::string& key, const char* how) {
    if (wrong_->empty()) *wrong_ = absl::StrCat("'", key, "' ", how);
  }

  const Json& object_;
  std::string* const wrong_;
};

}  // namespace

std::vector<WireMetric> ToWire(const std::vector<NamedMetric>& metrics) {
  std::vector<WireMetric> wire;
  for (const NamedMetric& metric : metrics) {
    wire.push_back({std::string(MetricKindName(metric.kind)), metric.name, metric.value, metric.samples});
  }
  return wire;
}

std::string PackSymbols(const std::vector<std::string>& symbols) {
  std::string bytes;
  for (const std::string& symbol : symbols) {
    const auto size = static_cast<uint32_t>(symbol.size());
    bytes.append(reinterpret_cast<const char*>(&size), sizeof size).append(symbol);
  }
  return bytes;
}

absl::StatusOr<std::vector<std::string>> UnpackSymbols(absl::string_view bytes, size_t most) {
  std::vector<std::string> symbols;
  while (!bytes.empty()) {
    uint32_t size = 0;
    if (bytes.size() < sizeof size) return absl::InvalidArgumentError("the size of a symbol is cut short");
    std::memcpy(&size, bytes.data(), sizeof size);
    bytes.remove_prefix(sizeof size);
    if (size > bytes.size()) return absl::InvalidArgumentError("a symbol is cut short");
    if (symbols.size() == most) return absl::InvalidArgumentError(absl::StrCat("more than ", most, " symbols"));
    symbols.emplace_back(bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
  return symbols;
}

template <typename T>
std::string ToJson(const T& message) {
  T copy = message;
  JsonWriter writer;
  Fields(writer, copy);
  return JsonText(writer.Take());
}

template <typename T>
absl::StatusOr<T> FromJson(absl::string_view body) {
  const Json json = Json::parse(body.begin(), body.end(), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return absl::InvalidArgumentError("it is no JSON object");
  T message;
  std::string wrong;
  JsonReader reader(json, &wrong);
  Fields(reader, message);
  if (!wrong.empty()) return absl::InvalidArgumentError(wrong);
  return message;
}

#define TERSE_MESSAGE(T)                    \
  template std::string ToJson<T>(const T&); \
  template absl::StatusOr<T> FromJson<T>(absl::string_view)
TERSE_MESSAGE(OpenRequest);
TERSE_MESSAGE(Hello);
TERSE_MESSAGE(MemoryRequest);
TERSE_MESSAGE(WireStart);
TERSE_MESSAGE(LocalPlan);
TERSE_MESSAGE(WireResult);
TERSE_MESSAGE(GradientRequest);
TERSE_MESSAGE(Confinement);
TERSE_MESSAGE(RunConfig);
TERSE_MESSAGE(EvaluateRequest);
TERSE_MESSAGE(WireEvaluation);
TERSE_MESSAGE(ProgressReport);
TERSE_MESSAGE(GoOn);
TERSE_MESSAGE(SealedNotice);
TERSE_MESSAGE(FinishedNotice);
TERSE_MESSAGE(WireFailure);
#undef TERSE_MESSAGE

}  // namespace terse
