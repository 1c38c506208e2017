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

// The texts of the files at both paths; `test_path` may be empty.
absl::StatusOr<Dataset> Load(const std::string& train_path, const std::string& test_path, TextLevel level,
                             int64_t limit) {
  if (limit < 0 || limit > kMostSymbols) {
    return absl::InvalidArgumentError(absl::StrCat("data.vocabulary is ", limit, "; use 0 to ", kMostSymbols));
  }
  Dataset dataset;
  dataset.task = Task::kText;
  SymbolCounter counter(level);
  TERSE_ASSIGN_OR_RETURN(const std::vector<std::string> train, ListDataFiles(train_path, ".txt"));
  for (const std::string& name : train) {
    TERSE_ASSIGN_OR_RETURN(const FileBytes file, FileBytes::Open(name));
    if (train.size() > 1) dataset.file_starts.push_back(dataset.train_text.count());
    TERSE_RETURN_IF_ERROR(counter.Add(file, &dataset.train_text.symbols));
  }
  if (dataset.train_count() < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat(train_path, ": the text has ", dataset.train_count(), " symbols; give one with 2 at least"));
  }
  counter.Finish(limit, &dataset.train_text.symbols);
  if (!test_path.empty()) {
    TERSE_ASSIGN_OR_RETURN(const std::vector<std::string> test, ListDataFiles(test_path, ".txt"));
    for (const std::string& name : test) {
      TERSE_ASSIGN_OR_RETURN(const FileBytes file, FileBytes::Open(name));
      TERSE_RETURN_IF_ERROR(counter.Number(file, &dataset.test_text.symbols));
    }
  }
  dataset.vocabulary = counter.vocabulary();
  dataset.classes = dataset.vocabulary.size();
  dataset.description = absl::StrCat(dataset.train_count(), level == TextLevel::kChar ? " characters" : " words",
                                     " from ", train_path, ", ", dataset.classes, " different symbols");
  return dataset;
}

}  // namespace

absl::StatusOr<Dataset> LoadText(const DataSpec& spec, const std::string& data_dir) {
  TERSE_ASSIGN_OR_RETURN(const TextLevel level, ParseLevel(spec.level));
  TERSE_ASSIGN_OR_RETURN(const DataParts parts, FindDataParts(spec, data_dir));
  if (!parts.train.empty()) return Load(parts.train, parts.test, level, spec.vocabulary);
  return absl::NotFoundError(absl::StrCat("data.train '", spec.train, "' is not in ", data_dir,
                                          "; the vocabulary comes from it, so every member of the fleet needs it"));
}

absl::StatusOr<Dataset> LoadPtb(const DataSpec& spec, const std::string& data_dir) {
  const absl::string_view remedy = "put the Penn Treebank in Mikolov's preparation there";
  TERSE_ASSIGN_OR_RETURN(const std::string train, FindDataFile(data_dir, {"ptb"}, "ptb.train.txt", remedy));
  TERSE_ASSIGN_OR_RETURN(const std::string test, FindDataFile(data_dir, {"ptb"}, "ptb.test.txt", remedy));
  return Load(train, test, TextLevel::kWord, spec.vocabulary);
}

absl::StatusOr<Dataset> LoadShakespeare(const DataSpec& spec, const std::string& data_dir) {
  TERSE_ASSIGN_OR_RETURN(const std::string path, FindDataFile(data_dir, {"shakespeare"}, "tinyshakespeare.txt",
                                                              "put the file of char-rnn there"));
  TERSE_ASSIGN_OR_RETURN(Dataset dataset, Load(path, "", TextLevel::kChar, spec.vocabulary));
  std::vector<int32_t>& train = dataset.train_text.symbols;
  const auto cut = train.end() - train.size() / kShakespeareTest;
  dataset.test_text.symbols.assign(cut, train.end());
  train.erase(cut, train.end());
  return dataset;
}

}  // namespace terse
