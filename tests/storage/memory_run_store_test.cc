// The store in memory that the fuzzers use does what the real one does.
#include "tests/testing/memory_run_store.h"

#include <limits>

#include "core/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/storage/store_place.h"

namespace terse {
namespace {

std::vector<float> Weights(int64_t version) { return {1.0f * version, 2.0f, 3.0f}; }

RunRecord MakeRun(bool relay) {
  RunRecord run;
  run.name = "run";
  run.lineage = HashBytes("lineage");
  run.parameters = 3;
  run.relay = relay ? "facts" : "";
  run.first_version = relay ? 5 : 0;
  return run;
}

// Calls on both stores with the same arguments, and what can be read back. Every other seed is that of a relay's run.
class BothStores {
 public:
  BothStores(SqlEngine engine, uint64_t seed)
      : random_(seed), relay_(seed % 2 == 1), place_(engine), real_(*place_.Open()) {}

  void Step() {
    switch (random_.Below(13)) {
      case 0: {
        const RunRecord run = MakeRun(relay_);
        return Same([&](RunStore* store) { return store->CreateRun(run, Weights(run.first_version)); });
      }
      case 1: {
        const std::string name(1, static_cast<char>('a' + random_.Below(3)));
        return Same([&](RunStore* store) { return store->RegisterClient(name, 7).status(); });
      }
      case 2: {
        const int64_t round = Near(round_), base = Near(version_);
        const absl::optional<RoundPlan> plan = Plan();
        return Same([&](RunStore* store) { return store->OpenRound(round, base, 8, plan); });
      }
      case 3:
        return Close();
      case 4:
        return CommitOne();
      case 5: {
        const int64_t round = Near(round_);
        return Same([&](RunStore* store) { return store->AbortRound(round, "because", 9); });
      }
      case 6:
        return CountSomething();
      case 7: {
        const int64_t version = Near(version_), keep = 1 + random_.Below(2);
        Checkpoint checkpoint{version, HashWeights(Weights(version)), Weights(version)};
        if (random_.Below(2) == 0) checkpoint.server_state = {1.5f, static_cast<float>(version)};
        return Same([&](RunStore* store) { return store->WriteCheckpoint(checkpoint, keep); });
      }
      case 8: {
        const int64_t round = Near(round_);
        const double top5 = random_.Below(2) == 0 ? 0.5 : std::numeric_limits<double>::quiet_NaN();
        const absl::optional<double> accuracy = random_.Below(2) == 0 ? absl::nullopt : absl::make_optional(top5);
        return Same([&](RunStore* store) { return store->SetEvaluation(round, {accuracy, 1, top5, absl::nullopt}); });
      }
      case 9: {
        const auto state = static_cast<RunState>(random_.Below(4));
        return Same([&](RunStore* store) { return store->SetRunState(state, "why"); });
      }
      case 10: {
        const LedgerEntry entry{1, static_cast<int64_t>(random_.Below(2)), Direction::kUp, 1, 2, 3};
        return Same([&](RunStore* store) { return store->AddLedger({entry}); });
      }
      case 11:
        return MoveHead();
      default:
        return Reopen();
    }
  }

  void Compare() {
    const auto run = *real_->Run(), run_in_memory = *memory_.Run();
    ASSERT_EQ(run.has_value(), run_in_memory.has_value());
    if (run.has_value()) {
      EXPECT_EQ(run->state, run_in_memory->state);
      EXPECT_EQ(run->reason, run_in_memory->reason);
      EXPECT_EQ(run->relay, run_in_memory->relay);
      EXPECT_EQ(run->first_version, run_in_memory->first_version);
    }
    EXPECT_EQ(*real_->StartHash(), *memory_.StartHash());
    const Head head = *real_->GetHead(), head_in_memory = *memory_.GetHead();
    EXPECT_EQ(head.version, head_in_memory.version);
    EXPECT_EQ(head.model_hash, head_in_memory.model_hash);
    EXPECT_EQ(head.epoch, head_in_memory.epoch);
    CompareClients();
    CompareRounds();
    CompareLog();
  }

 private:
  int64_t Near(int64_t value) { return value + static_cast<int64_t>(random_.Below(3)) - 1; }
  int64_t Client() { return static_cast<int64_t>(random_.Below(4)); }

  absl::optional<RoundPlan> Plan() {
    if (random_.Below(2) == 0) return absl::nullopt;
    return RoundPlan{1 + Client(), Client(), 10 * Client(), "why"};
  }

  // Expects the same status code from both stores, whatever the words.
  void Same(const std::function<absl::Status(RunStore*)>& call) {
    const absl::Status real = call(real_.get()), memory = call(&memory_);
    EXPECT_EQ(real.code(), memory.code()) << real << " in the database, in memory " << memory;
  }

  void Close() {
    const int64_t round = Near(round_);
    std::vector<ChosenUpdate> chosen;
    for (int64_t client = 0; client < Client(); ++client) {
      ChosenUpdate update;
      update.client = client;
      update.update_id = HashBytes(std::to_string(random_.Next()));
      const auto record = memory_.GetClient(client);
      if (record.ok() && random_.Below(8) != 0) update.prev_applied = record->last_applied;
      update.payload_bytes = 100 + client;
      update.loss = 0.1 * static_cast<double>(1 + client);
      chosen.push_back(update);
    }
    std::vector<RefusedUpdate> refused;
    if (random_.Below(4) == 0) {
      refused.push_back(
          {Client(), HashBytes(std::to_string(random_.Next())), random_.Below(8) == 0 ? "" : "too large"});
    }
    Same([&](RunStore* store) { return store->CloseRound(round, chosen, 10, refused); });
    if (!refused.empty()) ExpectSameFate(refused[0].update_id);
    for (const ChosenUpdate& update : chosen) ids_.push_back(update.update_id);
    for (int i = 0; i < 4 && !ids_.empty(); ++i) ExpectSameFate(ids_[random_.Below(ids_.size())]);
  }

  void ExpectSameFate(Id128 update_id) {
    const int64_t client = Client(), round = 1 + static_cast<int64_t>(random_.Below(static_cast<uint64_t>(round_) + 1));
    const auto real = real_->FateOf(update_id, client, round), memory = memory_.FateOf(update_id, client, round);
    ASSERT_EQ(real->has_value(), memory->has_value());
    if (!real->has_value()) return;
    EXPECT_EQ((*real)->client, (*memory)->client);
    EXPECT_EQ((*real)->state, (*memory)->state);
    EXPECT_EQ((*real)->refused, (*memory)->refused);
  }

  void CommitOne() {
    Commit commit;
    commit.round = Near(round_);
    commit.base_version = random_.Below(8) == 0 ? Near(version_) : version_;
    const bool makes_model = !relay_ || random_.Below(8) == 0;
    if (makes_model) commit.model_hash = HashWeights(Weights(version_ + 1));
    if (makes_model || random_.Below(16) == 0) commit.downstream = "message";
    if (makes_model ? random_.Below(4) != 0 : random_.Below(16) == 0)
      commit.aggregate = "updates of " + std::to_string(version_);
    commit.committed_us = 11;
    commit.next_plan = Plan();
    if (random_.Below(4) != 0) commit.history = HistoryMessages(commit.round);
    const bool open_next = random_.Below(makes_model ? 2 : 16) == 0;
    Same([&](RunStore* store) { return store->CommitRound(commit, open_next); });
  }

  // Moves the head as a relay does, with a message or without.
  void MoveHead() {
    const int64_t version = version_ + static_cast<int64_t>(random_.Below(4));
    const Id128 hash = HashWeights(Weights(random_.Below(16) == 0 ? 1000 : version));
    if (random_.Below(2) == 0) {
      return Same([&](RunStore* store) { return store->AppendMessage({version, hash, "from above"}); });
    }
    const std::vector<float> weights = Weights(version);
    return Same([&](RunStore* store) { return store->ReplaceHead({version, hash, weights}); });
  }

  // Returns messages of the round's chosen clients, and sometimes of one that it did not choose.
  std::vector<HistoryMessage> HistoryMessages(int64_t round) {
    std::vector<HistoryMessage> messages;
    for (int64_t client = 0; client < 4; ++client) {
      const auto chosen = memory_.WasChosen(round, client);
      if ((chosen.ok() && *chosen) || random_.Below(16) == 0) messages.push_back({client, "update"});
    }
    return messages;
  }

  void CountSomething() {
    const int64_t client = Client(), until = static_cast<int64_t>(random_.Below(3));
    switch (random_.Below(8)) {
      case 6:
        return Same([&](RunStore* store) { return store->ForgetHistory(client); });
      case 5: {
        const int64_t messages = random_.Below(3) == 0 ? Client() : memory_.ReadHistory(client)->count();
        return Same([&](RunStore* store) { return store->CompactHistory(client, messages, "state"); });
      }
      case 0:
        return Same([&](RunStore* store) { return store->RecordNotApplied(client); });
      case 1:
        return Same([&](RunStore* store) { return store->RecordReset(client); });
      case 2:
        return Same([&](RunStore* store) { return store->RecordFailure(client).status(); });
      case 3:
        return Same([&](RunStore* store) { return store->SetAside(client, until, "why"); });
      case 4:
        return Same([&](RunStore* store) { return store->SetBelow({client, {until, 1, 2, 3, 4}}); });
      default:
        return Same([&](RunStore* store) { return store->SetSamples(client, 5); });
    }
  }

  void Reopen() {
    real_.reset();
    real_ = *place_.Open();
    memory_.Reopen();
  }

  void CompareClients() {
    const std::vector<BelowRecord> below = *real_->Below(), below_in_memory = *memory_.Below();
    ASSERT_EQ(below.size(), below_in_memory.size());
    for (size_t i = 0; i < below.size(); ++i) {
      EXPECT_EQ(below[i].client, below_in_memory[i].client);
      EXPECT_EQ(below[i].facts.clients, below_in_memory[i].facts.clients);
    }
    const std::vector<ClientRecord> clients = *real_->Clients(), in_memory = *memory_.Clients();
    ASSERT_EQ(clients.size(), in_memory.size());
    for (size_t i = 0; i < clients.size(); ++i) {
      EXPECT_EQ(clients[i].last_applied, in_memory[i].last_applied);
      EXPECT_EQ(clients[i].updates_applied, in_memory[i].updates_applied);
      EXPECT_EQ(clients[i].updates_not_applied, in_memory[i].updates_not_applied);
      EXPECT_EQ(clients[i].resets, in_memory[i].resets);
      EXPECT_EQ(clients[i].samples, in_memory[i].samples);
      EXPECT_EQ(clients[i].failures, in_memory[i].failures);
      EXPECT_DOUBLE_EQ(clients[i].reliability, in_memory[i].reliability);
      EXPECT_EQ(clients[i].set_aside_until_us, in_memory[i].set_aside_until_us);
      EXPECT_EQ(clients[i].set_aside_reason, in_memory[i].set_aside_reason);
      const HistoryRecord history = *real_->ReadHistory(clients[i].id);
      const HistoryRecord history_in_memory = *memory_.ReadHistory(clients[i].id);
      EXPECT_EQ(history.messages, history_in_memory.messages);
      EXPECT_EQ(history.state, history_in_memory.state);
      EXPECT_EQ(history.log, history_in_memory.log);
    }
  }

  void CompareRounds() {
    const std::vector<RoundRecord> rounds = *real_->Rounds(0, 1000), in_memory = *memory_.Rounds(0, 1000);
    ASSERT_EQ(rounds.size(), in_memory.size());
    for (size_t i = 0; i < rounds.size(); ++i) {
      EXPECT_EQ(rounds[i].state, in_memory[i].state);
      EXPECT_EQ(rounds[i].base_version, in_memory[i].base_version);
      EXPECT_EQ(rounds[i].updates, in_memory[i].updates);
      EXPECT_EQ(rounds[i].update_bytes, in_memory[i].update_bytes);
      EXPECT_EQ(rounds[i].train_loss, in_memory[i].train_loss);
      EXPECT_TRUE(rounds[i].plan == in_memory[i].plan) << rounds[i].id;
      EXPECT_EQ(rounds[i].accuracy, in_memory[i].accuracy);
      EXPECT_EQ(rounds[i].top5, in_memory[i].top5);
      EXPECT_EQ(rounds[i].perplexity, in_memory[i].perplexity);
      for (int64_t client = 0; client < 4; ++client) {
        EXPECT_EQ(*real_->WasChosen(rounds[i].id, client), *memory_.WasChosen(rounds[i].id, client));
      }
    }
    round_ = rounds.empty() ? 1 : rounds.back().id;
    EXPECT_EQ((*real_->Ledger(0, 9)).size(), (*memory_.Ledger(0, 9)).size());
    const std::vector<LedgerEntry> real_sums = *real_->ClientTotals();
    const std::vector<LedgerEntry> memory_sums = *memory_.ClientTotals();
    ASSERT_EQ(real_sums.size(), memory_sums.size());
    for (size_t i = 0; i < real_sums.size(); ++i) {
      EXPECT_EQ(real_sums[i].client, memory_sums[i].client);
      EXPECT_EQ(real_sums[i].direction, memory_sums[i].direction);
      EXPECT_EQ(real_sums[i].wire_bytes, memory_sums[i].wire_bytes);
      EXPECT_EQ(real_sums[i].client_name, memory_sums[i].client_name);
    }
    const RunTotals totals = *real_->Totals(), in_memory_totals = *memory_.Totals();
    EXPECT_EQ(totals.accuracy, in_memory_totals.accuracy);
    EXPECT_EQ(totals.test_loss, in_memory_totals.test_loss);
    EXPECT_EQ(totals.best_accuracy, in_memory_totals.best_accuracy);
    EXPECT_EQ(totals.best_test_loss, in_memory_totals.best_test_loss);
    EXPECT_EQ(totals.dense_bytes_up, in_memory_totals.dense_bytes_up);
    EXPECT_EQ(totals.payload_bytes_down, in_memory_totals.payload_bytes_down);
    EXPECT_EQ(totals.wire_bytes_up, in_memory_totals.wire_bytes_up);
    EXPECT_EQ(totals.wire_bytes_down, in_memory_totals.wire_bytes_down);
    EXPECT_EQ(totals.first_opened_us, in_memory_totals.first_opened_us);
    EXPECT_EQ(totals.last_committed_us, in_memory_totals.last_committed_us);
  }

  void CompareLog() {
    version_ = (*real_->GetHead()).version;
    for (int64_t after = -1; after <= version_ + 1; ++after) {
      Same([&](RunStore* store) { return store->ReadLog(after, version_).status(); });
      Same([&](RunStore* store) { return store->LogBytes(after).status(); });
      const auto aggregate = real_->ReadAggregate(after), aggregate_in_memory = memory_.ReadAggregate(after);
      EXPECT_EQ(aggregate.status().code(), aggregate_in_memory.status().code()) << after;
      EXPECT_EQ(aggregate.value_or(""), aggregate_in_memory.value_or("")) << after;
    }
    const auto file = real_->NewestCheckpointFile(), in_memory = memory_.NewestCheckpointFile();
    ASSERT_EQ(file.status().code(), in_memory.status().code());
    if (!file.ok()) return;
    EXPECT_EQ(file->version, in_memory->version);
    EXPECT_EQ(file->bytes, in_memory->bytes);
    EXPECT_EQ(real_->ReadNewestCheckpoint()->model_hash, memory_.ReadNewestCheckpoint()->model_hash);
    EXPECT_EQ(real_->ReadNewestCheckpoint()->server_state, memory_.ReadNewestCheckpoint()->server_state);
  }

  Random random_;
  const bool relay_;
  const StorePlace place_;
  std::unique_ptr<RunStore> real_;
  MemoryRunStore memory_;
  int64_t round_ = 1;
  std::vector<Id128> ids_;  // of updates that were to be chosen
  int64_t version_ = 0;
};

class MemoryRunStoreTest : public ::testing::TestWithParam<SqlEngine> {};

TERSE_ON_BOTH_ENGINES(MemoryRunStoreTest);

TEST_P(MemoryRunStoreTest, DoesWhatTheDatabaseDoes) {
  // A look at everything takes longer over a socket.
  const uint64_t seeds = GetParam() == SqlEngine::kSqlite ? 20 : 4;
  for (uint64_t seed = 0; seed < seeds && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    BothStores stores(GetParam(), seed);
    for (int step = 0; step < 150 && !::testing::Test::HasFailure(); ++step) {
      stores.Step();
      stores.Compare();
    }
  }
}

}  // namespace
}  // namespace terse
