#include "tests/attack/attacked_fleet.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/testing/grid_trainer.h"
#include "tests/testing/paths.h"

namespace terse {
namespace {

// Sets what the grid processes read, for the wide model. Tests of memory are made with that one, and AddressSanitizer
// would hold 256 MB of what was freed.
std::vector<std::string> Launcher(bool wide) {
  if (!wide) return {};
  const char* const options = std::getenv("ASAN_OPTIONS");
  return {"/usr/bin/env", "TERSE_WIDE_GRID=1",
          absl::StrCat("ASAN_OPTIONS=", options == nullptr ? "" : options, ":quarantine_size_mb=16")};
}

}  // namespace

AttackedFleet::AttackedFleet(bool wide)
    : layout_(wide ? WideGridLayout() : GridLayout()),
      launcher_(Launcher(wide)),
      processes_(Program("grid-coordinator"), Program("grid-client")) {}

AttackedFleet::AttackedFleet(std::string coordinator, std::string client, const Layout& layout)
    : layout_(layout), processes_(std::move(coordinator), std::move(client)) {}

void AttackedFleet::Serve(const std::string& run_toml, const std::vector<std::string>& extra) {
  Place place{launcher_, "", {"--tls", authority_.coordinator_tls()}};
  place.extra.insert(place.extra.end(), extra.begin(), extra.end());
  std::string run_file;
  if (!run_toml.empty()) {
    run_file = processes_.directory() / "run.toml";
    WriteText(run_file, run_toml);
  }
  processes_.StartCoordinator(run_file, place);
}

void AttackedFleet::StartHonest(int count, int first) {
  for (int i = first; i < first + count; ++i) {
    processes_.StartClient(i, {launcher_, "", {"--tls", TlsFolder(Role::kClient, absl::StrCat("client-", i))}});
  }
}

std::unique_ptr<HostileClient> AttackedFleet::Hostile(const std::string& name) {
  return std::make_unique<HostileClient>(address(), authority_.Transport(TlsFolder(Role::kClient, name)), name,
                                         layout_);
}

std::string AttackedFleet::TlsFolder(Role role, const std::string& name) {
  const std::string who = absl::StrCat(RoleName(role), " ", name);
  const auto found = std::find_if(folders_.begin(), folders_.end(), [&](const auto& one) { return one.first == who; });
  if (found != folders_.end()) return found->second;
  folders_.emplace_back(who, authority_.Issue(role, name));
  return folders_.back().second;
}

int64_t AttackedFleet::CommittedRounds() const {
  return Query("SELECT count(*) FROM rounds WHERE state = 'committed'");
}

bool AttackedFleet::WaitForMoreRounds(int64_t count, absl::Duration timeout) {
  return processes_.WaitForRounds(CommittedRounds() + count, timeout);
}

int64_t AttackedFleet::CountEvents(const std::string& kind, const std::string& client) const {
  const std::string whose =
      client.empty() ? "" : absl::StrCat(" AND client = (SELECT id FROM clients WHERE name = '", client, "')");
  return Query(absl::StrCat("SELECT count(*) FROM events WHERE kind = '", kind, "'", whose));
}

std::string AttackedFleet::Ctl(std::vector<std::string> arguments, int* exit_code) {
  arguments.insert(arguments.begin(), {"--tls", TlsFolder(Role::kOperator, "anna")});
  return processes_.Ctl(std::move(arguments), exit_code);
}

int64_t AttackedFleet::ResidentBytes() {
  std::ifstream file(absl::StrCat("/proc/", processes_.coordinator().pid(), "/statm"));
  int64_t size = 0, resident = 0;
  file >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

absl::Duration AttackedFleet::ProcessorTime() {
  std::ifstream file(absl::StrCat("/proc/", processes_.coordinator().pid(), "/stat"));
  std::stringstream text;
  text << file.rdbuf();
  // Behind the program's name, which may hold anything: state and ten numbers, then the ticks in user and kernel mode.
  std::istringstream rest(text.str().substr(text.str().rfind(')') + 1));
  std::string skipped;
  for (int i = 0; i < 11; ++i) rest >> skipped;
  int64_t user = 0, kernel = 0;
  rest >> user >> kernel;
  return absl::Seconds(static_cast<double>(user + kernel) / static_cast<double>(sysconf(_SC_CLK_TCK)));
}

}  // namespace terse
