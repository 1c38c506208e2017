// The cells of a CSV file (RFC 4180), line by line.
#ifndef TERSE_LEARNING_DATASETS_CSV_ROWS_H_
#define TERSE_LEARNING_DATASETS_CSV_ROWS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "learning/datasets/file_bytes.h"

namespace terse {

// Not thread-safe. Keep the FileBytes alive.
class CsvRows {
 public:
  explicit CsvRows(const FileBytes& file);

  // The next row's cells, without their quotes; false at the end of the file. Lines without a character are passed
  // over. INVALID_ARGUMENT for a quote that does not end or stands inside a cell.
  absl::StatusOr<bool> Next(std::vector<std::string>* cells);
  // The line on which the row that Next returned begins, counted from 1.
  int64_t line() const { return row_line_; }

 private:
  // Reads one cell and what ends it; *last when that is the end of the line or of the file.
  absl::Status NextCell(std::string* cell, bool* last);
  absl::Status QuotedCell(std::string* cell);

  const FileBytes& file_;
  absl::string_view left_;
  int64_t line_ = 1;
  int64_t row_line_ = 0;
};

}  // namespace terse

#endif  // TERSE_LEARNING_DATASETS_CSV_ROWS_H_
