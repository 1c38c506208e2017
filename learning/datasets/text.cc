#include "learning/datasets/text.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "learning/datasets/data_files.h"
#include "learning/datasets/symbols.h"

namespace terse {
namespace {

constexpr int64_t kMostSymbols = int64_t{1} << 24;
constexpr int64_t kShakespeareTest = 50;  // the test text is one part of so many

absl::StatusOr<TextLevel> ParseLevel(const std::string& level) {
  if (level == "char") return TextLevel::kChar;
  if (level == "word") return TextLevel::kWord;
  return absl::InvalidArgumentError(absl::StrCat("data.level is '", level, "'; use char or word"));
}

// The texts of the files of both parts; there may be no test text.
absl::StatusOr<Dataset> Load(const DataParts& parts, TextLevel level, int64_t limit) {
  if (limit < 0 || limit > kMostSymbols) {
    return absl::InvalidArgumentError(absl::StrCat("data.vocabulary is ", limit, "; use 0 to ", kMostSymbols));
  }
  Dataset dataset;
  dataset.task = Task::kText;
  dataset.no_test = parts.no_test;
  SymbolCounter counter(level);
  TERSE_ASSIGN_OR_RETURN(const std::vector<std::string> train, ListDataFiles(parts.train, ".txt"));
  for (const std::string& name : train) {
    TERSE_ASSIGN_OR_RETURN(const FileBytes file, FileBytes::Open(name));
    if (train.size() > 1) dataset.file_starts.push_back(dataset.train_text.count());
    TERSE_RETURN_IF_ERROR(counter.Add(file, &dataset.train_text.symbols));
  }
  if (dataset.train_count() < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat(parts.train, ": the text has ", dataset.train_count(), " symbols; give one with 2 at least"));
  }
  counter.Finish(limit, &dataset.train_text.symbols);
  if (!parts.test.empty()) {
    TERSE_ASSIGN_OR_RETURN(const std::vector<std::string> test, ListDataFiles(parts.test, ".txt"));
    for (const std::string& name : test) {
      TERSE_ASSIGN_OR_RETURN(const FileBytes file, FileBytes::Open(name));
      TERSE_RETURN_IF_ERROR(counter.Number(file, &dataset.test_text.symbols));
    }
  }
  dataset.vocabulary = counter.vocabulary();
  dataset.classes = dataset.vocabulary.size();
  dataset.description = absl::StrCat(dataset.train_count(), level == TextLevel::kChar ? " characters" : " words",
                                     " from ", parts.train, ", ", dataset.classes, " different symbols");
  return dataset;
}

}  // namespace

absl::StatusOr<Dataset> LoadText(const DataSpec& spec, const std::string& data_dir) {
  TERSE_ASSIGN_OR_RETURN(const TextLevel level, ParseLevel(spec.level));
  TERSE_ASSIGN_OR_RETURN(const DataParts parts, FindDataParts(spec, data_dir));
  if (!parts.train.empty()) return Load(parts, level, spec.vocabulary);
  return absl::NotFoundError(
      absl::StrCat(parts.no_train, "; the vocabulary comes from this text, so every member of the fleet needs it"));
}

absl::StatusOr<Dataset> LoadPtb(const DataSpec& spec, const std::string& data_dir) {
  const absl::string_view remedy = "put the Penn Treebank in Mikolov's preparation there";
  DataParts parts;
  TERSE_ASSIGN_OR_RETURN(parts.train, FindDataFile(data_dir, {"ptb"}, "ptb.train.txt", remedy));
  TERSE_ASSIGN_OR_RETURN(parts.test, FindDataFile(data_dir, {"ptb"}, "ptb.test.txt", remedy));
  return Load(parts, TextLevel::kWord, spec.vocabulary);
}

absl::StatusOr<Dataset> LoadShakespeare(const DataSpec& spec, const std::string& data_dir) {
  DataParts parts;
  TERSE_ASSIGN_OR_RETURN(
      parts.train, FindDataFile(data_dir, {"shakespeare"}, "tinyshakespeare.txt", "put the file of char-rnn there"));
  TERSE_ASSIGN_OR_RETURN(Dataset dataset, Load(parts, TextLevel::kChar, spec.vocabulary));
  std::vector<int32_t>& train = dataset.train_text.symbols;
  const auto cut = train.end() - train.size() / kShakespeareTest;
  dataset.test_text.symbols.assign(cut, train.end());
  train.erase(cut, train.end());
  return dataset;
}

}  // namespace terse
