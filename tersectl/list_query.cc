#include "tersectl/list_query.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "core/cli/checks.h"
#include "core/closest_word.h"
#include "core/status.h"
#include "tersectl/text_table.h"

namespace terse {
namespace {

std::vector<std::string> NamesOf(const std::vector<ColumnHead>& heads) {
  std::vector<std::string> names;
  for (const ColumnHead& head : heads) names.push_back(head.name);
  return names;
}

absl::StatusOr<size_t> FindColumn(const std::string& name, const std::vector<ColumnHead>& heads) {
  for (size_t i = 0; i < heads.size(); ++i) {
    if (heads[i].name == name) return i;
  }
  const std::vector<std::string> names = NamesOf(heads);
  return absl::InvalidArgumentError(absl::StrCat("there is no column '", name, "'; ", DidYouMean(name, names),
                                                 "the columns are ", absl::StrJoin(names, ", ")));
}

// Whether `text` is `pattern`, in which '*' stands for any text.
bool Matches(absl::string_view pattern, absl::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(pattern, '*');
  if (parts.size() == 1) return pattern == text;
  if (!absl::StartsWith(text, parts.front())) return false;
  text.remove_prefix(parts.front().size());
  for (size_t i = 1; i + 1 < parts.size(); ++i) {
    const size_t found = text.find(parts[i]);
    if (found == absl::string_view::npos) return false;
    text.remove_prefix(found + parts[i].size());
  }
  return absl::EndsWith(text, parts.back());
}

absl::optional<double> TimeOf(const std::string& text) {
  absl::Time time;
  std::string ignored;
  if (absl::ParseTime(absl::RFC3339_full, text, &time, &ignored) ||
      absl::ParseTime("%Y-%m-%d %H:%M:%E*S %Ez", text, &time, &ignored)) {
    return absl::ToDoubleSeconds(time - absl::UnixEpoch());
  }
  for (const char* format : {"%Y-%m-%d %H:%M:%E*S", "%Y-%m-%d %H:%M", "%Y-%m-%d"}) {
    if (absl::ParseTime(format, text, absl::LocalTimeZone(), &time, &ignored)) {
      return absl::ToDoubleSeconds(time - absl::UnixEpoch());
    }
  }
  return absl::nullopt;
}

absl::optional<double> NumberOf(const std::string& text, ColumnKind kind) {
  double number = 0;
  absl::Duration duration;
  std::string bytes = text;
  switch (kind) {
    case ColumnKind::kText:
      return absl::nullopt;
    case ColumnKind::kTime:
      return TimeOf(text);
    case ColumnKind::kBytes:
      if (!AmountOfBytes()(bytes).empty()) return absl::nullopt;
      return absl::SimpleAtod(bytes, &number) ? absl::make_optional(number) : absl::nullopt;
    case ColumnKind::kSeconds:
      if (absl::ParseDuration(text, &duration)) return absl::ToDoubleSeconds(duration);
      break;
    case ColumnKind::kNumber:
      break;
  }
  return absl::SimpleAtod(text, &number) ? absl::make_optional(number) : absl::nullopt;
}

const char* ExampleOf(ColumnKind kind) {
  switch (kind) {
    case ColumnKind::kBytes:
      return "an amount of bytes, as in 5MB";
    case ColumnKind::kSeconds:
      return "seconds or a duration, as in 90 or 1m30s";
    case ColumnKind::kTime:
      return "a time, as in '2026-11-27 03:00'";
    default:
      return "a number";
  }
}

CLI::Validator Checked(std::string description, std::function<absl::Status(const std::string&)> check) {
  return CLI::Validator([check = std::move(check)](std::string& text) { return std::string(check(text).message()); },
                        std::move(description));
}

}  // namespace

ListCell TextCell(std::string text) { return {std::move(text)}; }
ListCell CountCell(uint64_t count) { return {absl::StrCat(count), static_cast<double>(count)}; }
ListCell DecimalCell(double value) { return {DecimalText(value), value}; }
ListCell BytesCell(uint64_t bytes) { return {BytesText(bytes), static_cast<double>(bytes)}; }
ListCell SecondsCell(double seconds) { return {DurationText(seconds), seconds}; }
ListCell TimeCell(int64_t unix_us) {
  return unix_us == 0 ? UnknownCell() : ListCell{TimeText(unix_us), 1e-6 * static_cast<double>(unix_us)};
}
ListCell UnknownCell() { return {}; }

absl::StatusOr<ListCondition> ListCondition::Parse(const std::string& text, const std::vector<ColumnHead>& heads) {
  static constexpr std::pair<const char*, Operator> kOperators[] = {
      {"!=", Operator::kUnequal}, {"<=", Operator::kLessOrEqual}, {">=", Operator::kGreaterOrEqual},
      {"=", Operator::kEqual},    {"<", Operator::kLess},         {">", Operator::kGreater}};
  const size_t at = text.find_first_of("=!<>");
  ListCondition condition;
  const char* sign = nullptr;
  for (const auto& [candidate, meaning] : kOperators) {
    if (sign != nullptr || at == std::string::npos || !absl::StartsWith(text.substr(at), candidate)) continue;
    sign = candidate;
    condition.operator_ = meaning;
  }
  if (sign == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' is no condition; give one as in state=open, with =, !=, <, <=, > or >="));
  }
  TERSE_ASSIGN_OR_RETURN(condition.column_, FindColumn(text.substr(0, at), heads));
  condition.kind_ = heads[condition.column_].kind;
  condition.text_ = text.substr(at + absl::string_view(sign).size());
  condition.number_ = NumberOf(condition.text_, condition.kind_);
  const bool is_order = condition.operator_ != Operator::kEqual && condition.operator_ != Operator::kUnequal;
  if (is_order && condition.kind_ != ColumnKind::kText && !condition.number_.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(heads[condition.column_].name, " cannot be compared with '",
                                                   condition.text_, "'; give ", ExampleOf(condition.kind_)));
  }
  return condition;
}

bool ListCondition::IsEqual(const ListCell& cell) const {
  if (cell.text.empty() || text_.empty()) return cell.text.empty() && text_.empty();
  return Matches(text_, cell.text) || (number_.has_value() && cell.number == number_);
}

bool ListCondition::Holds(const ListCell& cell) const {
  if (operator_ == Operator::kEqual) return IsEqual(cell);
  if (operator_ == Operator::kUnequal) return !IsEqual(cell);
  if (cell.text.empty()) return false;
  const bool is_text = kind_ == ColumnKind::kText;
  if (!is_text && !cell.number.has_value()) return false;
  const bool less = is_text ? cell.text < text_ : *cell.number < *number_;
  const bool greater = is_text ? cell.text > text_ : *cell.number > *number_;
  switch (operator_) {
    case Operator::kLess:
      return less;
    case Operator::kLessOrEqual:
      return !greater;
    case Operator::kGreater:
      return greater;
    default:
      return !less;
  }
}

absl::StatusOr<ListQuery> MakeQuery(const ListOptions& options, const std::vector<ColumnHead>& heads) {
  ListQuery query;
  for (const std::string& name : options.columns) {
    absl::StatusOr<size_t> column = FindColumn(name, heads);
    if (!column.ok()) return Annotate(column.status(), "--columns");
    query.columns.push_back(*column);
  }
  if (!options.sort.empty()) {
    absl::StatusOr<size_t> column = FindColumn(options.sort, heads);
    if (!column.ok()) return Annotate(column.status(), "--sort");
    query.sort = *column;
  }
  for (const std::string& text : options.where) {
    absl::StatusOr<ListCondition> condition = ListCondition::Parse(text, heads);
    if (!condition.ok()) return Annotate(condition.status(), "--where");
    query.conditions.push_back(*std::move(condition));
  }
  return query;
}

void SortPlaces(const std::vector<ListCell>& cells, bool descending, std::vector<size_t>* places) {
  const auto precedes = [&](size_t a, size_t b) {
    const ListCell &left = cells[descending ? b : a], &right = cells[descending ? a : b];
    if (left.number.has_value() && right.number.has_value()) return *left.number < *right.number;
    return left.text < right.text;
  };
  const auto unknown =
      std::stable_partition(places->begin(), places->end(), [&](size_t place) { return !cells[place].text.empty(); });
  std::stable_sort(places->begin(), unknown, precedes);
}

void AddListOptions(CLI::App* command, ListOptions* options, const std::vector<ColumnHead>& heads) {
  CLI::Option* columns = command->add_option("--columns", options->columns, "Only these columns, in this order")
                             ->type_name(kWordsType)
                             ->delimiter(',')
                             ->expected(1)
                             ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_flag("--wide", options->wide, "Every column, and texts on one line")->excludes(columns);
  CLI::Option* sort = command->add_option("--sort", options->sort, "Sort by this column; unknown values come last")
                          ->type_name(kColumnType);
  command->add_flag("--descending", options->descending, "Sort the other way round")->needs(sort);
  CLI::Option* where = command
                           ->add_option("--where", options->where,
                                        "Only rows for which this holds, with =, !=, <, <=, > or >=; '*' stands for "
                                        "any text; repeatable")
                           ->type_name(kConditionType)
                           ->expected(1)
                           ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("--limit", options->limit, "At most so many rows")->check(WholeNumber(1));
  if (heads.empty()) return;
  const std::string names = absl::StrCat("{", absl::StrJoin(NamesOf(heads), ","), "}");
  const auto find = [heads](const std::string& name) { return FindColumn(name, heads).status(); };
  columns->check(Checked(names, find));
  sort->check(Checked("", find));
  where->check(Checked("", [heads](const std::string& text) { return ListCondition::Parse(text, heads).status(); }));
}

}  // namespace terse
