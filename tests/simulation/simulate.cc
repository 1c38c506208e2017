// terse-schedules: runs schedules of the fleet simulation (schedule.h) and says what happened in them. Exit code 0:
// every invariant held. 1: one did not; the last line is the command that repeats the schedule. 2: wrong arguments.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/simulation/search.h"

namespace terse {
namespace {

// One line that overwrites itself, on a terminal only.
class Progress {
 public:
  Progress(int64_t schedules, double minutes)
      : schedules_(schedules), minutes_(minutes), shown_(isatty(STDERR_FILENO) != 0) {}
  ~Progress() {
    if (shown_) std::cerr << "\r" << std::string(kWidth, ' ') << "\r";
  }

  void Show(const Totals& totals) {
    const absl::Time now = absl::Now();
    if (!shown_ || now - last_ < absl::Milliseconds(200)) return;
    last_ = now;
    const double minutes = absl::ToDoubleMinutes(now - start_);
    const double rate = static_cast<double>(totals.schedules) / std::max(minutes, 1e-6);
    double left = static_cast<double>(schedules_ - totals.schedules) / std::max(rate, 1e-6);
    if (minutes_ > 0) left = std::min(left, minutes_ - minutes);
    std::cerr << absl::StrFormat("\r%-*s", kWidth,
                                 absl::StrFormat("%d schedules, %.0f a minute, %d updates applied, %.1f minutes left",
                                                 totals.schedules, rate, totals.updates_applied, std::max(left, 0.0)));
  }

 private:
  static constexpr int kWidth = 90;
  const int64_t schedules_;
  const double minutes_;
  const bool shown_;
  const absl::Time start_ = absl::Now();
  absl::Time last_ = start_;
};

void PrintTable(const Totals& totals, absl::Duration took) {
  for (const auto& [name, value] : FiguresOf(totals)) std::cout << absl::StrFormat("%-42s %12d\n", name, value);
  const double minutes = std::max(absl::ToDoubleMinutes(took), 1e-9);
  std::cout << absl::StrFormat("%-42s %12.0f\n\n", "schedules a minute",
                               static_cast<double>(totals.schedules) / minutes);
  std::cout << absl::StrFormat("%-42s %12s\n", "failpoint", "met");
  for (size_t i = 0; i < totals.failpoints.size(); ++i) {
    std::cout << absl::StrFormat("%-42s %12d\n", kFailpoints[i], totals.failpoints[i]);
  }
}

int Main(int argc, char** argv) {
  SearchOptions options;
  std::string mutant = "none";
  bool json = false;
  CLI::App app("Runs schedules of faults on a simulated fleet and checks that no update is lost or counted twice.");
  app.add_option("--schedules", options.schedules, "How many")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--first-seed", options.first_seed, "Seed of the first; the next has the next one")
      ->capture_default_str();
  app.add_option("--mutant", mutant, "An error of the protocol to switch on")
      ->check(CLI::IsMember(std::vector<std::string>(std::begin(kMutantNames), std::end(kMutantNames))))
      ->capture_default_str();
  app.add_option("--minutes", options.minutes, "Stops when they are over; 0: never")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--threads", options.threads, "Schedules at a time")->check(CLI::Range(1, 256))->capture_default_str();
  app.add_flag("--trace", options.print, "Prints everything that happens");
  app.add_flag("--json", json, "Prints the totals as one line of JSON");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const auto name = std::find(std::begin(kMutantNames), std::end(kMutantNames), mutant);
  options.mutant = static_cast<Mutant>(std::distance(std::begin(kMutantNames), name));

  const absl::Time start = absl::Now();
  SearchResult result;
  {
    Progress progress(options.schedules, options.minutes);
    options.on_progress = [&progress](const Totals& totals) { progress.Show(totals); };
    result = Search(options);
  }
  if (json) {
    std::cout << ToJson(result.totals) << "\n";
  } else {
    PrintTable(result.totals, absl::Now() - start);
  }
  if (!result.seed.has_value()) return 0;
  std::cout << "\nseed " << *result.seed << ": " << result.violation.what << "\n"
            << CommandFor(*result.seed, options.mutant) << "\n";
  return 1;
}

}  // namespace
}  // namespace terse

int main(int argc, char** argv) { return terse::Main(argc, argv); }
