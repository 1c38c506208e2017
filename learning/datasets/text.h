// Texts for language models: a row of symbols, each a character or a word, and the vocabulary that numbers them.
#ifndef TERSE_LEARNING_DATASETS_TEXT_H_
#define TERSE_LEARNING_DATASETS_TEXT_H_

#include <string>

#include "absl/status/statusor.h"
#include "core/run_config.h"
#include "learning/datasets/dataset.h"

namespace terse {

// Data set "text": data.train and data.test each name a file of UTF-8, plain or with .gz, or a folder of files that end
// with .txt, taken in the order of their names (file_starts has them).
//
// With data.level "char" every character (code point) is a symbol. With "word" words are what stands between white
// space, and every line ends with the symbol "<eos>", as in Mikolov's preparation of the Penn Treebank.
//
// The vocabulary comes from the training text alone: its symbols by falling frequency, equal ones by their bytes. With
// data.vocabulary N > 0 it has the N most frequent of them, and all others become "<unk>": one more symbol at the end,
// unless "<unk>" is among the N. So all members of a fleet need the same training file to agree on it; partitions cut
// it into clients.
//
// NOT_FOUND without a training file; INVALID_ARGUMENT, with file, offset, reason and remedy, for bytes that are not
// UTF-8, an empty text, or a symbol of the test text that is not in a vocabulary without "<unk>"; also for a level that
// is neither and a vocabulary outside 0..2^24, and what FindDataParts returns.
absl::StatusOr<Dataset> LoadText(const DataSpec& spec, const std::string& data_dir);

// Data set "ptb", the Penn Treebank in Mikolov's preparation: words of ptb.train.txt and ptb.test.txt (ptb.valid.txt
// stays unread), plain or with .gz, in `data_dir` or its folder ptb. 10,000 symbols, "<eos>" and "<unk>" among them.
absl::StatusOr<Dataset> LoadPtb(const DataSpec& spec, const std::string& data_dir);

// Data set "shakespeare": characters of tinyshakespeare.txt in `data_dir` or its folder shakespeare; the vocabulary is
// the whole file's and the last 1/50 of the characters is the test text.
absl::StatusOr<Dataset> LoadShakespeare(const DataSpec& spec, const std::string& data_dir);

}  // namespace terse

#endif  // TERSE_LEARNING_DATASETS_TEXT_H_
