#include "learning/datasets/csv.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/allow_list.h"
#include "core/status.h"
#include "learning/datasets/csv_rows.h"
#include "learning/datasets/example_parts.h"
#include "learning/datasets/file_bytes.h"

namespace terse {
namespace {

constexpr size_t kNamedColumns = 40;  // of a header in a message

enum class Kind { kNumber, kCategory, kSkip, kClass, kValue };

struct SchemaColumn {
  std::string name;  // or a pattern with `*`, until the schema is settled
  Kind kind = Kind::kSkip;
  std::vector<std::string> choices;  // of categories and classes
  bool is_pattern() const { return absl::StrContains(name, "*"); }
  int64_t features() const { return kind == Kind::kNumber ? 1 : kind == Kind::kCategory ? choices.size() : 0; }
};

struct Schema {
  std::vector<SchemaColumn> columns;
  int64_t features = 0;
  int64_t values = 0;
  int64_t classes = 0;
  bool settled = false;  // whether the first header has said which columns the patterns stand for
};

absl::Status BadEntry(absl::string_view entry, absl::string_view reason) {
  return absl::InvalidArgumentError(absl::StrCat("data.columns has '", entry, "': ", reason,
                                                 "; an entry is NAME:number, NAME:category=A|B|C, NAME:skip, "
                                                 "NAME:class=A|B|C or NAME:value, with * in NAME for any characters"));
}

absl::StatusOr<SchemaColumn> ParseColumn(const std::string& entry) {
  SchemaColumn column;
  const std::pair<std::string, std::string> parts = absl::StrSplit(entry, absl::MaxSplits(':', 1));
  column.name = parts.first;
  absl::string_view kind = parts.second;
  if (kind == "number" || kind == "skip" || kind == "value") {
    column.kind = kind == "number" ? Kind::kNumber : kind == "skip" ? Kind::kSkip : Kind::kValue;
    return column;
  }
  if (absl::ConsumePrefix(&kind, "category=")) {
    column.kind = Kind::kCategory;
  } else if (absl::ConsumePrefix(&kind, "class=")) {
    column.kind = Kind::kClass;
  } else {
    return BadEntry(entry, "its kind is not known");
  }
  column.choices = absl::StrSplit(kind, '|');
  std::vector<std::string> sorted = column.choices;
  std::sort(sorted.begin(), sorted.end());
  if (sorted.size() < 2) return BadEntry(entry, "one choice is none");
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) return BadEntry(entry, "a choice stands twice");
  return column;
}

// Counts what the columns make; a pattern as one of its columns.
absl::StatusOr<Schema> MakeSchema(std::vector<SchemaColumn> columns) {
  Schema schema;
  int64_t class_columns = 0;
  for (const SchemaColumn& column : columns) {
    schema.features += column.features();
    schema.values += column.kind == Kind::kValue;
    if (column.kind != Kind::kClass) continue;
    ++class_columns;
    schema.classes = column.choices.size();
  }
  schema.columns = std::move(columns);
  if (schema.features > 0 && class_columns <= 1 && (class_columns == 1) != (schema.values > 0)) return schema;
  return absl::InvalidArgumentError(
      absl::StrCat("data.columns has ", schema.features, " features, ", class_columns, " class columns and ",
                   schema.values, " value columns; it needs a feature, and either one class column or value columns"));
}

absl::StatusOr<Schema> ParseSchema(const std::vector<std::string>& entries) {
  std::vector<SchemaColumn> columns;
  for (const std::string& entry : entries) {
    TERSE_ASSIGN_OR_RETURN(SchemaColumn column, ParseColumn(entry));
    for (const SchemaColumn& other : columns) {
      if (other.name == column.name) return BadEntry(entry, "the column has an entry already");
    }
    columns.push_back(std::move(column));
  }
  return MakeSchema(std::move(columns));
}

// The names in a message, cut short where a header has hundreds.
std::string ListOf(const std::vector<std::string>& names) {
  const size_t shown = std::min(names.size(), kNamedColumns);
  return absl::StrCat(absl::StrJoin(names.begin(), names.begin() + shown, ","),
                      shown < names.size() ? absl::StrCat(" and ", names.size() - shown, " more") : "");
}

// The entry for a column of that name: its own, or the first pattern that fits. The end for none.
std::vector<SchemaColumn>::const_iterator EntryOf(const std::string& name, const std::vector<SchemaColumn>& entries) {
  const auto own = absl::c_find_if(entries, [&](const SchemaColumn& entry) { return entry.name == name; });
  if (own != entries.end()) return own;
  return absl::c_find_if(
      entries, [&](const SchemaColumn& entry) { return entry.is_pattern() && MatchesPattern(entry.name, name); });
}

// Puts the header's columns, in its order, in the place of each pattern.
absl::Status Settle(const FileBytes& file, int64_t line, const std::vector<std::string>& header, Schema* schema) {
  const std::vector<SchemaColumn>& entries = schema->columns;
  std::vector<std::vector<std::string>> names(entries.size());
  absl::flat_hash_set<absl::string_view> seen;
  for (const std::string& name : header) {
    const auto entry = EntryOf(name, entries);
    if (entry != entries.end() && seen.insert(name).second) names[entry - entries.begin()].push_back(name);
  }
  std::vector<SchemaColumn> columns;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (!entries[i].is_pattern()) names[i] = {entries[i].name};
    if (names[i].empty()) {
      return file.MalformedLine(line, absl::StrCat("no column fits '", entries[i].name,
                                                   "' of data.columns; the header is: ", ListOf(header)));
    }
    for (std::string& name : names[i]) columns.push_back({std::move(name), entries[i].kind, entries[i].choices});
  }
  TERSE_ASSIGN_OR_RETURN(*schema, MakeSchema(std::move(columns)));
  schema->settled = true;
  return absl::OkStatus();
}

// The rows of one or several files.
struct Table {
  std::vector<float> features;
  std::vector<float> values;
  std::vector<int64_t> classes;
  int64_t rows = 0;
};

// Returns the place of each of the schema's columns in the file.
absl::StatusOr<std::vector<size_t>> MatchHeader(const FileBytes& file, const Schema& schema, int64_t line,
                                                const std::vector<std::string>& header) {
  std::vector<size_t> places;
  for (const SchemaColumn& column : schema.columns) {
    const auto found = std::find(header.begin(), header.end(), column.name);
    if (found == header.end()) {
      return file.MalformedLine(
          line, absl::StrCat("the header has no column '", column.name, "' of data.columns; it is: ", ListOf(header)));
    }
    places.push_back(found - header.begin());
  }
  if (places.size() == header.size()) return places;
  return file.MalformedLine(line, absl::StrCat("the header has ", header.size(), " columns and data.columns ",
                                               places.size(), "; the header is: ", ListOf(header)));
}

// Appends the cell; returns an empty string when it is right, else what is wrong with it.
std::string AppendCell(const SchemaColumn& column, const std::string& cell, Table* table) {
  if (column.kind == Kind::kSkip) return "";
  if (column.kind == Kind::kNumber || column.kind == Kind::kValue) {
    float number = 0;
    if (!absl::SimpleAtof(cell, &number) || !std::isfinite(number)) {
      return absl::StrCat("'", cell.substr(0, 40), "' in column '", column.name, "' is not a finite number");
    }
    (column.kind == Kind::kNumber ? table->features : table->values).push_back(number);
    return "";
  }
  const auto found = std::find(column.choices.begin(), column.choices.end(), cell);
  if (found == column.choices.end()) {
    return absl::StrCat("'", cell.substr(0, 40), "' in column '", column.name, "' is none of ",
                        absl::StrJoin(column.choices, ", "));
  }
  if (column.kind == Kind::kClass) {
    table->classes.push_back(found - column.choices.begin());
    return "";
  }
  const size_t start = table->features.size();
  table->features.resize(start + column.choices.size(), 0.0f);
  table->features[start + (found - column.choices.begin())] = 1;
  return "";
}

absl::Status AppendFile(const FileBytes& file, Schema* schema, Table* table) {
  CsvRows rows(file);
  std::vector<std::string> cells;
  TERSE_ASSIGN_OR_RETURN(bool more, rows.Next(&cells));
  if (!more) return file.MalformedLine(1, "the file has no header line");
  if (!schema->settled) TERSE_RETURN_IF_ERROR(Settle(file, rows.line(), cells, schema));
  TERSE_ASSIGN_OR_RETURN(const std::vector<size_t> places, MatchHeader(file, *schema, rows.line(), cells));
  while (true) {
    TERSE_ASSIGN_OR_RETURN(more, rows.Next(&cells));
    if (!more) return absl::OkStatus();
    if (cells.size() != places.size()) {
      return file.MalformedLine(rows.line(),
                                absl::StrCat("the row has ", cells.size(), " cells, the header ", places.size()));
    }
    for (size_t i = 0; i < places.size(); ++i) {
      const std::string wrong = AppendCell(schema->columns[i], cells[places[i]], table);
      if (!wrong.empty()) return file.MalformedLine(rows.line(), wrong);
    }
    ++table->rows;
  }
}

absl::StatusOr<Examples> ReadFiles(const std::string& path, Schema* schema) {
  TERSE_ASSIGN_OR_RETURN(const std::vector<std::string> paths, ListDataFiles(path, ".csv"));
  std::vector<DataFile> files;
  Table table;
  for (const std::string& name : paths) {
    TERSE_ASSIGN_OR_RETURN(const FileBytes file, FileBytes::Open(name));
    files.push_back({name, table.rows});
    TERSE_RETURN_IF_ERROR(AppendFile(file, schema, &table));
  }
  Column targets = schema->classes > 0 ? Column::FromInt64s({}, std::move(table.classes))
                                       : Column::FromFloats({schema->values}, std::move(table.values));
  TERSE_ASSIGN_OR_RETURN(
      Examples examples,
      PairExamples(Column::FromFloats({schema->features}, std::move(table.features)), std::move(targets), path));
  examples.files = std::move(files);
  return examples;
}

}  // namespace

absl::StatusOr<Dataset> LoadCsv(const DataSpec& spec, const std::string& data_dir) {
  TERSE_ASSIGN_OR_RETURN(Schema schema, ParseSchema(spec.columns));
  TERSE_ASSIGN_OR_RETURN(const DataParts parts, FindDataParts(spec, data_dir));
  TERSE_ASSIGN_OR_RETURN(Dataset dataset, LoadExampleParts("CSV rows", parts, [&schema](const std::string& path) {
                           return ReadFiles(path, &schema);
                         }));
  dataset.classes = schema.classes;
  return dataset;
}

}  // namespace terse
