// JSON as the text that is written, sent or printed.
#ifndef TERSE_CORE_JSON_TEXT_H_
#define TERSE_CORE_JSON_TEXT_H_

#include <nlohmann/json.hpp>
#include <string>

namespace terse {

// Returns the text of the JSON in UTF-8: on one line, or indented by `indent` spaces a level. Bytes that are not UTF-8,
// which names of files and messages of errors may have, become U+FFFD, so that the JSON library never throws.
inline std::string JsonText(const nlohmann::ordered_json& json, int indent = -1) {
  return json.dump(indent, ' ', /*ensure_ascii=*/false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace terse

#endif  // TERSE_CORE_JSON_TEXT_H_
