#include "tests/network/network_fleet.h"

#include <csignal>
#include <cstdio>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "compression/codec_table.h"
#include "gtest/gtest.h"
#include "storage/client_state.h"
#include "storage/run_store.h"
#include "tests/testing/conservation.h"
#include "tests/testing/grid_trainer.h"
#include "tests/testing/paths.h"

namespace terse {
namespace {

constexpr size_t kLogTail = 2000;

std::string ClientName(int index) { return absl::StrCat("client-", index); }

// No checkpoint but the first, so that the log keeps every update; and nobody is set aside for what the network does.
std::string RunFile(const FleetShape& shape) {
  return absl::StrCat("name = 'network'\n[train]\nlocal_steps = 1\noptimizer.learning_rate = 1.0\n[codec]\nname = '",
                      shape.codec.name, "'\ndensity = ", shape.codec.density, "\nmean_precision = '",
                      shape.codec.mean_precision,
                      "'\ndownstream = 'forward'\n[rounds]\ncount = 1000000\nclients = ", shape.clients,
                      "\nquorum = ", shape.quorum > 0 ? shape.quorum : shape.clients,
                      "\ndeadline_seconds = ", shape.deadline_seconds, "\ngrace_seconds = ", shape.grace_seconds,
                      "\nevaluate_every = 1000000\n[clients]\nset_aside_after = 0\n[ledger]\nkeep_rounds = "
                      "0\n[checkpoints]\nevery = 1000000\n");
}

std::vector<std::string> Keepalive(const FleetShape& shape) {
  if (shape.keepalive_seconds == 0) return {};
  return {"--keepalive", absl::StrCat(shape.keepalive_seconds)};
}

std::string Tail(const std::string& text) {
  return text.size() > kLogTail ? text.substr(text.size() - kLogTail) : text;
}

void ExpectGoodEnd(Process* process) {
  EXPECT_EQ(process->Wait(kPatience), absl::optional<int>(0)) << Tail(process->Output());
}

}  // namespace

NetworkFleet::NetworkFleet(const FleetShape& shape, TcpProxy::Plan plan, const Place& place, bool record)
    : shape_(shape),
      begin_(absl::Now()),
      processes_(Program("grid-coordinator"), Program("grid-client"), Keepalive(shape)) {
  const std::string run_file = processes_.directory() / "run.toml";
  WriteText(run_file, RunFile(shape));
  processes_.StartCoordinator(run_file, OnGrid(place));
  if (place.address.empty()) {
    proxy_ = std::make_unique<TcpProxy>(processes_.addresses().listen, std::move(plan), record);
  }
}

const Layout& NetworkFleet::layout() const { return shape_.wide ? WideGridLayout() : GridLayout(); }

Place NetworkFleet::OnGrid(Place place) const {
  if (shape_.wide) place.launcher.insert(place.launcher.begin(), {"env", "TERSE_WIDE_GRID=1"});
  return place;
}

void NetworkFleet::StartClient(int index, Place place) {
  if (place.address.empty()) place.address = proxy_->address();
  place.extra.insert(place.extra.end(), {"--reconnect-after", absl::StrCat(shape_.reconnect_after)});
  processes_.StartClient(index, OnGrid(std::move(place)));
}

void NetworkFleet::StartClients() {
  for (int i = 0; i < shape_.clients; ++i) StartClient(i);
}

void NetworkFleet::StopClient(int index) {
  processes_.client(index).Signal(SIGTERM);
  ExpectGoodEnd(&processes_.client(index));
}

int64_t NetworkFleet::Rounds() const {
  return QueryNumber(processes_.database(), "SELECT count(*) FROM rounds WHERE state = 'committed'");
}

bool NetworkFleet::Commits(int64_t more) const { return processes_.WaitForRounds(Rounds() + more, kPatience); }

int NetworkFleet::ClientsThatSaid(const std::string& text) {
  int count = 0;
  for (int i = 0; i < shape_.clients; ++i) count += absl::StrContains(processes_.client(i).Output(), text);
  return count;
}

std::string NetworkFleet::Logs() {
  std::string logs = absl::StrCat("coordinator:\n", Tail(processes_.coordinator().Output()));
  for (int i = 0; i < shape_.clients; ++i) {
    absl::StrAppend(&logs, ClientName(i), ":\n", Tail(processes_.client(i).Output()));
  }
  return logs;
}

void NetworkFleet::Stop() {
  for (int i = 0; i < shape_.clients; ++i) processes_.client(i).Signal(SIGTERM);
  for (int i = 0; i < shape_.clients; ++i) ExpectGoodEnd(&processes_.client(i));
  processes_.coordinator().Signal(SIGTERM);
  EXPECT_EQ(processes_.coordinator().Wait(kPatience), absl::optional<int>(0)) << Logs();
}

void NetworkFleet::CheckBooks() {
  const auto codec = MakeCodec(shape_.codec, layout());
  ASSERT_TRUE(codec.ok()) << codec.status();
  const auto store = RunStore::Open(processes_.run_state());
  ASSERT_TRUE(store.ok()) << store.status();
  const absl::Status replayed = CheckReplay(store->get(), RunConfig(), **codec, GridInitialWeights(layout()));
  EXPECT_TRUE(replayed.ok()) << replayed;
  const auto clients = (*store)->Clients();
  ASSERT_TRUE(clients.ok()) << clients.status();
  ASSERT_EQ(clients->size(), shape_.clients);
  for (const ClientRecord& client : *clients) {
    EXPECT_EQ(client.resets, 0) << client.name;
    const int process = std::stoi(client.name.substr(ClientName(0).size() - 1));
    auto state = ClientState::Open(processes_.client_state(process));
    ASSERT_TRUE(state.ok()) << state.status();
    const absl::Status conserved =
        CheckConservation(store->get(), **codec, client.id, *(*state)->Read(), /*baseline=*/{});
    EXPECT_TRUE(conserved.ok()) << conserved;
    const absl::optional<CachedModel> model = (*state)->LoadModel();
    ASSERT_TRUE(model.has_value()) << client.name << " has left in order, and keeps no model";
    const absl::Status kept = CheckKeptModel(store->get(), *model);
    EXPECT_TRUE(kept.ok()) << client.name << ": " << kept;
  }
}

void NetworkFleet::FinishAndCheck(const std::string& note) {
  const int64_t rounds = Rounds();
  const double seconds = absl::ToDoubleSeconds(absl::Now() - begin_);
  Stop();
  CheckBooks();
  const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
  std::string line = absl::StrCat(test->test_suite_name(), ".", test->name(), ": ", rounds, " rounds");
  if (proxy_ != nullptr) {
    int64_t resets = 0;
    for (const LinkCount& count : proxy_->Counts()) resets += count.was_reset;
    const LinkCount total = proxy_->Total();
    absl::StrAppend(&line, ", ", total.up, " bytes up, ", total.down, " down, ", proxy_->Counts().size(),
                    " connections, ", resets, " reset");
  }
  printf("%s, %.1f s%s%s\n", line.c_str(), seconds, note.empty() ? "" : ", ", note.c_str());
}

}  // namespace terse
