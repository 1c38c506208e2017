#include "learning/datasets/libsvm.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "learning/datasets/example_parts.h"
#include "learning/datasets/file_bytes.h"

namespace terse {
namespace {

constexpr int64_t kMostFeatures = int64_t{1} << 24;
constexpr int64_t kMostExpansion = 1024;

// The rows of one or several files, as sparse as they came.
struct Rows {
  std::vector<int64_t> labels;
  std::vector<int64_t> starts;     // of each row in `features` and `values`
  std::vector<uint32_t> features;  // from 0
  std::vector<float> values;
  int64_t width = 0;   // one more than the largest feature
  bool signs = false;  // whether a label is -1
};

absl::string_view NextWord(absl::string_view* line) {
  *line = absl::StripLeadingAsciiWhitespace(*line);
  const absl::string_view word = line->substr(0, line->find_first_of(" \t"));
  line->remove_prefix(word.size());
  return word;
}

// Reads "FEATURE:VALUE" behind the features before it; empty when it is right, else what is wrong with it.
std::string AppendFeature(absl::string_view word, int64_t row_start, Rows* rows) {
  const size_t colon = word.find(':');
  int64_t feature = 0;
  float value = 0;
  if (colon == absl::string_view::npos || !absl::SimpleAtoi(word.substr(0, colon), &feature) ||
      !absl::SimpleAtof(word.substr(colon + 1), &value) || !std::isfinite(value)) {
    return absl::StrCat("'", word.substr(0, 40), "' is not FEATURE:VALUE with a whole and a finite number");
  }
  const bool first = static_cast<int64_t>(rows->features.size()) == row_start;
  if (feature < 1 || feature > kMostFeatures || (!first && feature <= int64_t{rows->features.back()} + 1)) {
    return absl::StrCat("feature ", feature, " is not in 1..", kMostFeatures, " or does not follow the one before it");
  }
  rows->features.push_back(feature - 1);
  rows->values.push_back(value);
  rows->width = std::max(rows->width, feature);
  return "";
}

// Does as AppendFeature does, for a whole line, which is not empty.
std::string AppendRow(absl::string_view line, Rows* rows) {
  const absl::string_view word = NextWord(&line);
  double label = 0;
  if (!absl::SimpleAtod(word, &label) || label < -1 || label > 1e9 || label != std::floor(label)) {
    return absl::StrCat("label '", word.substr(0, 40), "' is not -1 or a class number");
  }
  rows->signs |= label < 0;
  rows->labels.push_back(static_cast<int64_t>(label));
  rows->starts.push_back(rows->features.size());
  for (absl::string_view next = NextWord(&line); !next.empty(); next = NextWord(&line)) {
    std::string wrong = AppendFeature(next, rows->starts.back(), rows);
    if (!wrong.empty()) return wrong;
  }
  return "";
}

absl::Status AppendFile(const FileBytes& file, Rows* rows) {
  absl::string_view left = file.text();
  for (int64_t number = 1; !left.empty(); ++number) {
    absl::string_view line = left.substr(0, left.find('\n'));
    left.remove_prefix(std::min(left.size(), line.size() + 1));
    line = absl::StripAsciiWhitespace(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    const std::string wrong = AppendRow(line, rows);
    if (!wrong.empty()) return file.MalformedLine(number, wrong);
  }
  return absl::OkStatus();
}

// Dense rows of `width` floats.
absl::StatusOr<Examples> Spread(const Rows& rows, int64_t width, int64_t file_bytes, const std::string& path) {
  const int64_t count = rows.labels.size();
  const int64_t most = std::min(kMaxDataBytes, file_bytes * kMostExpansion) / static_cast<int64_t>(sizeof(float));
  if (rows.width > width || width > most / std::max<int64_t>(count, 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", count, " rows with features up to ", rows.width, " do not fit into rows of ", width,
                     " numbers or those not into memory (", most, " numbers); correct data.features or the file"));
  }
  std::vector<float> dense(count * width);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t end = i + 1 < count ? rows.starts[i + 1] : rows.features.size();
    for (int64_t k = rows.starts[i]; k < end; ++k) dense[i * width + rows.features[k]] = rows.values[k];
  }
  std::vector<int64_t> labels = rows.labels;
  for (int64_t& label : labels) {
    if (rows.signs && label != -1 && label != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": label ", label, " stands beside -1; use -1 and 1, or numbers from 0"));
    }
    label = std::max<int64_t>(label, 0);
  }
  return PairExamples(Column::FromFloats({width}, std::move(dense)), Column::FromInt64s({}, std::move(labels)), path);
}

// Reads the files; a *width of 0 becomes the largest feature.
absl::StatusOr<Examples> ReadFiles(const std::string& path, int64_t* width) {
  TERSE_ASSIGN_OR_RETURN(const std::vector<std::string> paths, ListDataFiles(path, ".libsvm"));
  std::vector<DataFile> files;
  Rows rows;
  int64_t bytes = 0;
  for (const std::string& name : paths) {
    TERSE_ASSIGN_OR_RETURN(const FileBytes file, FileBytes::Open(name));
    files.push_back({name, static_cast<int64_t>(rows.labels.size())});
    TERSE_RETURN_IF_ERROR(AppendFile(file, &rows));
    bytes += file.size();
  }
  if (*width == 0) *width = rows.width;
  TERSE_ASSIGN_OR_RETURN(Examples examples, Spread(rows, *width, bytes, path));
  examples.files = std::move(files);
  return examples;
}

absl::StatusOr<Dataset> Load(const std::string& format, const DataParts& parts, int64_t width) {
  return LoadExampleParts(format, parts, [&width](const std::string& path) { return ReadFiles(path, &width); });
}

}  // namespace

absl::StatusOr<Dataset> LoadLibsvm(const DataSpec& spec, const std::string& data_dir) {
  TERSE_ASSIGN_OR_RETURN(const DataParts parts, FindDataParts(spec, data_dir));
  if (spec.features >= 0 && spec.features <= kMostFeatures) return Load("LIBSVM rows", parts, spec.features);
  return absl::InvalidArgumentError(absl::StrCat("data.features is ", spec.features, "; use 0 to ", kMostFeatures));
}

absl::StatusOr<Dataset> LoadA9a(const DataSpec& spec, const std::string& data_dir) {
  const absl::string_view remedy = "put LIBSVM's files a9a and a9a.t there";
  DataParts parts;
  TERSE_ASSIGN_OR_RETURN(parts.train, FindDataFile(data_dir, {"a9a"}, "a9a", remedy));
  TERSE_ASSIGN_OR_RETURN(parts.test, FindDataFile(data_dir, {"a9a"}, "a9a.t", remedy));
  TERSE_ASSIGN_OR_RETURN(Dataset dataset, Load("a9a", parts, 123));
  dataset.classes = 2;
  return dataset;
}

}  // namespace terse
