#include "tests/e2e/fleet_conservation.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "compression/codec_table.h"
#include "compression/downstream.h"
#include "gtest/gtest.h"
#include "storage/client_state.h"
#include "storage/run_store.h"
#include "tests/e2e/fleet_processes.h"
#include "tests/testing/grid_trainer.h"

namespace terse {
namespace {

void AddTo(std::vector<double>* sum, absl::Span<const float> values, double sign = 1) {
  sum->resize(values.size());
  for (size_t i = 0; i < values.size(); ++i) (*sum)[i] += sign * values[i];
}

std::vector<float> Decode(const Codec& codec, absl::string_view message) {
  std::vector<float> values(codec.layout().size());
  EXPECT_TRUE(codec.AddDecoded(message, 1, absl::MakeSpan(values)).ok());
  return values;
}

// Sum of what the coordinator applied, by client, from the log alone. All clients took part in every round.
std::vector<std::vector<double>> AppliedByClient(const Codec& codec, const std::string& state, int64_t rounds) {
  std::vector<std::vector<double>> applied(kClients, std::vector<double>(codec.layout().size()));
  auto store = RunStore::Open(state);
  EXPECT_TRUE(store.ok()) << store.status();
  const auto log = (*store)->ReadLog(0, rounds);
  EXPECT_TRUE(log.ok()) << log.status();
  EXPECT_EQ(log->size(), rounds);
  for (const LogMessage& message : *log) {
    const auto forwarded = ParseForwarded(message.downstream);
    EXPECT_TRUE(forwarded.ok()) << forwarded.status();
    EXPECT_EQ(forwarded->updates.size(), kClients);
    for (int client = 0; client < kClients; ++client)
      AddTo(&applied[client], Decode(codec, forwarded->updates[client]));
  }
  return applied;
}

// Index of the client that this state directory belongs to: processes check in in any order.
int64_t ClientIndex(const std::string& database, int process) {
  return QueryNumber(database, absl::StrCat("SELECT id FROM clients WHERE name = 'client-", process, "'"));
}

}  // namespace

std::string ConservationRunFile(const std::string& durability, const std::string& positions, int64_t rounds) {
  return absl::StrCat(
      "name = 'conservation'\ndurability = '", durability,
      "'\n[train]\nlocal_steps = 1\noptimizer.learning_rate = 1.0\n[codec]\nname = 'sbc'\ndensity = 0.05\n"
      "downstream = 'forward'\n"
      "mean_precision = 'bf16'\npositions = '",
      positions, "'\n[rounds]\ncount = ", rounds, "\nclients = ", kClients,
      "\nevaluate_every = 1000\n[checkpoints]\nevery = 1000000\n");
}

void ExpectConservation(const std::string& run_state, const std::function<std::string(int)>& client_state,
                        const std::string& positions, int64_t rounds) {
  const Layout& layout = GridLayout();
  const auto codec = MakeCodec({"sbc", 0.05, "bf16", positions}, layout);
  ASSERT_TRUE(codec.ok()) << codec.status();
  const std::vector<std::vector<double>> applied = AppliedByClient(**codec, run_state, rounds);
  for (int process = 0; process < kClients; ++process) {
    const int64_t client = ClientIndex(run_state + "/run.sqlite", process);
    auto state = ClientState::Open(client_state(process));
    ASSERT_TRUE(state.ok()) << state.status();
    const StoredState stored = *(*state)->Read();
    ASSERT_FALSE(stored.sealed.has_value());
    // The coordinator's side of the equation ...
    std::vector<double> got = applied[client];
    AddTo(&got, stored.dense);
    if (!stored.minus.empty()) AddTo(&got, Decode(**codec, stored.minus), -1);
    // ... and the deltas, computed here again.
    std::vector<double> want(layout.size());
    for (int64_t call = 0; call < stored.generation; ++call) AddTo(&want, GridDelta(client, call));
    EXPECT_GE(stored.generation, rounds);
    int64_t different = 0;
    for (int64_t i = 0; i < layout.size(); ++i) different += got[i] != want[i];
    EXPECT_EQ(different, 0) << "client " << client << " after " << stored.generation << " deltas";
  }
}

}  // namespace terse
