#include "core/cli/progress_line.h"

#include <unistd.h>

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace terse {
namespace {

constexpr double kSilence = 2;
constexpr double kBetweenUpdates = 0.5;  // of a terminal's line
constexpr double kBetweenLines = 10;     // of a log
constexpr char kClear[] = "\r\033[K";

double WallSeconds() { return absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch()); }

}  // namespace

ProgressLine::ProgressLine(double total)
    : total_(total), start_(WallSeconds()), terminal_(isatty(STDERR_FILENO) == 1) {}

ProgressLine::~ProgressLine() {
  if (terminal_ && shown_ > 0) std::fputs(kClear, stderr);
}

void ProgressLine::Begin(const std::string& what) {
  what_ = what;
  Show();
}

void ProgressLine::Advance(double work) {
  done_ += work;
  Show();
}

void ProgressLine::Advance(double work, const std::string& what) {
  what_ = what;
  Advance(work);
}

void ProgressLine::Skip(double work) {
  skipped_ += work;
  Show();
}

void ProgressLine::Show() {
  const double now = WallSeconds();
  if (now - start_ < kSilence || now - shown_ < (terminal_ ? kBetweenUpdates : kBetweenLines)) return;
  shown_ = now;
  const double left = total_ - skipped_ - done_;
  std::string line = absl::StrFormat("%3.0f%%", 100 * (1 - left / total_));
  if (done_ > 0) absl::StrAppendFormat(&line, ", %.0f s left", (now - start_) * left / done_);
  absl::StrAppend(&line, ": ", what_);
  std::fputs(absl::StrCat(terminal_ ? kClear : "", line, terminal_ ? "" : "\n").c_str(), stderr);
}

}  // namespace terse
