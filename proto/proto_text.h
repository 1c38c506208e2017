// Messages as JSON and CSV, straight from their descriptors: a field that is added to admin.proto shows up in both.
// Integers are written digit by digit as served, floating-point numbers in the shortest form that reads back the same.
#ifndef TERSE_PROTO_PROTO_TEXT_H_
#define TERSE_PROTO_PROTO_TEXT_H_

#include <google/protobuf/message.h>

#include <nlohmann/json.hpp>
#include <string>

namespace terse {

// Returns the message as JSON, with its keys in the order of declaration; bytes as lower-case hexadecimal; an unset
// `optional` field as null.
nlohmann::ordered_json ToJson(const google::protobuf::Message& message);

// "a,b,c\n": the names of the fields, and the values of one message with the same texts as ToJson. An unset `optional`
// field is empty. Repeated fields have no column.
std::string CsvHeader(const google::protobuf::Descriptor& descriptor);
std::string CsvRow(const google::protobuf::Message& message);

}  // namespace terse

#endif  // TERSE_PROTO_PROTO_TEXT_H_
