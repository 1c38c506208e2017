// Makes text from others safe for terminals and for readers of lines.
#ifndef TERSE_CORE_LOG_PLAIN_TEXT_H_
#define TERSE_CORE_LOG_PLAIN_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"

namespace terse {

// UTF-8 without anything that could be taken for something else than text: control characters, separators of lines and
// marks that turn the direction of writing become \u001b and the like, a line break \n, and bytes that are no UTF-8
// become U+FFFD. A peer's text goes through here before it is logged or printed.
std::string PlainText(absl::string_view text);

// Applies PlainText to each line of a text whose line breaks are our own. JSON means afterwards what it meant before.
std::string PlainLines(absl::string_view text);

}  // namespace terse

#endif  // TERSE_CORE_LOG_PLAIN_TEXT_H_
