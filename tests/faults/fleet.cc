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
// Clients and relays come back at once, and not after half a second: the campaign kills, and does not wait.
constexpr char kReconnectAfterSeconds[] = "0.02";
// The coordinator's; each process that serves has two.
constexpr int kFirstPort = 7700;

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
      started_(members()),
      starts_(members()) {
  WriteText(run_file_, settings_.run_file);
}

std::vector<int> FaultyFleet::MembersOf(Side side) const {
  std::vector<int> of_side;
  for (int member = 0; member < members(); ++member) {
    if (SideOf(member) == side) of_side.push_back(member);
  }
  return of_side;
}

std::string FaultyFleet::NameOf(int member) const {
  if (member == 0) return "coordinator";
  return member < first_client() ? absl::StrCat("relay-", member) : absl::StrCat("client-", 1 + GridClientOf(member));
}

int FaultyFleet::ServerOf(int member) const {
  const bool below_relay = settings_.relays > 0 && SideOf(member) == Side::kClient;
  return below_relay ? 1 + static_cast<int>(GridClientOf(member)) / settings_.clients_each() : 0;
}

std::string FaultyFleet::StateOf(int member) const { return absl::StrCat(options_.directory, "/", NameOf(member)); }

std::string FaultyFleet::ClientStateOf(int member) const {
  return absl::StrCat(StateOf(member), SideOf(member) == Side::kRelay ? "/upstream" : "");
}

std::string FaultyFleet::RunOf(int member) const { return RunDirectory(StateOf(member), kCampaignRun); }

std::string FaultyFleet::DatabaseOf(int member) const { return RunOf(member) + "/run.sqlite"; }

std::string FaultyFleet::LogOf(int member) const { return absl::StrCat(StateOf(member), ".log"); }

std::string FaultyFleet::ReadyFile(int member) const {
  return absl::StrCat(options_.directory, "/ready-", NameOf(member), "-", starts_[member]);
}

std::string FaultyFleet::AddressOf(int server) const {
  return absl::StrCat(options_.address, ":", kFirstPort + 2 * server);
}

std::vector<int> FaultyFleet::ServersOf(int member) const {
  std::vector<int> servers = {ServerOf(member)};
  if (!settings_.moves() || SideOf(member) != Side::kClient) return servers;
  for (int next = 1; next < settings_.relays; ++next) {
    servers.push_back(1 + (servers[0] - 1 + next) % settings_.relays);
  }
  return servers;
}

std::string FaultyFleet::AddressesFor(int member) const {
  return absl::StrJoin(ServersOf(member), ",",
                       [this](std::string* out, int server) { absl::StrAppend(out, AddressOf(server)); });
}

std::vector<std::string> FaultyFleet::CommandLine(int member) const {
  const Side side = SideOf(member);
  std::vector<std::string> argv = {absl::StrCat(options_.bin, "/grid-", SideName(side)), "--state", StateOf(member)};
  if (side == Side::kCoordinator) {
    argv.insert(argv.end(), {"--run-file", run_file_, "--admin", absl::StrCat(options_.address, ":", kFirstPort + 1)});
  } else {
    argv.insert(argv.end(), {side == Side::kRelay ? "--upstream" : "--coordinator", AddressesFor(member), "--name",
                             NameOf(member), "--reconnect-after", kReconnectAfterSeconds});
  }
  if (side == Side::kRelay) {
    const std::string each = absl::StrCat(settings_.clients_each());
    argv.insert(argv.end(), {"--clients", each, "--quorum", each});
    argv.insert(argv.end(), {"--mode", settings_.relays_forward ? "forward" : "recompress"});
  }
  if (side != Side::kClient) {
    argv.insert(argv.end(), {"--listen", AddressOf(member), "--ready-file", ReadyFile(member)});
  }
  return argv;
}

void FaultyFleet::Start(int member, const FailpointPlan* armed, int pass) {
  ++starts_[member];
  std::string failpoints = absl::StrCat("TERSE_FAILPOINTS=client.train.done=sleep:", kTrainMs);
  if (armed != nullptr) absl::StrAppend(&failpoints, ",", armed->name, "=kill@", pass);
  std::vector<std::string> argv = {"env", std::move(failpoints)};
  if (!options_.mutant.empty()) argv.push_back(absl::StrCat("TERSE_MUTANT=", options_.mutant));
  if (settings_.trait == FleetTrait::kChunks) argv.push_back("TERSE_WIDE_GRID=1");
  if (settings_.relays > 0 && SideOf(member) == Side::kClient) {
    argv.push_back(absl::StrCat("TERSE_GRID_CLIENT=", GridClientOf(member)));
  }
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

absl::Status FaultyFleet::AwaitEnd(int member) {
  if (!alive(member)) return absl::OkStatus();
  const absl::optional<int> code = processes_[member]->Wait(kStopTimeout);
  if (code == 0) {
    processes_[member].reset();
    return absl::OkStatus();
  }
  return absl::InternalError(absl::StrCat(NameOf(member), " was asked to stop and ",
                                          code.has_value() ? absl::StrCat("ended with code ", *code) : "did not end",
                                          "; its log ends:\n", LastLines(member)));
}

absl::Status FaultyFleet::StopInOrder() {
  for (const Side side : {Side::kClient, Side::kRelay, Side::kCoordinator}) {
    for (const int member : MembersOf(side)) Signal(member, SIGTERM);
    for (const int member : MembersOf(side)) TERSE_RETURN_IF_ERROR(AwaitEnd(member));
  }
  return absl::OkStatus();
}

std::string FaultyFleet::LastLines(int member) const {
  const std::string output = processes_[member]->Output();
  std::vector<absl::string_view> lines = absl::StrSplit(output, '\n', absl::SkipEmpty());
  if (lines.size() > kLastLines) lines.erase(lines.begin(), lines.end() - kLastLines);
  return absl::StrJoin(lines, "\n");
}

bool FaultyFleet::Ready(int member) const { return alive(member) && std::filesystem::exists(ReadyFile(member)); }

bool FaultyFleet::IsAtHome(int client) const {
  const int home = ServerOf(client);
  const std::string sql =
      absl::StrCat("SELECT e.kind = 'client_joined' FROM events e JOIN clients c ON c.id = e.client WHERE c.name = '",
                   NameOf(client), "' AND e.kind IN ('client_joined', 'client_left') AND e.time_us > ",
                   Micros(started_[home]), " ORDER BY e.id DESC LIMIT 1");
  return Ready(home) && QueryNumber(DatabaseOf(home), sql) == 1;
}

int64_t FaultyFleet::Version() const { return QueryNumber(DatabaseOf(0), "SELECT version FROM head"); }

absl::optional<absl::Duration> FaultyFleet::Recovered(int member) const {
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
  for (const int server : ServersOf(member)) {
    if (!Ready(server)) continue;
    const int64_t settled = QueryNumber(DatabaseOf(server), sql);
    if (settled > 0) return absl::Microseconds(settled - start);
  }
  return absl::nullopt;
}

}  // namespace terse
