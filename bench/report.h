// The results of a benchmark, as tables for people and JSON for programs.
#ifndef TERSE_BENCH_REPORT_H_
#define TERSE_BENCH_REPORT_H_

#include <ostream>
#include <string>
#include <vector>

namespace terse {

// The target of a figure; kNone when nothing is asked of it.
struct Target {
  enum Kind { kNone, kAtMost, kAtLeast };
  Kind kind = kNone;
  double value = 0;
};

inline Target AtMost(double value) { return {Target::kAtMost, value}; }
inline Target AtLeast(double value) { return {Target::kAtLeast, value}; }

struct Metric {
  std::string name;     // "rice_encode_mpos_s"
  std::string setting;  // what it was measured on: "p=0.01 n=25600000 avx2"
  double value = 0;
  Target target;
  // The title of a table: the figure is its cell in the column `name` of the row `setting`. Empty: the figure has a
  // line of its own.
  std::string table;

  bool met() const;
};

struct Report {
  std::string subject;  // what was measured, where a line can say it
  std::string cpu;      // of the machine, where it matters
  std::string simd;     // the target in use
  std::vector<Metric> metrics;

  // Whether all figures are what they should be.
  bool met() const;
  // Prints the tables as Markdown.
  void PrintTables(std::ostream* out) const;
  void PrintJson(std::ostream* out) const;
};

}  // namespace terse

#endif  // TERSE_BENCH_REPORT_H_
