#include "tests/e2e/relay_tree.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "compression/codec_table.h"
#include "gtest/gtest.h"
#include "storage/run_store.h"
#include "tests/testing/grid_trainer.h"
#include "tests/testing/tree_books.h"

namespace terse {
namespace {

// Unix sockets, so that a process that comes back is found where it was.
std::string AddressOf(const std::string& state) { return absl::StrCat("unix:", state, ".sock"); }
std::string ClientName(int relay, int client) { return absl::StrCat("client-", relay, "-", client); }
std::string RelayName(int relay) { return absl::StrCat("relay-", relay); }

}  // namespace

RelayTree::RelayTree(const Shape& shape)
    : shape_(shape), relays_(static_cast<size_t>(shape.relays)), clients_(PlaceOf(shape.relays, 0)) {
  // No checkpoint but the first, so that the log keeps every update.
  WriteText(
      directory_ / "run.toml",
      absl::StrCat("name = 'tree'\n[train]\nlocal_steps = 1\noptimizer.learning_rate = 1.0\n[data]\n",
                   // A client that moves finds no shard that is free.
                   shape.moves ? "partition = 'all'" : absl::StrCat("shards = ", shape.relays * shape.clients_each),
                   // Where bundles come, the updates are kept beside the log.
                   "\n[codec]\ndownstream = '", shape.forwards ? "stc" : "forward",
                   "'\nname = 'sbc'\ndensity = 0.05\nmean_precision = 'bf16'\n", "[rounds]\ncount = ", shape.rounds,
                   "\nclients = ", shape.relays, "\nquorum = ", shape.moves ? 1 : shape.relays,
                   "\nevaluate_every = 100000\n[checkpoints]\nevery = 1000000\n"));
}

std::string RelayTree::relay_state(int relay) const { return directory_ / RelayName(relay); }
std::string RelayTree::client_state(int relay, int client) const { return directory_ / ClientName(relay, client); }

std::string RelayTree::AddressesFor(int relay) const {
  std::string addresses = AddressOf(relay_state(relay));
  for (int next = 1; shape_.moves && next < shape_.relays; ++next) {
    absl::StrAppend(&addresses, ",", AddressOf(relay_state((relay + next) % shape_.relays)));
  }
  return addresses;
}

std::unique_ptr<Process> RelayTree::StartServer(const std::string& program, const std::string& state,
                                                std::vector<std::string> extra) {
  std::vector<std::string> argv = {absl::StrCat(TERSE_BIN "/", program), "--state", state, "--listen",
                                   AddressOf(state)};
  argv.insert(argv.end(), extra.begin(), extra.end());
  return std::make_unique<Process>(argv, absl::StrCat(state, "-", starts_++, ".log"));
}

void RelayTree::StartRoot() {
  std::vector<std::string> extra;
  if (!std::filesystem::exists(root_state())) extra = {"--run-file", directory_ / "run.toml"};
  root_ = StartServer("grid-coordinator", root_state(), extra);
}

void RelayTree::StartRelay(int relay) {
  const std::string each = absl::StrCat(shape_.clients_each);
  relays_[static_cast<size_t>(relay)] =
      StartServer("grid-relay", relay_state(relay),
                  {"--upstream", AddressOf(root_state()), "--name", RelayName(relay), "--clients", each, "--quorum",
                   each, "--reconnect-after", "0.05", "--mode", shape_.forwards ? "forward" : "recompress"});
}

void RelayTree::StartClient(int relay, int client) {
  clients_[PlaceOf(relay, client)] = std::make_unique<Process>(
      std::vector<std::string>{"env", absl::StrCat("TERSE_GRID_CLIENT=", PlaceOf(relay, client)),
                               TERSE_BIN "/grid-client", "--coordinator", AddressesFor(relay), "--name",
                               ClientName(relay, client), "--state", client_state(relay, client), "--reconnect-after",
                               "0.05"},
      absl::StrCat(client_state(relay, client), "-", starts_++, ".log"));
}

void RelayTree::Start() {
  StartRoot();
  for (int relay = 0; relay < shape_.relays; ++relay) {
    StartRelay(relay);
    for (int client = 0; client < shape_.clients_each; ++client) StartClient(relay, client);
  }
}

void RelayTree::KillAndRestart(int which, absl::Duration pause) {
  const int relay = which - 1;
  const int client = relay - shape_.relays;
  if (which == 0) {
    root_->Kill();
    absl::SleepFor(pause);
    return StartRoot();
  }
  if (client < 0) {
    relays_[static_cast<size_t>(relay)]->Kill();
    absl::SleepFor(pause);
    return StartRelay(relay);
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
    added = books.AddRelay(RunOf(relay_state(relay)), relay_state(relay) + "/upstream");
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
    resets += QueryNumber(RunOf(relay_state(relay)) + "/run.sqlite", "SELECT sum(resets) FROM clients");
  }
  return resets;
}

}  // namespace terse
