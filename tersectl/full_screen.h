// The whole of a terminal, for as long as it is held.
#ifndef TERSE_TERSECTL_FULL_SCREEN_H_
#define TERSE_TERSECTL_FULL_SCREEN_H_

#include <signal.h>
#include <termios.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "tersectl/screen_row.h"

namespace terse {

enum class Key { kQuit, kUp, kDown, kHelp };

// Returns the keys that `bytes` from a terminal stand for, in their order; other keys are left out.
std::vector<Key> KeysOf(absl::string_view bytes);

// Shows the alternate screen without a cursor, and takes keys as they come. The destructor brings back what was there:
// screen, cursor, modes and signal handlers. SIGINT, SIGTERM, SIGQUIT and SIGHUP do not end the process meanwhile, but
// are told by `ended_by`; one that was ignored before stays so. Not thread-safe, and one at a time in a process,
// because signal handlers know no object.
class FullScreen {
 public:
  // `keyboard` and `screen` are descriptors of a terminal and outlive the object. FAILED_PRECONDITION when `keyboard`
  // is none; UNAVAILABLE when `screen` takes nothing.
  static absl::StatusOr<std::unique_ptr<FullScreen>> Enter(int keyboard, int screen);
  ~FullScreen();

  // As of now; 80 by 24 when the terminal does not say.
  ScreenSize size() const;
  // UNAVAILABLE when the terminal is gone.
  absl::Status Show(const std::vector<std::string>& rows);
  // Waits for keys, `most` at most, and less when a signal comes or the terminal's size changes. UNAVAILABLE when the
  // terminal is gone.
  absl::StatusOr<std::vector<Key>> Wait(absl::Duration most);
  // The signal that was to end the process, or 0.
  int ended_by() const;

 private:
  static constexpr std::array<int, 5> kSignals = {SIGINT, SIGTERM, SIGQUIT, SIGHUP, SIGWINCH};

  FullScreen(int keyboard, int screen, const termios& before) : keyboard_(keyboard), screen_(screen), before_(before) {}
  absl::Status Write(absl::string_view bytes);
  void TakeSignals();

  const int keyboard_, screen_;
  const termios before_;
  std::array<struct sigaction, kSignals.size()> handlers_before_;
};

}  // namespace terse

#endif  // TERSE_TERSECTL_FULL_SCREEN_H_
