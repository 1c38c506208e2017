#include "proto/run_config_rules.h"

#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace terse {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr size_t kMaxRunName = 64;

const v1::FieldRule& RuleOf(const FieldDescriptor& field) { return field.options().GetExtension(v1::rule); }

// Nothing, or how `value` lies outside of the rule: "is below" or "is above". NaN is below everything.
template <typename T>
absl::string_view OutsideOf(const v1::FieldRule& rule, T value) {
  if (rule.has_above() && !(value > static_cast<T>(rule.above()))) return "is below";
  if (rule.has_min() && !(value >= static_cast<T>(rule.min()))) return "is below";
  if (rule.has_max() && !(value <= static_cast<T>(rule.max()))) return "is above";
  return "";
}

ConfigViolation OutOfRange(const FieldDescriptor& field, const std::string& key, absl::string_view value,
                           absl::string_view how) {
  return {key, absl::StrCat(key, " = ", value, " ", how, " the allowed range ", AllowedText(field))};
}

std::optional<ConfigViolation> CheckString(const FieldDescriptor& field, const std::string& key,
                                           const std::string& value) {
  const v1::FieldRule& rule = RuleOf(field);
  if (rule.one_of().empty()) return std::nullopt;
  for (const std::string& allowed : rule.one_of()) {
    if (value == allowed) return std::nullopt;
  }
  return ConfigViolation{key, absl::StrCat(key, " = '", value, "' is not allowed; use ", AllowedText(field))};
}

std::optional<ConfigViolation> CheckField(const Message& message, const FieldDescriptor& field,
                                          const std::string& key) {
  const auto& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return CheckFields(reflection.GetMessage(message, &field), key);
    case FieldDescriptor::CPPTYPE_INT64: {
      const int64_t value = reflection.GetInt64(message, &field);
      const absl::string_view how = OutsideOf(RuleOf(field), value);
      if (!how.empty()) return OutOfRange(field, key, absl::StrCat(value), how);
      return std::nullopt;
    }
    case FieldDescriptor::CPPTYPE_DOUBLE: {
      const double value = reflection.GetDouble(message, &field);
      const absl::string_view how = OutsideOf(RuleOf(field), value);
      if (!how.empty()) return OutOfRange(field, key, NumberText(value), how);
      return std::nullopt;
    }
    case FieldDescriptor::CPPTYPE_STRING:
      return CheckString(field, key, reflection.GetString(message, &field));
    default:
      return std::nullopt;  // a bool is always in range; no other type is in the schema
  }
}

// A name becomes part of file names, so it must not be "..", hidden or a path.
bool IsRunName(absl::string_view name) {
  if (name.empty() || name.size() > kMaxRunName || name[0] == '.') return false;
  for (const char c : name) {
    if (!absl::ascii_isalnum(c) && c != '-' && c != '_' && c != '.') return false;
  }
  return true;
}

}  // namespace

std::string JoinKey(absl::string_view prefix, absl::string_view field) {
  return prefix.empty() ? std::string(field) : absl::StrCat(prefix, ".", field);
}

std::string TypeText(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return "table";
    case FieldDescriptor::CPPTYPE_INT64:
      return "integer";
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return "number";
    case FieldDescriptor::CPPTYPE_BOOL:
      return "true or false";
    default:
      return "string";
  }
}

std::string NumberText(double value) {
  // Whole numbers that a double holds exactly, without an exponent.
  if (value == std::floor(value) && std::abs(value) <= 0x1p53) return absl::StrFormat("%.0f", value);
  for (const int digits : {6, 15}) {
    std::string text = absl::StrFormat("%.*g", digits, value);
    double back = 0;
    if (absl::SimpleAtod(text, &back) && back == value) return text;
  }
  return absl::StrFormat("%.17g", value);
}

std::string AllowedText(const FieldDescriptor& field) {
  const v1::FieldRule& rule = RuleOf(field);
  if (!rule.one_of().empty()) {
    std::string text;
    for (int i = 0; i < rule.one_of_size(); ++i) {
      const bool is_last = i + 1 == rule.one_of_size();
      absl::StrAppend(&text, i == 0 ? "" : is_last ? " or " : ", ", "'", rule.one_of(i), "'");
    }
    return text;
  }
  if (rule.has_above()) {
    return rule.has_max() ? absl::StrCat("above ", NumberText(rule.above()), ", at most ", NumberText(rule.max()))
                          : absl::StrCat("above ", NumberText(rule.above()));
  }
  if (rule.has_min() && rule.has_max()) return absl::StrCat(NumberText(rule.min()), " to ", NumberText(rule.max()));
  if (rule.has_min()) return absl::StrCat("at least ", NumberText(rule.min()));
  return rule.has_max() ? absl::StrCat("at most ", NumberText(rule.max())) : "";
}

std::optional<ConfigViolation> CheckFields(const Message& message, absl::string_view prefix) {
  const auto& descriptor = *message.GetDescriptor();
  for (int i = 0; i < descriptor.field_count(); ++i) {
    const FieldDescriptor& field = *descriptor.field(i);
    std::optional<ConfigViolation> violation = CheckField(message, field, JoinKey(prefix, field.name()));
    if (violation.has_value()) return violation;
  }
  return std::nullopt;
}

std::optional<ConfigViolation> CheckAcrossFields(const v1::RunConfig& config) {
  if (!IsRunName(config.name())) {
    return ConfigViolation{"name",
                           absl::StrCat("name = '", config.name(), "' is not a name of a run; use 1 to ", kMaxRunName,
                                        " letters, digits, '-', '_' and '.', not starting with '.'")};
  }
  if (config.rounds().quorum() > config.rounds().clients()) {
    return ConfigViolation{"rounds.quorum", absl::StrCat("rounds.quorum = ", config.rounds().quorum(),
                                                         " is more than rounds.clients = ", config.rounds().clients(),
                                                         "; use at most as many, or 0 for all")};
  }
  return std::nullopt;
}

}  // namespace terse
