// Measures the cost of durability: one round's transactions on the coordinator, one seal and one verdict on a client.
// The numbers are the disk's: set TMPDIR to the one that matters. The same rounds are committed to a PostgreSQL server
// when TERSE_STORE has the address of a database, as terse-coordinator --store takes it; a schema `terse_bench` comes
// and goes there.
#include <benchmark/benchmark.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "storage/client_state.h"
#include "storage/postgres_run_stores.h"
#include "storage/run_stores.h"
#include "storage/state_directory.h"

namespace terse {
namespace {

constexpr size_t kLeNet5 = 431080;
constexpr int64_t kKeptRounds = 30;

class ScratchDirectory {
 public:
  ScratchDirectory() : path_((std::filesystem::temp_directory_path() / "terse_bench_XXXXXX").string()) {
    if (mkdtemp(&path_[0]) == nullptr) abort();
  }
  ~ScratchDirectory() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::unique_ptr<RunStores> Directories(const std::string& state_directory) {
  return RunsInDirectories(state_directory);
}

// Null when nobody named a server.
std::unique_ptr<RunStores> Server(const std::string& state_directory) {
  const char* const address = getenv("TERSE_STORE");
  if (address == nullptr) return nullptr;
  std::unique_ptr<RunStores> stores = RunsInPostgres(address, state_directory).value();
  if (!stores->RemoveOutside(RunDirectory(state_directory, "bench")).ok()) abort();
  return stores;
}

// Argument: size of the downstream message in bytes. One iteration closes and commits a round of four clients.
void BM_CloseAndCommit(benchmark::State& state) {
  const ScratchDirectory directory;
  auto store = RunStore::Open(directory.path()).value();
  RunRecord run;
  run.lineage = Id128{1, 1};
  run.parameters = 1;
  if (!store->CreateRun(run, {0.0f}).ok() || !store->OpenRound(1, 0, 0).ok()) abort();
  std::vector<ChosenUpdate> chosen(4);
  Commit commit;
  commit.downstream = std::string(static_cast<size_t>(state.range(0)), 'd');
  for (int64_t i = 0; i < 4; ++i) {
    chosen[i].client = store->RegisterClient(absl::StrCat("client ", i), 0)->id;
    commit.ledger.push_back({0, i, Direction::kUp, 1000, 100, 110});
    commit.ledger.push_back({0, i, Direction::kDown, 1000, 400, 410});
  }
  for (auto _ : state) {
    ++commit.round;
    commit.base_version = commit.round - 1;
    commit.model_hash = Id128{1, static_cast<uint64_t>(commit.round)};
    for (ChosenUpdate& update : chosen) {
      update.prev_applied = update.update_id;
      update.update_id = Id128{static_cast<uint64_t>(commit.round), static_cast<uint64_t>(update.client)};
    }
    for (LedgerEntry& entry : commit.ledger) entry.round = commit.round;
    if (!store->CloseRound(commit.round, chosen, 0).ok() || !store->CommitRound(commit, true).ok()) abort();
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_CloseAndCommit)->Arg(2800)->Arg(1 << 20)->Unit(benchmark::kMillisecond)->UseRealTime();

// Argument: clients of the round. One iteration closes and commits a round of all of them, with a message of 2,800
// bytes and both directions of the ledger, in a run that has had twice as many rounds as it keeps row by row.
template <std::unique_ptr<RunStores> (*MakeStores)(const std::string&)>
void BM_CommitOfARound(benchmark::State& state) {
  const int64_t clients = state.range(0);
  const ScratchDirectory directory;
  const std::unique_ptr<RunStores> stores = MakeStores(directory.path());
  if (stores == nullptr) return state.SkipWithError("set TERSE_STORE to the address of a PostgreSQL database");
  auto store = stores->Open(RunDirectory(directory.path(), "bench")).value();
  RunRecord run;
  run.lineage = Id128{1, 1};
  run.parameters = 1;
  if (!store->CreateRun(run, {0.0f}).ok() || !store->OpenRound(1, 0, 0).ok()) abort();
  std::vector<ChosenUpdate> chosen(static_cast<size_t>(clients));
  Commit commit;
  commit.downstream = std::string(2800, 'd');
  for (int64_t i = 0; i < clients; ++i) {
    chosen[i].client = store->RegisterClient(absl::StrCat("client ", i), 0)->id;
    commit.ledger.push_back({0, i, Direction::kUp, 1000, 100, 110});
    commit.ledger.push_back({0, i, Direction::kDown, 1000, 400, 410});
  }
  if (!store->SetRetention({kKeptRounds, 1000}).ok()) abort();
  const auto next_round = [&] {
    ++commit.round;
    commit.base_version = commit.round - 1;
    commit.model_hash = Id128{1, static_cast<uint64_t>(commit.round)};
    for (ChosenUpdate& update : chosen) {
      update.prev_applied = update.update_id;
      update.update_id = HashBytes(absl::StrCat(commit.round, " ", update.client));
    }
    for (LedgerEntry& entry : commit.ledger) entry.round = commit.round;
    if (!store->CloseRound(commit.round, chosen, 0).ok() || !store->CommitRound(commit, true).ok()) abort();
  };
  for (int64_t i = 0; i < 2 * kKeptRounds; ++i) next_round();
  for (auto _ : state) next_round();
  state.SetItemsProcessed(state.iterations() * clients);
}
BENCHMARK(BM_CommitOfARound<Directories>)->Arg(1000)->Arg(10000)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(BM_CommitOfARound<Server>)->Arg(1000)->Arg(10000)->Unit(benchmark::kMillisecond)->UseRealTime();

// LeNet5 with Adam: 1.7 MB of residual, 3.4 MB of trainer state, 1 KB of message.
void BM_StrictSeal(benchmark::State& state) {
  const ScratchDirectory directory;
  auto client = ClientState::Open(directory.path()).value();
  if (!client->Begin(Id128{1, 1}, Id128{1, 1}, Durability::kStrict).ok()) abort();
  const std::vector<float> dense(kLeNet5, 1.0f);
  SealedUpdate update;
  update.message = std::string(1000, 'm');
  for (auto _ : state) {
    state.PauseTiming();
    if (client->state().sealed && !client->Settle(true).ok()) abort();
    std::string trainer(kLeNet5 * 8, 't');
    ++update.update_id.low;
    state.ResumeTiming();
    if (!client->Seal(dense, update, std::move(trainer)).ok()) abort();
  }
}
BENCHMARK(BM_StrictSeal)->Unit(benchmark::kMillisecond)->UseRealTime();

void BM_StrictSettle(benchmark::State& state) {
  const ScratchDirectory directory;
  auto client = ClientState::Open(directory.path()).value();
  if (!client->Begin(Id128{1, 1}, Id128{1, 1}, Durability::kStrict).ok()) abort();
  SealedUpdate update;
  update.message = std::string(1000, 'm');
  for (auto _ : state) {
    state.PauseTiming();
    ++update.update_id.low;
    if (!client->Seal({1.0f}, update, "t").ok()) abort();
    state.ResumeTiming();
    if (!client->Settle(true).ok()) abort();
  }
}
BENCHMARK(BM_StrictSettle)->Unit(benchmark::kMillisecond)->UseRealTime();

void BM_WriteCheckpoint(benchmark::State& state) {
  const ScratchDirectory directory;
  auto store = RunStore::Open(directory.path()).value();
  Checkpoint checkpoint;
  checkpoint.weights.assign(kLeNet5, 0.5f);
  checkpoint.model_hash = HashWeights(checkpoint.weights);
  RunRecord run;
  run.lineage = Id128{1, 1};
  run.parameters = kLeNet5;
  if (!store->CreateRun(run, checkpoint.weights).ok()) abort();
  for (auto _ : state) {
    if (!store->WriteCheckpoint(checkpoint, 2).ok()) abort();
  }
}
BENCHMARK(BM_WriteCheckpoint)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace terse

BENCHMARK_MAIN();
