// How the commands of tersectl print JSON.
#ifndef TERSE_TERSECTL_PRINT_H_
#define TERSE_TERSECTL_PRINT_H_

#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "core/json_text.h"
#include "core/log/plain_text.h"
#include "proto/proto_text.h"
#include "tersectl/commands.h"

namespace terse {

// The JSON, without characters that a terminal would obey: JSON itself leaves some of them as they are.
inline void PrintJson(const nlohmann::ordered_json& json, const Terminal& terminal) {
  *terminal.out << PlainLines(JsonText(json, 2)) << "\n";
}

// On one line, for those who follow.
inline void PrintJsonLine(const nlohmann::ordered_json& json, const Terminal& terminal) {
  *terminal.out << PlainText(JsonText(json)) << std::endl;
}

template <typename M>
void PrintJsonList(const std::vector<M>& messages, const Terminal& terminal) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const M& message : messages) list.push_back(ToJson(message));
  PrintJson(list, terminal);
}

// One figure: with --json an object of that one key, else the text.
template <typename Value>
void PrintOutcome(const CommandOptions& options, const char* key, const Value& value, const std::string& text,
                  const Terminal& terminal) {
  if (options.json) {
    PrintJson({{key, value}}, terminal);
  } else {
    *terminal.out << PlainLines(text) << "\n";
  }
}

}  // namespace terse

#endif  // TERSE_TERSECTL_PRINT_H_
