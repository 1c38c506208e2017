#include "tests/faults/fleet.h"

#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/status.h"
#include "storage/state_directory.h"

namespace terse {
namespace {

constexpr absl::Duration kStopTimeout = absl::Seconds(30);
constexpr size_t kLastLines = 4;
// Local training takes this long, so that an idle fleet does not take the processors from the others.
constexpr int kTrainMs = 4;
// Clients come back at once, and not after half a second: the campaign kills, and does not wait.
constexpr char kReconnectAfterSeconds[] = "0.02";

// The time by which processes stamp their rows.
int64_t Micros(absl::Time time) { return absl::ToUnixMicros(time); }

}  // namespace

std::string UniqueAddress(int slot) {
  return absl::StrCat("127.", 64 + (getpid() >> 8) % 128, ".", getpid() & 255, ".", 1 + slot);
}

FaultyFleet::FaultyFleet(Options options, FleetSettings settings)
    : options_(std::move(options)),
      settings_(std::move(settings)),
      run_file_(options_.directory + "/run.toml"),
      processes_(members()),
      armed_(members(), nullptr),
      started_(members()) {
  WriteText(run_file_, settings_.run_file);
}

std::string FaultyFleet::NameOf(int member) { return member == 0 ? "coordinator" : absl::StrCat("client-", member); }

std::string FaultyFleet::StateOf(int member) const { return absl::StrCat(options_.directory, "/", NameOf(member)); }

std::string FaultyFleet::RunState() const { return RunDirectory(StateOf(0), kCampaignRun); }

std::string FaultyFleet::Database() const { return RunState() + "/run.sqlite"; }

std::string FaultyFleet::LogOf(int member) const { return absl::StrCat(StateOf(member), ".log"); }

std::vector<std::string> FaultyFleet::CommandLine(int member) const {
  const std::string listen = options_.address + ":7700";
  if (member == 0) {
    return {options_.coordinator,
            "--run-file",
            run_file_,
            "--state",
            StateOf(0),
            "--listen",
            listen,
            "--admin",
            options_.address + ":7701",
            "--ready-file",
            absl::StrCat(options_.directory, "/ready-", starts_)};
  }
  return {options_.client,     "--coordinator",       listen, "--name", NameOf(member), "--state", StateOf(member),
          "--reconnect-after", kReconnectAfterSeconds};
}

void FaultyFleet::Start(int member, const FailpointPlan* armed, int pass) {
  if (member == 0) ++starts_;
  std::string failpoints = absl::StrCat("TERSE_FAILPOINTS=client.train.done=sleep:", kTrainMs);
  if (armed != nullptr) absl::StrAppend(&failpoints, ",", armed->name, "=kill@", pass);
  std::vector<std::string> argv = {"env", std::move(failpoints)};
  if (!options_.mutant.empty()) argv.push_back(absl::StrCat("TERSE_MUTANT=", options_.mutant));
  if (settings_.trait == FleetTrait::kChunks) argv.push_back("TERSE_WIDE_GRID=1");
  for (std::string& word : CommandLine(member)) argv.push_back(std::move(word));
  started_[member] = absl::Now();
  processes_[member] = std::make_unique<Process>(std::move(argv), LogOf(member), /*own_group=*/true);
  armed_[member] = armed;
}

void FaultyFleet::Signal(int member, int signal) {
  if (alive(member)) processes_[member]->Signal(signal);
}

absl::Status FaultyFleet::Kill(int member) {
  if (!alive(member)) return absl::OkStatus();
  processes_[member]->Kill();
  return Bury(member, *processes_[member]->Wait(absl::ZeroDuration()), kRandomly);
}

absl::Status FaultyFleet::Poll() {
  for (int member = 0; member < members(); ++member) {
    if (!alive(member)) continue;
    const absl::optional<int> code = processes_[member]->Wait(absl::ZeroDuration());
    if (code.has_value()) TERSE_RETURN_IF_ERROR(Bury(member, *code, armed(member) ? armed_[member]->name : ""));
  }
  return absl::OkStatus();
}

absl::Status FaultyFleet::Bury(int member, int code, absl::string_view where) {
  if (code != -SIGKILL || where.empty()) {
    return absl::InternalError(
        absl::StrCat(NameOf(member), " ended by itself with code ", code, "; its log ends:\n", LastLines(member)));
  }
  ++kills_[SideOf(member)][std::string(where)];
  ++total_kills_;
  processes_[member].reset();
  armed_[member] = nullptr;
  return absl::OkStatus();
}

absl::Status FaultyFleet::StopInOrder() {
  std::vector<int> order;
  for (int member = 1; member < members(); ++member) order.push_back(member);
  order.push_back(0);
  for (const int member : order) Signal(member, member == 0 ? 0 : SIGTERM);
  for (const int member : order) {
    if (!alive(member)) continue;
    if (member == 0) Signal(0, SIGTERM);
    const absl::optional<int> code = processes_[member]->Wait(kStopTimeout);
    if (code == 0) {
      processes_[member].reset();
      continue;
    }
    return absl::InternalError(absl::StrCat(NameOf(member), " was asked to stop and ",
                                            code.has_value() ? absl::StrCat("ended with code ", *code) : "did not end",
                                            "; its log ends:\n", LastLines(member)));
  }
  return absl::OkStatus();
}

std::string FaultyFleet::LastLines(int member) const {
  const std::string output = processes_[member]->Output();
  std::vector<absl::string_view> lines = absl::StrSplit(output, '\n', absl::SkipEmpty());
  if (lines.size() > kLastLines) lines.erase(lines.begin(), lines.end() - kLastLines);
  return absl::StrJoin(lines, "\n");
}

bool FaultyFleet::Ready() const {
  return alive(0) && std::filesystem::exists(absl::StrCat(options_.directory, "/ready-", starts_));
}

int64_t FaultyFleet::Version() const { return QueryNumber(Database(), "SELECT version FROM head"); }

absl::optional<absl::Duration> FaultyFleet::Recovered(int member) const {
  if (!Ready()) return absl::nullopt;
  const int64_t start = Micros(started_[member]);
  // Only the newest rows: the tables have no index by time.
  const std::string rounds = absl::StrCat("FROM rounds r WHERE state = 'committed' AND settled_us > ", start,
                                          " AND id > (SELECT max(id) FROM rounds) - 200");
  const std::string joined =
      absl::StrCat("(SELECT min(time_us) FROM events e WHERE kind = 'client_joined' AND e.client = c.id AND time_us > ",
                   start, " AND id > (SELECT max(id) FROM events) - 200)");
  const std::string sql =
      member == 0
          ? absl::StrCat("SELECT min(settled_us) ", rounds)
          : absl::StrCat("SELECT min(settled_us) FROM (SELECT id, settled_us ", rounds,
                         ") s JOIN updates u ON u.round = s.id JOIN clients c ON c.id = u.client WHERE c.name = '",
                         NameOf(member), "' AND settled_us > ", joined);
  const int64_t settled = QueryNumber(Database(), sql);
  if (settled <= 0) return absl::nullopt;
  return absl::Microseconds(settled - start);
}

}  // namespace terse
