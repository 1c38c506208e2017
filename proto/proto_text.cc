#include "proto/proto_text.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace terse {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using Json = nlohmann::ordered_json;

Json StringJson(const FieldDescriptor& field, const std::string& value) {
  return field.type() == FieldDescriptor::TYPE_BYTES ? absl::BytesToHexString(value) : value;
}

Json ValueJson(const Message& message, const FieldDescriptor& field) {
  const auto& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return reflection.GetInt32(message, &field);
    case FieldDescriptor::CPPTYPE_INT64:
      return reflection.GetInt64(message, &field);
    case FieldDescriptor::CPPTYPE_UINT32:
      return reflection.GetUInt32(message, &field);
    case FieldDescriptor::CPPTYPE_UINT64:
      return reflection.GetUInt64(message, &field);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return reflection.GetDouble(message, &field);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return reflection.GetFloat(message, &field);
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.GetBool(message, &field);
    case FieldDescriptor::CPPTYPE_ENUM:
      return reflection.GetEnum(message, &field)->name();
    case FieldDescriptor::CPPTYPE_STRING:
      return StringJson(field, reflection.GetString(message, &field));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return ToJson(reflection.GetMessage(message, &field));
  }
  return nullptr;
}

// Lists in this API are of messages, texts, int64 and double.
Json EntryJson(const Message& message, const FieldDescriptor& field, int i) {
  const auto& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return ToJson(reflection.GetRepeatedMessage(message, &field, i));
    case FieldDescriptor::CPPTYPE_INT64:
      return reflection.GetRepeatedInt64(message, &field, i);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return reflection.GetRepeatedDouble(message, &field, i);
    default:
      return StringJson(field, reflection.GetRepeatedString(message, &field, i));
  }
}

Json ListJson(const Message& message, const FieldDescriptor& field) {
  Json list = Json::array();
  for (int i = 0; i < message.GetReflection()->FieldSize(message, &field); ++i) {
    list.push_back(EntryJson(message, field, i));
  }
  return list;
}

bool IsUnset(const Message& message, const FieldDescriptor& field) {
  return field.has_presence() && field.message_type() == nullptr && !message.GetReflection()->HasField(message, &field);
}

std::string CsvCell(const Json& value) {
  if (value.is_null()) return "";
  if (!value.is_string()) return value.dump();
  const std::string text = value.get<std::string>();
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

}  // namespace

Json ToJson(const Message& message) {
  Json object = Json::object();
  const Descriptor& descriptor = *message.GetDescriptor();
  for (int i = 0; i < descriptor.field_count(); ++i) {
    const FieldDescriptor& field = *descriptor.field(i);
    if (IsUnset(message, field)) {
      object[field.name()] = nullptr;
    } else {
      object[field.name()] = field.is_repeated() ? ListJson(message, field) : ValueJson(message, field);
    }
  }
  return object;
}

std::string CsvHeader(const Descriptor& descriptor) {
  std::string line;
  for (int i = 0; i < descriptor.field_count(); ++i) {
    if (descriptor.field(i)->is_repeated()) continue;
    absl::StrAppend(&line, line.empty() ? "" : ",", descriptor.field(i)->name());
  }
  return line + "\n";
}

std::string CsvRow(const Message& message) {
  const Json object = ToJson(message);
  std::string line;
  for (const auto& item : object.items()) {
    if (item.value().is_array()) continue;
    absl::StrAppend(&line, line.empty() ? "" : ",", CsvCell(item.value()));
  }
  return line + "\n";
}

}  // namespace terse
