// CSV (RFC 4180) with a header line and a schema: what each column is for.
#ifndef TERSE_LEARNING_DATASETS_CSV_H_
#define TERSE_LEARNING_DATASETS_CSV_H_

#include <string>

#include "absl/status/statusor.h"
#include "core/run_config.h"
#include "learning/datasets/dataset.h"

namespace terse {

// Data set "csv": data.train and data.test each name a file, plain or with .gz, or a folder of files that end with
// .csv. data.columns has one entry "NAME:KIND" for every column of the header, in any order. `*` in NAME stands for any
// characters, so that one entry is for many columns; a column's own name counts before patterns, and the first pattern
// that fits before later ones:
//
//   number           a feature
//   category=A|B|C   as many features as there are categories, 1 for the cell's own and 0 for the others
//   skip             nothing
//   class=A|B|C      the target: A is class 0, B class 1, and so on; one column at most
//   value            a float target; several such columns make targets of that many values
//
// Features and values stand in the order of data.columns, whatever the order in a file; the columns of one pattern
// stand there in the order of the file. Every other file needs the same columns in that order, or the data would be
// mixed up. Cells are separated by commas, lines end with LF or CRLF, a cell in double quotes may hold commas, line
// ends and doubled quotes.
//
// INVALID_ARGUMENT, with the entry, for a schema that is not of this form, has no feature or has not either one class
// or values; with file, line, reason and remedy when the header and the schema do not name the same columns, a pattern
// fits none of them, a line has
// more or fewer cells, a number is not finite, a cell is none of the categories or classes, or a quote does not end.
// Also returns what FindDataParts returns.
absl::StatusOr<Dataset> LoadCsv(const DataSpec& spec, const std::string& data_dir);

}  // namespace terse

#endif  // TERSE_LEARNING_DATASETS_CSV_H_
