#include "tersectl/watch.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/log/plain_text.h"
#include "tersectl/report.h"
#include "tersectl/text_table.h"

namespace terse {
namespace {

constexpr size_t kRecentRounds = 16;
constexpr char kRow[] = "%13s  %8s  %10s  %8s  %8s  %11s  %9s  %8s  %8s\n";

}  // namespace

bool IsSettled(const v1::Round& round) { return round.state() == "committed" || round.state() == "aborted"; }

WatchLines::WatchLines(const v1::Status& status)
    : by_iterations_(status.config().limits().iterations() > 0),
      total_(by_iterations_ ? static_cast<uint64_t>(status.config().limits().iterations()) : status.rounds_total()),
      local_steps_(static_cast<uint64_t>(status.config().train().local_steps())) {}

void WatchLines::Add(const v1::Round& round) {
  if (round.state() != "committed") return;
  const uint64_t steps = round.has_local_steps() ? round.local_steps() : local_steps_;
  const uint64_t done = by_iterations_ ? steps : 1;
  ++committed_;
  done_ += done;
  recent_.push_back({round.opened_us(), round.committed_us(), done});
  if (recent_.size() > kRecentRounds) recent_.pop_front();
}

std::string WatchLines::Header() const {
  return absl::StrFormat(kRow, by_iterations_ ? "iteration" : "round", "accuracy", "train loss", "up", "down",
                         "compression", "both ways", "time", "left");
}

double WatchLines::SecondsLeft() const {
  if (recent_.empty()) return -1;
  const uint64_t left = total_ > done_ ? total_ - done_ : 0;
  const double span = static_cast<double>(recent_.back().committed_us - recent_.front().opened_us) / 1e6;
  uint64_t done = 0;
  for (const Span& recent : recent_) done += recent.done;
  return span / static_cast<double>(done) * static_cast<double>(left);
}

std::string WatchLines::Progress() const {
  if (by_iterations_) return absl::StrCat(committed_, " rounds, ", done_, " of ", total_, " iterations");
  return absl::StrCat(committed_, " of ", total_, " rounds");
}

double WatchLines::ShareDone() const {
  return done_ >= total_ ? 1 : static_cast<double>(done_) / static_cast<double>(total_);
}

std::string WatchLines::Line(const v1::Round& round) const {
  const std::string position = absl::StrCat(done_, "/", total_);
  if (round.state() != "committed") {
    return absl::StrFormat("%13s  round %d %s\n", position, round.id(), PlainText(round.state()));
  }
  const double seconds = static_cast<double>(round.committed_us() - round.opened_us()) / 1e6;
  return absl::StrFormat(kRow, position, round.has_accuracy() ? DecimalText(round.accuracy()) : "",
                         round.has_train_loss() ? DecimalText(round.train_loss()) : "",
                         BytesText(round.wire_bytes_up()), BytesText(round.wire_bytes_down()), CompressionUpText(round),
                         CompressionBothText(round), DurationText(seconds),
                         done_ < total_ ? DurationText(SecondsLeft()) : "-");
}

WatchLines ProgressOf(const v1::Status& status, const std::vector<v1::Round>& rounds) {
  WatchLines lines(status);
  for (const v1::Round& round : rounds) {
    if (IsSettled(round)) lines.Add(round);
  }
  return lines;
}

std::string EndedText(const v1::Status& status, const WatchLines& lines) {
  return absl::StrCat("run ", PlainText(status.run()), " ended after ", lines.Progress(), "\n");
}

}  // namespace terse
