// Suggestions for words that nobody knows: a mistyped command, option or key of a run file.
#ifndef TERSE_CORE_CLOSEST_WORD_H_
#define TERSE_CORE_CLOSEST_WORD_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace terse {

// The fewest characters to insert, remove, replace or swap with their neighbour that turn `a` into `b`, where no part
// is changed twice (optimal string alignment, the restricted Damerau-Levenshtein distance). In bytes; O(|a| |b|) time.
size_t EditDistance(absl::string_view a, absl::string_view b);

// Whether `word` is made of the first letters of the words of `name`, as in "lr" for "learning_rate". Words are
// separated by '_', '-' or '.', and there are at least two.
bool IsInitialsOf(absl::string_view word, absl::string_view name);

// Whether `name` is `word` and further words behind it, as "run-file" is for "run". Words are separated as above.
bool IsBeginningOf(absl::string_view word, absl::string_view name);

// The one of `known` that `word` was probably meant to be: the first of the least EditDistance, if that is at most a
// third of the word's length, or else the first that it has the initials of, or else the first that it is the beginning
// of. Empty when there is none. Pure.
std::string ClosestWord(absl::string_view word, const std::vector<std::string>& known);

// "did you mean 'status'? " when ClosestWord has an answer, else "".
std::string DidYouMean(absl::string_view word, const std::vector<std::string>& known);

}  // namespace terse

#endif  // TERSE_CORE_CLOSEST_WORD_H_
