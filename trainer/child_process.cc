#include "trainer/child_process.h"

#include <sys/wait.h>

#include <csignal>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace terse {

ChildProcess::~ChildProcess() { End(absl::ZeroDuration()); }

void ChildProcess::Kill() { kill(leads_group_ ? -pid_ : pid_, SIGKILL); }

int ChildProcess::End(absl::Duration lingers) {
  if (status_.has_value()) return *status_;
  int status = 0;
  const absl::Time until = absl::Now() + lingers;
  while (waitpid(pid_, &status, WNOHANG) == 0) {
    if (absl::Now() >= until) Kill();
    absl::SleepFor(absl::Milliseconds(5));
  }
  // Those that it has started may have outlived it.
  if (leads_group_) Kill();
  status_ = status;
  return status;
}

std::string HowItEnded(int status) {
  return WIFSIGNALED(status) ? absl::StrCat("was ended by signal ", WTERMSIG(status))
                             : absl::StrCat("exited with code ", WEXITSTATUS(status));
}

}  // namespace terse
