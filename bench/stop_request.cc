#include "bench/stop_request.h"

#include <csignal>
#include <initializer_list>

namespace terse {

std::atomic<bool>& StopRequested() {
  static std::atomic<bool> requested{false};
  return requested;
}

void StopOnSignals() {
  StopRequested();  // a signal handler must not be the first to ask for it
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, [](int) { StopRequested().store(true); });
}

}  // namespace terse
