// Makes numbered symbols from the bytes of a text.
#ifndef TERSE_LEARNING_DATASETS_SYMBOLS_H_
#define TERSE_LEARNING_DATASETS_SYMBOLS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "learning/datasets/file_bytes.h"

namespace terse {

enum class TextLevel { kChar, kWord };  // see text.h

// Counts the symbols of the training files, chooses the vocabulary, then numbers the symbols of any file. Not
// thread-safe.
class SymbolCounter {
 public:
  explicit SymbolCounter(TextLevel level) : level_(level) {}

  // Appends the symbols of the file, in numbers of the counter's own until Finish.
  // INVALID_ARGUMENT, with the offset, for bytes that are not UTF-8.
  absl::Status Add(const FileBytes& file, std::vector<int32_t>* symbols);

  // Chooses the vocabulary: the `limit` most frequent symbols (0: all), and "<unk>" for the others when limit is not 0.
  // The symbols that Add gave become numbers in it.
  void Finish(int64_t limit, std::vector<int32_t>* symbols);
  const std::vector<std::string>& vocabulary() const { return vocabulary_; }

  // After Finish: appends the symbols of another file. INVALID_ARGUMENT, with the offset, also for a symbol that is not
  // in a vocabulary without "<unk>".
  absl::Status Number(const FileBytes& file, std::vector<int32_t>* symbols) const;

 private:
  const TextLevel level_;
  absl::flat_hash_map<std::string, int32_t> numbers_;  // of the symbols seen; after Finish of the vocabulary
  std::vector<int64_t> counts_;
  std::vector<std::string> vocabulary_;
};

}  // namespace terse

#endif  // TERSE_LEARNING_DATASETS_SYMBOLS_H_
