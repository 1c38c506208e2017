// The inputs that make_corpus writes.
#ifndef TERSE_TESTS_FUZZ_SEEDS_H_
#define TERSE_TESTS_FUZZ_SEEDS_H_

#include <initializer_list>
#include <map>
#include <string>

namespace terse {

using Seeds = std::map<std::string, std::string>;  // "target/name" to bytes

inline std::string Bytes(std::initializer_list<int> bytes) {
  std::string text;
  for (int byte : bytes) text.push_back(static_cast<char>(byte));
  return text;
}

// `value` in `width` bytes, least significant first.
inline std::string Little(uint64_t value, int width) {
  std::string text;
  for (int i = 0; i < width; ++i) text.push_back(static_cast<char>(value >> (8 * i)));
  return text;
}

// Seeds of the targets around the codecs: files, messages, configurations, sessions.
void AddEdgeSeeds(Seeds* seeds);

}  // namespace terse

#endif  // TERSE_TESTS_FUZZ_SEEDS_H_
