#include "core/fault.h"

#ifdef TERSE_FAULTS

#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace terse {
namespace {

enum class Action { kNone, kKill, kError, kSleep };

struct Arming {
  Action action = Action::kNone;
  int64_t at = 1;  // the first pass at which it acts
  int64_t sleep_ms = 0;
};

using Plan = std::array<Arming, std::size(kFailpoints)>;

[[noreturn]] void Refuse(absl::string_view what) {
  const std::string line = absl::StrCat(what, "\n");
  std::fputs(line.c_str(), stderr);
  std::_Exit(2);
}

Arming ParseAction(absl::string_view text) {
  Arming arming;
  const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(text, absl::MaxSplits('@', 1));
  absl::string_view action = parts.first;
  if (!parts.second.empty() && (!absl::SimpleAtoi(parts.second, &arming.at) || arming.at < 1)) {
    Refuse(absl::StrCat("TERSE_FAILPOINTS: '", parts.second, "' is no number of passes; use 1 or more"));
  }
  if (action == "kill") {
    arming.action = Action::kKill;
  } else if (action == "error") {
    arming.action = Action::kError;
  } else if (absl::ConsumePrefix(&action, "sleep:") && absl::SimpleAtoi(action, &arming.sleep_ms)) {
    arming.action = Action::kSleep;
  } else {
    Refuse(absl::StrCat("TERSE_FAILPOINTS: '", text, "' is no action; use kill, error or sleep:MS"));
  }
  return arming;
}

Plan ParsePlan() {
  Plan plan;
  const char* text = std::getenv("TERSE_FAILPOINTS");
  if (text == nullptr) return plan;
  for (absl::string_view entry : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(entry, absl::MaxSplits('=', 1));
    const int index = FailpointIndex(parts.first);
    if (index < 0) Refuse(absl::StrCat("TERSE_FAILPOINTS: there is no failpoint '", parts.first, "'"));
    plan[index] = ParseAction(parts.second);
  }
  return plan;
}

Mutant ParseMutant() {
  const char* text = std::getenv("TERSE_MUTANT");
  if (text == nullptr) return Mutant::kNone;
  for (size_t i = 0; i < std::size(kMutantNames); ++i) {
    if (kMutantNames[i] == text) return static_cast<Mutant>(i);
  }
  Refuse(absl::StrCat("TERSE_MUTANT: there is no mutant '", text, "'"));
}

thread_local FailpointHook* thread_hook = nullptr;
std::array<std::atomic<int64_t>, std::size(kFailpoints)> passes{};

std::atomic<Mutant>& CurrentMutant() {
  static std::atomic<Mutant> mutant{ParseMutant()};
  return mutant;
}

}  // namespace

void SetThreadFailpointHook(FailpointHook* hook) { thread_hook = hook; }

int64_t FailpointHits(int index) { return passes[index].load(std::memory_order_relaxed); }

void SetMutant(Mutant mutant) { CurrentMutant().store(mutant); }

bool Mutated(Mutant mutant) { return CurrentMutant().load(std::memory_order_relaxed) == mutant; }

absl::Status MeetFailpoint(int index) {
  static const Plan plan = ParsePlan();
  const int64_t pass = passes[index].fetch_add(1, std::memory_order_relaxed) + 1;
  if (thread_hook != nullptr) return thread_hook->OnFailpoint(kFailpoints[index]);
  const Arming& arming = plan[index];
  switch (arming.action) {
    case Action::kNone:
      return absl::OkStatus();
    case Action::kKill:
      if (pass == arming.at) kill(getpid(), SIGKILL);
      return absl::OkStatus();
    case Action::kError:
      if (pass != arming.at) return absl::OkStatus();
      return absl::UnavailableError(absl::StrCat("failpoint ", kFailpoints[index]));
    case Action::kSleep:
      if (pass >= arming.at) absl::SleepFor(absl::Milliseconds(arming.sleep_ms));
      return absl::OkStatus();
  }
  return absl::OkStatus();
}

}  // namespace terse

#endif  // TERSE_FAULTS
