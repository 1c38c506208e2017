#include "learning/datasets/csv_rows.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "core/status.h"

namespace terse {

CsvRows::CsvRows(const FileBytes& file) : file_(file), left_(file.text()) {}

absl::StatusOr<bool> CsvRows::Next(std::vector<std::string>* cells) {
  while (absl::ConsumePrefix(&left_, "\n") || absl::ConsumePrefix(&left_, "\r\n")) ++line_;
  cells->clear();
  if (left_.empty()) return false;
  row_line_ = line_;
  for (bool last = false; !last;) TERSE_RETURN_IF_ERROR(NextCell(&cells->emplace_back(), &last));
  return true;
}

absl::Status CsvRows::NextCell(std::string* cell, bool* last) {
  if (absl::ConsumePrefix(&left_, "\"")) {
    TERSE_RETURN_IF_ERROR(QuotedCell(cell));
  } else {
    const absl::string_view text = left_.substr(0, left_.find_first_of(",\n"));
    left_.remove_prefix(text.size());
    *cell = std::string(absl::StartsWith(left_, ",") ? text : absl::StripSuffix(text, "\r"));
    if (cell->find('"') != std::string::npos) {
      return file_.MalformedLine(line_, "a quote stands inside a cell; put the whole cell in quotes and double those");
    }
  }
  absl::ConsumePrefix(&left_, "\r");
  if (absl::ConsumePrefix(&left_, ",")) return absl::OkStatus();
  *last = true;
  if (left_.empty()) return absl::OkStatus();
  if (!absl::ConsumePrefix(&left_, "\n")) return file_.MalformedLine(line_, "text follows a cell's closing quote");
  ++line_;
  return absl::OkStatus();
}

absl::Status CsvRows::QuotedCell(std::string* cell) {
  const int64_t opened = line_;
  while (true) {
    const size_t quote = left_.find('"');
    if (quote == absl::string_view::npos) return file_.MalformedLine(opened, "a quote that opens here does not end");
    cell->append(left_.data(), quote);
    line_ += std::count(left_.begin(), left_.begin() + quote, '\n');
    left_.remove_prefix(quote + 1);
    if (!absl::ConsumePrefix(&left_, "\"")) return absl::OkStatus();
    *cell += '"';
  }
}

}  // namespace terse
