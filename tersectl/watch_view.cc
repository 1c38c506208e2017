#include "tersectl/watch_view.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "core/status.h"
#include "tersectl/full_screen.h"
#include "tersectl/restarts.h"
#include "tersectl/watch.h"
#include "tersectl/watch_screen.h"

namespace terse {
namespace {

constexpr absl::Duration kInterval = absl::Milliseconds(500);  // between two looks at the run
constexpr absl::Duration kTick = absl::Milliseconds(100);      // between two looks at what was seen
constexpr uint32_t kEvents = 100;
// The newest rounds are fetched again: their evaluation comes after their commit.
constexpr uint64_t kRoundsAgain = 16;

// Follows a run on a thread of its own and keeps what it saw last. Thread-safe.
class RunFollower {
 public:
  RunFollower(AdminClient& client, const WatchOptions& options, v1::Status status)
      : client_(client), options_(options) {
    view_.status = std::move(status);
    thread_ = std::thread([this] {
      absl::Status ended = Follow();
      absl::MutexLock lock(&mutex_);
      ended_ = std::move(ended);
      has_ended_ = true;
    });
  }
  // Ends the client's calls, also those to come.
  ~RunFollower() {
    stop_.Notify();
    client_.Cancel();
    thread_.join();
  }

  // Calls `use` with what was seen, and a number that grows with it.
  template <typename Use>
  void Look(Use use) {
    absl::MutexLock lock(&mutex_);
    use(view_, version_);
  }
  // Whether there is nothing more to see; `ended` says why then.
  bool HasEnded(absl::Status* ended) {
    absl::MutexLock lock(&mutex_);
    if (has_ended_) *ended = ended_;
    return has_ended_;
  }

 private:
  absl::Status Follow() {
    const auto remark = [this](absl::string_view line) {
      absl::MutexLock lock(&mutex_);
      view_.trouble = std::string(line);
      ++version_;
    };
    return OutlastRestarts(client_, options_, remark, [this](absl::FunctionRef<void()> heard) -> absl::Status {
      while (!stop_.HasBeenNotified()) {
        const absl::Status fetched = Fetch();
        if (!fetched.ok() && !IsSuspended(client_, fetched)) {
          return stop_.HasBeenNotified() ? absl::OkStatus() : fetched;
        }
        heard();
        if (fetched.ok() && terse::HasEnded(State())) return absl::OkStatus();
        stop_.WaitForNotificationWithTimeout(kInterval);
      }
      return absl::OkStatus();
    });
  }

  // The state is fetched first: of a run that has ended, no round or event is missing then.
  absl::Status Fetch() {
    TERSE_ASSIGN_OR_RETURN(v1::Status status, client_.GetStatus());
    Keep(std::move(status));
    TERSE_ASSIGN_OR_RETURN(std::vector<v1::Round> rounds, client_.ListRounds(FirstToFetch(), 0));
    TERSE_ASSIGN_OR_RETURN(std::vector<v1::Client> clients, client_.ListClients());
    TERSE_ASSIGN_OR_RETURN(const v1::EventsReply events, client_.ListEvents(kEvents));
    absl::MutexLock lock(&mutex_);
    if (!rounds.empty()) {
      const auto is_kept = [&](const v1::Round& round) { return round.id() < rounds.front().id(); };
      view_.rounds.erase(std::find_if_not(view_.rounds.begin(), view_.rounds.end(), is_kept), view_.rounds.end());
      std::move(rounds.begin(), rounds.end(), std::back_inserter(view_.rounds));
    }
    view_.clients = std::move(clients);
    view_.events.assign(events.events().begin(), events.events().end());
    ++version_;
    return absl::OkStatus();
  }

  void Keep(v1::Status status) {
    absl::MutexLock lock(&mutex_);
    if (status.lineage() != view_.status.lineage()) view_.rounds.clear();  // a backup replaced the run
    view_.status = std::move(status);
    view_.trouble.clear();
    ++version_;
  }

  uint64_t FirstToFetch() {
    absl::MutexLock lock(&mutex_);
    return view_.rounds.size() <= kRoundsAgain ? 0 : view_.rounds[view_.rounds.size() - kRoundsAgain].id();
  }

  std::string State() {
    absl::MutexLock lock(&mutex_);
    return view_.status.state();
  }

  AdminClient& client_;
  const WatchOptions& options_;
  absl::Notification stop_;
  absl::Mutex mutex_;
  WatchView view_ ABSL_GUARDED_BY(mutex_);
  uint64_t version_ ABSL_GUARDED_BY(mutex_) = 1;
  bool has_ended_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status ended_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

// Where the user has moved to.
struct Position {
  size_t scroll = 0;
  bool help = false;
  bool quit = false;

  void Follow(const std::vector<Key>& keys) {
    for (const Key key : keys) {
      quit = quit || key == Key::kQuit;
      if (key == Key::kHelp) help = !help;
      if (key == Key::kDown) ++scroll;
      if (key == Key::kUp && scroll > 0) --scroll;
    }
  }
};

// Shows what `follower` sees until the run has ended, the user has enough, or a signal comes.
absl::Status ShowRun(RunFollower& follower, FullScreen& screen, bool color) {
  Position position;
  ScreenSize drawn_size = {0, 0};
  uint64_t drawn_version = 0;
  absl::Time drawn = absl::InfinitePast();
  for (absl::Status ended; !position.quit && screen.ended_by() == 0;) {
    if (follower.HasEnded(&ended)) return ended;
    std::vector<std::string> rows;
    follower.Look([&](WatchView& view, uint64_t version) {
      const ScreenSize size = screen.size();
      const bool is_due = absl::Now() - drawn >= absl::Seconds(1);  // ages grow
      if (version == drawn_version && size == drawn_size && !is_due) return;
      view.now_us = absl::ToUnixMicros(absl::Now());
      view.scroll = position.scroll;
      view.help = position.help;
      WatchScreen shown = DrawWatch(view, size, color);
      position.scroll = shown.scroll;
      rows = std::move(shown.rows);
      drawn_version = version;
      drawn_size = size;
      drawn = absl::Now();
    });
    if (!rows.empty()) TERSE_RETURN_IF_ERROR(screen.Show(rows));
    TERSE_ASSIGN_OR_RETURN(const std::vector<Key> keys, screen.Wait(kTick));
    position.Follow(keys);
    if (!keys.empty()) drawn = absl::InfinitePast();
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::Status> FirstStatus(AdminClient& client, const WatchOptions& options, const Terminal& terminal) {
  v1::Status status;
  TERSE_RETURN_IF_ERROR(
      OutlastRestarts(client, options, RemarksOf(terminal), [&](absl::FunctionRef<void()>) -> absl::Status {
        TERSE_ASSIGN_OR_RETURN(status, client.GetStatus());
        return absl::OkStatus();
      }));
  return status;
}

}  // namespace

absl::Status WatchOnScreen(AdminClient& client, const WatchOptions& options, const Terminal& terminal) {
  TERSE_ASSIGN_OR_RETURN(v1::Status first, FirstStatus(client, options, terminal));
  TERSE_ASSIGN_OR_RETURN(std::unique_ptr<FullScreen> screen, FullScreen::Enter(STDIN_FILENO, STDOUT_FILENO));
  RunFollower follower(client, options, std::move(first));
  const absl::Status shown = ShowRun(follower, *screen, terminal.color);
  const int signal = screen->ended_by();
  screen.reset();
  if (signal != 0) {
    raise(signal);  // so that the caller sees how it ended
    return absl::CancelledError(absl::StrCat("ended by signal ", signal));
  }
  TERSE_RETURN_IF_ERROR(shown);
  follower.Look([&](const WatchView& view, uint64_t) {
    if (HasEnded(view.status.state())) *terminal.out << EndedText(view.status, ProgressOf(view.status, view.rounds));
  });
  return absl::OkStatus();
}

}  // namespace terse
