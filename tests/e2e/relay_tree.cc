#include "tests/e2e/relay_tree.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "compression/codec_table.h"
#include "core/file_system.h"
#include "gtest/gtest.h"
#include "storage/postgres_db.h"
#include "storage/postgres_files.h"
#include "storage/postgres_run_store.h"
#include "storage/run_store.h"
#include "tests/e2e/free_address.h"
#include "tests/testing/grid_trainer.h"
#include "tests/testing/paths.h"
#include "tests/testing/tree_books.h"

namespace terse {
namespace {

std::string ClientName(int relay, int client) { return absl::StrCat("client-", relay, "-", client); }
std::string RelayName(int relay) { return absl::StrCat("relay-", relay); }

}  // namespace

RelayTree::RelayTree(const Shape& shape)
    : shape_(shape), host_(OwnHost()), relays_(PlaceOfRelay(shape.relays, 0)), clients_(PlaceOf(shape.relays, 0)) {
  // No checkpoint but the first, so that the log keeps every update.
  WriteText(
      directory_ / "run.toml",
      absl::StrCat("name = 'tree'\n[train]\nlocal_steps = 1\noptimizer.learning_rate = 1.0\n[data]\n",
                   // A client that moves finds no shard that is free.
                   shape.moves ? "partition = 'all'" : absl::StrCat("shards = ", shape.relays * shape.clients_each),
                   // Where bundles come, the updates are kept beside the log.
                   "\n[codec]\ndownstream = '", shape.forwards ? "stc" : "forward",
                   "'\nname = 'sbc'\ndensity = 0.05\nmean_precision = 'bf16'\n[aggregation]\nrule = 'mean'\n",
                   "[rounds]\ncount = ", shape.rounds, "\nclients = ", shape.relays, "\nquorum = ",
                   shape.moves ? 1 : shape.relays, "\nevaluate_every = 100000\n[checkpoints]\nevery = 1000000\n"));
}

std::string RelayTree::relay_state(int relay, int process) const {
  return directory_ / absl::StrCat(RelayName(relay), process == 0 ? "" : "-another");
}
std::string RelayTree::client_state(int relay, int client) const { return directory_ / ClientName(relay, client); }

std::string RelayTree::AddressOf(const std::string& state) const {
  if (!shape_.tcp) return absl::StrCat("unix:", state, ".sock");
  std::string& address = addresses_[state];
  if (address.empty()) address = FreeAddress(host_);
  return address;
}

std::string RelayTree::SeenAt(const std::string& address) const {
  const auto route = routes_.find(address);
  return route == routes_.end() ? address : route->second;
}

std::string RelayTree::AddressesFor(int relay) const {
  std::string addresses = SeenAt(relay_address(relay));
  for (int process = 1; process < processes_each(); ++process) {
    absl::StrAppend(&addresses, ",", SeenAt(relay_address(relay, process)));
  }
  for (int next = 1; shape_.moves && next < shape_.relays; ++next) {
    absl::StrAppend(&addresses, ",", SeenAt(relay_address((relay + next) % shape_.relays)));
  }
  return addresses;
}

std::unique_ptr<Process> RelayTree::StartServer(const std::string& program, const std::string& state,
                                                std::vector<std::string> extra) {
  std::vector<std::string> argv = {Program(program), "--state", state, "--listen", AddressOf(state)};
  argv.insert(argv.end(), extra.begin(), extra.end());
  return std::make_unique<Process>(argv, absl::StrCat(state, "-", starts_++, ".log"));
}

void RelayTree::StartRoot() {
  std::vector<std::string> extra;
  if (!std::filesystem::exists(root_state())) extra = {"--run-file", directory_ / "run.toml"};
  root_ = StartServer("grid-coordinator", root_state(), extra);
}

void RelayTree::StartRelay(int relay, int process) {
  const std::string each = absl::StrCat(shape_.clients_each);
  std::vector<std::string> extra = {
      "--upstream", SeenAt(root_address()), "--name", RelayName(relay), "--clients", each, "--quorum",
      each,         "--reconnect-after",    "0.05"};
  extra.insert(extra.end(), {"--mode", shape_.forwards ? "forward" : "recompress"});
  if (!shape_.store.empty()) extra.insert(extra.end(), {"--store", shape_.store, "--lease", "1"});
  relays_[PlaceOfRelay(relay, process)] = StartServer("grid-relay", relay_state(relay, process), extra);
}

void RelayTree::StartClient(int relay, int client) {
  clients_[PlaceOf(relay, client)] = std::make_unique<Process>(
      std::vector<std::string>{"env", absl::StrCat("TERSE_GRID_CLIENT=", PlaceOf(relay, client)),
                               Program("grid-client"), "--coordinator", AddressesFor(relay), "--name",
                               ClientName(relay, client), "--state", client_state(relay, client), "--reconnect-after",
                               "0.05"},
      absl::StrCat(client_state(relay, client), "-", starts_++, ".log"));
}

void RelayTree::Start() {
  StartRoot();
  for (int relay = 0; relay < shape_.relays; ++relay) {
    for (int process = 0; process < processes_each(); ++process) StartRelay(relay, process);
    for (int client = 0; client < shape_.clients_each; ++client) StartClient(relay, client);
  }
}

void RelayTree::KillAndRestart(int which, absl::Duration pause) {
  const int relay = which - 1;
  const int client = relay - static_cast<int>(relays_.size());
  if (which == 0) {
    root_->Kill();
    absl::SleepFor(pause);
    return StartRoot();
  }
  if (client < 0) {
    relays_[static_cast<size_t>(relay)]->Kill();
    absl::SleepFor(pause);
    return StartRelay(relay / processes_each(), relay % processes_each());
  }
  clients_[static_cast<size_t>(client)]->Kill();
  absl::SleepFor(pause);
  StartClient(client / shape_.clients_each, client % shape_.clients_each);
}

int64_t RelayTree::Version() const {
  const std::string database = RunOf(root_state()) + "/run.sqlite";
  return std::filesystem::exists(database) ? QueryNumber(database, "SELECT version FROM head") : -1;
}

bool RelayTree::WaitForRounds(int64_t rounds, absl::Duration timeout) const {
  return WaitUntil([&] { return Version() >= rounds; }, timeout);
}

int RelayTree::Serving() const {
  const auto db = PostgresDb::Open(shape_.store, "terse", PostgresDb::Mode::kLease);
  if (!db.ok()) return -1;
  Statement row = (*db)->Prepare("SELECT holder FROM lease WHERE expires_us > 0");
  const absl::StatusOr<bool> found = row.Step();
  for (int process = 0; found.ok() && *found && process < processes_each(); ++process) {
    const Process* const one = relays_[PlaceOfRelay(0, process)].get();
    if (absl::EndsWith(row.GetText(0), absl::StrCat("process ", one->pid()))) return process;
  }
  return -1;
}

void RelayTree::Finish(absl::Duration timeout) {
  for (const auto& client : clients_) EXPECT_EQ(client->Wait(timeout), absl::optional<int>(0)) << Outputs();
  for (const auto& relay : relays_) relay->Signal(SIGTERM);
  for (const auto& relay : relays_)
    EXPECT_EQ(relay->Wait(absl::Seconds(30)), absl::optional<int>(0)) << relay->Output();
  root_->Signal(SIGTERM);
  EXPECT_EQ(root_->Wait(absl::Seconds(30)), absl::optional<int>(0)) << root_->Output();
}

std::string RelayTree::Outputs() const {
  std::string all = absl::StrCat("root:\n", root_->Output());
  for (const auto& relay : relays_) absl::StrAppend(&all, "relay:\n", relay->Output());
  for (const auto& client : clients_) absl::StrAppend(&all, "client:\n", client->Output());
  return all;
}

std::string RelayTree::StateOf(int relay) const {
  if (shape_.store.empty()) return relay_state(relay);
  const std::string copy = directory_ / "copy";
  if (std::filesystem::exists(copy)) return copy;
  const auto run =
      PostgresRunStore::Open(shape_.store, "terse_tree", directory_ / "look", PosixFiles(), MessageLimits());
  EXPECT_TRUE(run.ok()) << run.status();
  std::filesystem::create_directories(copy + "/runs");
  EXPECT_EQ((*run)->Backup(RunOf(copy)), absl::OkStatus());
  std::filesystem::create_directories(copy + "/upstream");
  const auto files = PostgresFiles::Open(shape_.store, "terse-relay");
  EXPECT_TRUE(files.ok()) << files.status();
  const std::vector<std::string> names = (*files)->List("upstream").value();
  for (const std::string& name : names) {
    WriteText(FilePath(copy + "/upstream", name), (*files)->Read(FilePath("upstream", name)).value());
  }
  return copy;
}

void RelayTree::ExpectBooksBalance() const {
  const auto codec = MakeCodec({"sbc", 0.05, "bf16"}, GridLayout());
  ASSERT_TRUE(codec.ok()) << codec.status();
  TreeBooks books(**codec, shape_.clients_each, shape_.forwards);
  const std::string run = RunOf(root_state());
  const auto store = RunStore::Open(run);
  ASSERT_TRUE(store.ok()) << store.status();
  absl::Status added = books.AddRoot(store->get(), run);
  ASSERT_TRUE(added.ok()) << added;
  for (int relay = 0; relay < shape_.relays; ++relay) {
    added = books.AddRelay(RunOf(StateOf(relay)), StateOf(relay) + "/upstream");
    ASSERT_TRUE(added.ok()) << added;
  }
  for (int relay = 0; relay < shape_.relays; ++relay) {
    for (int client = 0; client < shape_.clients_each; ++client) {
      added = books.AddClient(client_state(relay, client), static_cast<int64_t>(PlaceOf(relay, client)));
      ASSERT_TRUE(added.ok()) << added;
    }
  }
  const std::vector<double>& difference = books.difference();
  EXPECT_EQ(std::count(difference.begin(), difference.end(), 0.0), static_cast<int64_t>(difference.size()));
  EXPECT_EQ(books.doubled(), 0);
}

int64_t RelayTree::Resets() const {
  int64_t resets = QueryNumber(RunOf(root_state()) + "/run.sqlite", "SELECT sum(resets) FROM clients");
  for (int relay = 0; relay < shape_.relays; ++relay) {
    resets += QueryNumber(RunOf(StateOf(relay)) + "/run.sqlite", "SELECT sum(resets) FROM clients");
  }
  return resets;
}

}  // namespace terse
