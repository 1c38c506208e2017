#include "tersectl/full_screen.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace terse {
namespace {

constexpr char kEnter[] = "\033[?1049h\033[?25l";
constexpr char kLeave[] = "\033[0m\033[?25h\033[?1049l";

std::atomic<int> signal_to_end{0};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler stores it");

// A change of the size only interrupts the wait.
void OnSignal(int signal) {
  if (signal != SIGWINCH) signal_to_end = signal;
}

// Takes the sequence that begins behind an ESC off `rest`, and returns its last byte when it is a key's, otherwise 0.
char TakeSequence(absl::string_view* rest) {
  if (rest->empty() || (rest->front() != '[' && rest->front() != 'O')) return 0;
  size_t end = 1;
  while (end < rest->size() && ((*rest)[end] < 0x40 || (*rest)[end] > 0x7e)) ++end;
  const char last = end == 1 && rest->size() > 1 ? (*rest)[end] : 0;  // with parameters it is another key
  rest->remove_prefix(std::min(end + 1, rest->size()));
  return last;
}

}  // namespace

std::vector<Key> KeysOf(absl::string_view bytes) {
  std::vector<Key> keys;
  while (!bytes.empty()) {
    const char byte = bytes.front();
    bytes.remove_prefix(1);
    const char sequence = byte == '\033' ? TakeSequence(&bytes) : 0;
    if (byte == 'q' || byte == 'Q') keys.push_back(Key::kQuit);
    if (byte == '?' || byte == 'h') keys.push_back(Key::kHelp);
    if (byte == 'k' || sequence == 'A') keys.push_back(Key::kUp);
    if (byte == 'j' || sequence == 'B') keys.push_back(Key::kDown);
  }
  return keys;
}

absl::StatusOr<std::unique_ptr<FullScreen>> FullScreen::Enter(int keyboard, int screen) {
  termios before;
  if (tcgetattr(keyboard, &before) != 0) {
    return absl::FailedPreconditionError("the input is no terminal; use --lines");
  }
  std::unique_ptr<FullScreen> entered(new FullScreen(keyboard, screen, before));
  entered->TakeSignals();
  termios raw = before;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  raw.c_cc[VMIN] = 1;
  raw.c_cc[VTIME] = 0;
  raw.c_cc[VSUSP] = _POSIX_VDISABLE;  // a stopped process would leave the terminal as it is now
  tcsetattr(keyboard, TCSADRAIN, &raw);
  TERSE_RETURN_IF_ERROR(entered->Write(kEnter));
  return entered;
}

void FullScreen::TakeSignals() {
  signal_to_end = 0;
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  for (size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], &action, &handlers_before_[i]);
    if (handlers_before_[i].sa_handler == SIG_IGN) sigaction(kSignals[i], &handlers_before_[i], nullptr);
  }
}

FullScreen::~FullScreen() {
  Write(kLeave).IgnoreError();
  // Drops keys that nobody has read: they were not meant for the shell.
  tcsetattr(keyboard_, TCSAFLUSH, &before_);
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &handlers_before_[i], nullptr);
}

ScreenSize FullScreen::size() const {
  winsize window = {};
  if (ioctl(screen_, TIOCGWINSZ, &window) != 0 || window.ws_col == 0 || window.ws_row == 0) return {};
  return {window.ws_col, window.ws_row};
}

absl::Status FullScreen::Show(const std::vector<std::string>& rows) {
  std::string bytes;
  for (size_t i = 0; i < rows.size(); ++i) {
    // Erased first: behind a full row the cursor still stands on its last character.
    absl::StrAppend(&bytes, "\033[", i + 1, ";1H\033[2K", rows[i]);
  }
  return Write(bytes);
}

absl::Status FullScreen::Write(absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(screen_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return absl::UnavailableError("the terminal is gone");
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Key>> FullScreen::Wait(absl::Duration most) {
  pollfd input = {keyboard_, POLLIN, 0};
  if (poll(&input, 1, static_cast<int>(absl::ToInt64Milliseconds(most))) <= 0) return std::vector<Key>();
  char bytes[256];
  const ssize_t count = read(keyboard_, bytes, sizeof(bytes));
  if (count < 0 && errno == EINTR) return std::vector<Key>();
  if (count <= 0) return absl::UnavailableError("the terminal is gone");
  return KeysOf(absl::string_view(bytes, static_cast<size_t>(count)));
}

int FullScreen::ended_by() const { return signal_to_end; }

}  // namespace terse
