#include "tests/simulation/totals.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace terse {
namespace {

struct Figure {
  absl::string_view name;
  int64_t Totals::*member;
};

constexpr Figure kFigures[] = {
    {"schedules", &Totals::schedules},
    {"rounds_committed", &Totals::rounds_committed},
    {"rounds_aborted", &Totals::rounds_aborted},
    {"updates_applied", &Totals::updates_applied},
    {"updates_not_applied", &Totals::updates_not_applied},
    {"updates_packed", &Totals::updates_packed},
    {"resets", &Totals::resets},
    {"coordinator_kills", &Totals::coordinator_kills},
    {"client_kills", &Totals::client_kills},
    {"power_losses", &Totals::power_losses},
    {"disk_faults", &Totals::disk_faults},
    {"orderly_stops", &Totals::orderly_stops},
    {"cuts", &Totals::cuts},
    {"partitions", &Totals::partitions},
    {"duplicates", &Totals::duplicates},
    {"clock_jumps", &Totals::clock_jumps},
    {"rollbacks", &Totals::rollbacks},
    {"operator_acts", &Totals::operator_acts},
    {"lost", &Totals::lost},
    {"doubled", &Totals::doubled},
};

std::string Field(absl::string_view name, int64_t value) { return absl::StrCat("\"", name, "\": ", value); }

}  // namespace

void Totals::Add(const Totals& other) {
  for (const Figure& figure : kFigures) this->*figure.member += other.*figure.member;
  for (size_t i = 0; i < failpoints.size(); ++i) failpoints[i] += other.failpoints[i];
}

std::vector<std::pair<absl::string_view, int64_t>> FiguresOf(const Totals& totals) {
  std::vector<std::pair<absl::string_view, int64_t>> figures;
  for (const Figure& figure : kFigures) figures.emplace_back(figure.name, totals.*figure.member);
  return figures;
}

std::string ToJson(const Totals& totals) {
  std::vector<std::string> fields;
  for (const auto& [name, value] : FiguresOf(totals)) fields.push_back(Field(name, value));
  std::vector<std::string> failpoints;
  for (size_t i = 0; i < totals.failpoints.size(); ++i) {
    failpoints.push_back(Field(kFailpoints[i], totals.failpoints[i]));
  }
  fields.push_back(absl::StrCat("\"failpoints\": {", absl::StrJoin(failpoints, ", "), "}"));
  return absl::StrCat("{", absl::StrJoin(fields, ", "), "}");
}

}  // namespace terse
