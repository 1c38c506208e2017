// Rows of old rounds go, their sums stay, and no client hears another answer about an update for it.
#include <map>
#include <tuple>

#include "core/random.h"
#include "storage/ledger_rows.h"
#include "tests/storage/store_place.h"
#include "tests/storage/system_calls.h"

namespace terse {
namespace {

using Sums = std::tuple<int64_t, int64_t, int64_t>;

std::map<std::pair<int64_t, Direction>, Sums> ByClient(RunStore& store) {
  std::map<std::pair<int64_t, Direction>, Sums> sums;
  const std::vector<LedgerEntry> totals = store.ClientTotals().value();
  for (const LedgerEntry& total : totals) {
    sums[{total.client, total.direction}] = {total.dense_bytes, total.payload_bytes, total.wire_bytes};
  }
  return sums;
}

// Two stores of the same run: one keeps everything, the other three rounds.
class TwoStores {
 protected:
  static constexpr int64_t kKept = 3;

  explicit TwoStores(SqlEngine engine) : all_place_(engine), few_place_(engine) {
    for (const auto& store : {all_.get(), few_.get()}) {
      EXPECT_OK(store->CreateRun(TestRun(4), TestWeights(0)));
      for (const char* name : {"a", "b", "c", "d"}) EXPECT_OK(store->RegisterClient(name, 1).status());
    }
    EXPECT_OK(few_->SetRetention({kKept, 0}));
  }

  // Makes the same call on both.
  template <typename Call>
  void Both(Call call) {
    ASSERT_OK(call(*all_));
    ASSERT_OK(call(*few_));
  }

  std::vector<LedgerEntry> Entries(int64_t round) {
    std::vector<LedgerEntry> entries;
    for (int64_t client = 0; client < 4; ++client) {
      if (random_.Below(4) == 0) continue;
      const auto bytes = [this] { return static_cast<int64_t>(random_.Below(1000)); };
      entries.push_back({round, client, Direction::kUp, bytes(), bytes(), bytes()});
      if (random_.Below(4) != 0) entries.push_back({round, client, Direction::kDown, bytes(), bytes(), bytes()});
    }
    return entries;
  }

  void PlayRound(int64_t round, int64_t version) {
    Both([&](RunStore& store) { return store.OpenRound(round, version, 1); });
    const Id128 last = all_->GetClient(round % 4)->last_applied;
    ChosenUpdate update = TestUpdate(round % 4, round, last);
    update.metrics = {{MetricKind::kTraining, "norm", static_cast<double>(round), 5}};
    Both([&](RunStore& store) { return store.CloseRound(round, {update}, 2); });
    Commit commit = TestCommit(round);
    commit.base_version = version;
    commit.ledger = Entries(round);
    Both([&](RunStore& store) { return store.CommitRound(commit, false); });
  }

  void ExpectSameSums() {
    EXPECT_EQ(ByClient(*all_), ByClient(*few_));
    const std::vector<RoundRecord> all = *all_->Rounds(1, 1000), few = *few_->Rounds(1, 1000);
    ASSERT_EQ(all.size(), few.size());
    for (size_t i = 0; i < all.size(); ++i) {
      const auto sums = [](const RoundRecord& round) {
        return std::make_tuple(round.id, round.update_bytes, round.dense_bytes_up, round.payload_bytes_up,
                               round.wire_bytes_up, round.dense_bytes_down, round.payload_bytes_down,
                               round.wire_bytes_down);
      };
      EXPECT_EQ(sums(all[i]), sums(few[i]));
      ASSERT_EQ(few[i].metrics.size(), all[i].metrics.size());
      for (size_t k = 0; k < all[i].metrics.size(); ++k) EXPECT_EQ(few[i].metrics[k].mean, all[i].metrics[k].mean);
      // The sums of the store that has every row are those of its rows.
      Sums up, down;
      const std::vector<LedgerEntry> rows = all_->Ledger(all[i].id, all[i].id).value();
      for (const LedgerEntry& row : rows) {
        Sums& sum = row.direction == Direction::kUp ? up : down;
        sum = {std::get<0>(sum) + row.dense_bytes, std::get<1>(sum) + row.payload_bytes,
               std::get<2>(sum) + row.wire_bytes};
      }
      EXPECT_EQ(up, Sums(all[i].dense_bytes_up, all[i].payload_bytes_up, all[i].wire_bytes_up));
      EXPECT_EQ(down, Sums(all[i].dense_bytes_down, all[i].payload_bytes_down, all[i].wire_bytes_down));
    }
  }

  const SystemCallWatch watch_{SkipSync};
  const StorePlace all_place_, few_place_;
  std::unique_ptr<RunStore> all_ = all_place_.Open().value();
  std::unique_ptr<RunStore> few_ = few_place_.Open().value();
  Random random_{7};
};

class LedgerTest : protected TwoStores, public ::testing::TestWithParam<SqlEngine> {
 protected:
  LedgerTest() : TwoStores(GetParam()) {}
};

TERSE_ON_BOTH_ENGINES(LedgerTest);

TEST_P(LedgerTest, OldRoundsKeepTheirSums) {
  for (int64_t round = 1; round <= 20; ++round) {
    PlayRound(round, round - 1);
    // Bytes that come late belong to their round, folded or not.
    Both([&, late = Entries(std::max<int64_t>(1, round - 5))](RunStore& store) { return store.AddLedger(late); });
    Both([&](RunStore& store) { return store.AddLedger({{0, 1, Direction::kUp, 1, 2, 3}}); });
  }
  ExpectSameSums();
  EXPECT_EQ(few_->Ledger(1, 20 - kKept)->size(), 0u);
  EXPECT_EQ(few_->MetricsOfClients(1, 20)->size(), static_cast<size_t>(kKept));
  EXPECT_EQ(all_->MetricsOfClients(1, 20)->size(), 20u);
  EXPECT_GT(few_->Ledger(20 - kKept + 1, 20)->size(), 0u);
  EXPECT_EQ(few_->Ledger(20 - kKept + 1, 20)->size(), all_->Ledger(20 - kKept + 1, 20)->size());
  EXPECT_EQ(few_->Ledger(0, 0)->size(), 1u) << "traffic of no round stays";
  few_ = nullptr;
  few_ = few_place_.Open(RunStore::Depth::kEverything).value();
  ExpectSameSums();
}

TEST_P(LedgerTest, ALimitThatWasLoweredIsReachedInBoundedSteps) {
  ASSERT_OK(few_->SetRetention({0, 0}));
  for (int64_t round = 1; round <= 20; ++round) PlayRound(round, round - 1);
  EXPECT_EQ(few_->Ledger(1, 20)->size(), all_->Ledger(1, 20)->size());
  ASSERT_OK(few_->SetRetention({kKept, 0}));
  for (int64_t round = 21; round <= 30; ++round) {
    PlayRound(round, round - 1);
    const int64_t folded = std::min(round - kKept, (round - 20) * run_store_internal::kFoldedAtOnce);
    EXPECT_EQ(few_->Ledger(1, folded)->size(), 0u);
    EXPECT_EQ(few_->Ledger(folded + 1, round)->size(), all_->Ledger(folded + 1, round)->size());
  }
  ExpectSameSums();
}

TEST_P(LedgerTest, RoundsThatWereAbortedGoWithThoseAroundThem) {
  int64_t version = 0;
  for (int64_t round = 1; round <= 24; ++round) {
    if (round % 3 != 0) {
      PlayRound(round, version++);
      continue;
    }
    Both([&](RunStore& store) { return store.OpenRound(round, version, 1); });
    Both([&, entries = Entries(round)](RunStore& store) { return store.AddLedger(entries); });
    Both([&](RunStore& store) { return store.AbortRound(round, "why", 2); });
  }
  ExpectSameSums();
  // Kept are the newest three that were committed (20, 22 and 23), and 21 and 24.
  EXPECT_EQ(few_->Ledger(1, 19)->size(), 0u);
  EXPECT_EQ(few_->Ledger(20, 24)->size(), all_->Ledger(20, 24)->size());
}

TEST_P(LedgerTest, BytesThatComeInManyPartsTakeFewRows) {
  Both([](RunStore& store) { return store.OpenRound(1, 0, 1); });
  for (int64_t i = 0; i < 200; ++i) {
    ASSERT_OK(all_->AddLedger({{1, i % 3, Direction::kUp, 1, 2, 3}, {0, 3, Direction::kDown, 0, 0, 1}}));
    ASSERT_LE(all_place_.Count("ledger"), 4);
  }
  const std::vector<LedgerEntry> entries = *all_->Ledger(0, 1);
  ASSERT_EQ(entries.size(), 4u);
  EXPECT_EQ(entries[0].wire_bytes, 200);
  EXPECT_EQ(entries[1].payload_bytes, 2 * 67);
  EXPECT_EQ(entries[3].dense_bytes, 66);
  EXPECT_EQ(all_->Rounds(1, 1)->front().wire_bytes_up, 600);
}

TEST_P(LedgerTest, EventsHaveALimit) {
  ASSERT_OK(few_->SetRetention({0, 10}));
  for (int64_t i = 0; i < 50; ++i) {
    ASSERT_OK(few_->AddEvent({i, "client_joined", 0, -1, absl::StrCat("event ", i)}));
    const std::vector<EventRecord> newest = *few_->Events(100);
    EXPECT_EQ(newest.size(), static_cast<size_t>(std::min<int64_t>(i + 1, 10)));
    EXPECT_EQ(newest.back().detail, absl::StrCat("event ", i));
    EXPECT_EQ(newest.back().id, i + 1) << "ids go on";
  }
  // A follower of the events that was away gets those that are there.
  EXPECT_EQ(few_->EventsAfter(3, 100)->front().id, 41);
  EXPECT_EQ(few_->EventsAfter(45, 100)->front().id, 46);
  few_ = nullptr;
  few_ = few_place_.Open().value();
  ASSERT_OK(few_->SetRetention({0, 1}));
  ASSERT_OK(few_->AddEvent({0, "client_left", 0, -1, "last"}));
  ASSERT_EQ(few_->Events(100)->size(), 1u);
  EXPECT_EQ(few_->Events(100)->front().id, 51);
  ASSERT_OK(few_->AddEvent({0, "client_left", 0, -1, "last"}));
  EXPECT_EQ(few_->Events(100)->front().id, 52);
}

TEST_P(LedgerTest, EventsArePagedAndFiltered) {
  ASSERT_OK(few_->SetRetention({0, 100}));
  const int64_t berlin = few_->RegisterClient("Berlin-1", 1)->id, lisbon = few_->RegisterClient("lisbon-2", 1)->id;
  for (int64_t i = 1; i <= 12; ++i) {
    const int64_t client = i % 3 == 0 ? -1 : i % 3 == 1 ? berlin : lisbon;
    ASSERT_OK(few_->AddEvent({i, i % 2 == 0 ? "client_joined" : "client_left", 0, client, ""}));
  }
  const int64_t first = few_->Events(100)->back().id - 11;
  const auto times = [&](const EventFilter& filter, int64_t newest) {
    std::vector<int64_t> found;
    const auto events = few_->EventsOf(filter, newest);
    for (const EventRecord& event : *events) {
      if (event.id >= first) found.push_back(event.time_us);
    }
    return found;
  };
  using Times = std::vector<int64_t>;
  EXPECT_EQ(times({}, 3), Times({10, 11, 12}));
  EXPECT_EQ(times({first + 9, "", ""}, 3), Times({7, 8, 9}));
  EXPECT_EQ(times({0, "client_joined", ""}, 3), Times({8, 10, 12}));
  EXPECT_EQ(times({0, "", "BERLIN"}, 2), Times({7, 10}));
  EXPECT_EQ(times({first + 9, "client_joined", "in-1"}, 100), Times({4}));
  EXPECT_EQ(times({0, "", "%"}, 100), Times());
  EXPECT_EQ(times({0, "client", ""}, 100), Times());
  EXPECT_EQ(few_->EventsOf({0, "", "BERLIN"}, 1)->front().client_name, "Berlin-1");
}

TEST_P(LedgerTest, TheSettingIsStoredAndWrittenOnce) {
  few_ = nullptr;
  few_ = few_place_.Open().value();
  int writes = 0;
  {
    const SystemCallWatch watch([&](absl::string_view call, const std::string&) {
      writes += call == "write" ? 1 : 0;
      return call == "sync" ? kSkipCall : 0;
    });
    ASSERT_OK(few_->SetRetention({kKept, 0}));
    EXPECT_EQ(writes, 0) << "it is so already";
    ASSERT_OK(few_->SetRetention({kKept, 5}));
    EXPECT_EQ(writes > 0, GetParam() == SqlEngine::kSqlite) << "PostgreSQL writes in another process";
  }
  EXPECT_CODE(few_->SetRetention({-1, 0}), kInvalidArgument, "negative");
}

// A sealed update as it lies in a state directory, which may be copied and may come back at any time.
struct SealedDirectory {
  int64_t maker = 0;
  Id128 id, prev_applied;
  int64_t round = 0;
};

// The verdict of docs/PROTOCOL.md, as VerdictOn (coordinator/sessions.cc) finds it, for a directory that comes under
// the name of `client`.
std::string VerdictOn(RunStore& store, const absl::optional<RunStore::Fate>& fate, const SealedDirectory& sealed,
                      int64_t client, absl::optional<int64_t> staleness) {
  const Id128 last_applied = store.GetClient(client)->last_applied;
  if (sealed.id == last_applied) return "applied";
  if (sealed.prev_applied != last_applied) return "reset: another past";
  if (!fate.has_value()) {
    const bool over = staleness.has_value()
                          ? store.GetHead()->version - **store.BaseVersionOf(sealed.round) > *staleness
                          : **store.GetRoundState(sealed.round) != RoundState::kOpen;
    return over ? "not applied" : "pending";
  }
  if (!fate->refused.empty() && fate->client == client) return "reset: refused";
  if (fate->state == RoundState::kAborted) return "not applied";
  if (fate->client == client && fate->state == RoundState::kClosed) return "pending";
  return "reset: another's";
}

// Plays random rounds on both stores, which agree about every verdict after each step.
class Verdicts : protected TwoStores, public ::testing::TestWithParam<std::tuple<SqlEngine, bool>> {
 protected:
  Verdicts() : TwoStores(std::get<0>(GetParam())) {}

  static constexpr int64_t kNewcomer = 4;

  absl::optional<int64_t> Staleness() const {
    return std::get<1>(GetParam()) ? absl::make_optional(kKept) : absl::nullopt;
  }

  void Compare(const std::string& when) {
    for (const SealedDirectory& sealed : sealed_) {
      for (int64_t client = 0; client <= kNewcomer; ++client) {
        const std::string verdict = VerdictOn(*all_, Decided(sealed.id), sealed, client, Staleness());
        for (const auto& store : {all_.get(), few_.get()}) {
          ASSERT_EQ(VerdictOn(*store, *store->FateOf(sealed.id, client, sealed.round), sealed, client, Staleness()),
                    verdict)
              << when << ": update of round " << sealed.round << " of client " << sealed.maker << ", which comes as "
              << client << (store == few_.get() ? ", without old rounds" : "");
        }
        ++heard_[verdict];
      }
    }
  }

  // Answers as a store that keeps every update and finds it by its id.
  absl::optional<RunStore::Fate> Decided(Id128 id) {
    const auto found = decided_.find(id);
    if (found == decided_.end()) return absl::nullopt;
    const auto& [client, round, refused] = found->second;
    return RunStore::Fate{client, **all_->GetRoundState(round), refused};
  }

  void Train(int64_t round) {
    for (int64_t client = 0; client < 4; ++client) {
      if (pending_.count(client) > 0 || random_.Below(3) == 0) continue;
      // The last client's first update comes late, when the rounds before it are folded.
      if (client == 3 && round < 20) continue;
      const SealedDirectory sealed{client, HashBytes(absl::StrCat(round, " ", client)),
                                   all_->GetClient(client)->last_applied, round};
      pending_[client] = sealed;
      sealed_.push_back(sealed);
    }
  }

  void Close(int64_t round) {
    chosen_.clear();
    std::vector<RefusedUpdate> refused;
    for (auto it = pending_.begin(); it != pending_.end();) {
      const SealedDirectory& sealed = it->second;
      const bool is_old = head_ - **all_->BaseVersionOf(sealed.round) > Staleness().value_or(0);
      const uint64_t draw = is_old ? 3 : random_.Below(10);
      if (draw == 0) {
        refused.push_back({sealed.maker, sealed.id, "too large"});
        decided_[sealed.id] = {sealed.maker, round, "too large"};
      } else if (draw > 3) {
        ChosenUpdate update = TestUpdate(sealed.maker, round, sealed.prev_applied);
        update.update_id = sealed.id;
        chosen_.push_back(update);
        decided_[sealed.id] = {sealed.maker, round, ""};
      }
      const bool stays = draw != 0 && draw <= 3 && !is_old && std::get<1>(GetParam());
      it = stays ? std::next(it) : pending_.erase(it);
    }
    Both([&](RunStore& store) { return store.CloseRound(round, chosen_, 2, refused); });
  }

  void Settle(int64_t round) {
    if (random_.Below(4) == 0) {
      Both([&](RunStore& store) { return store.AbortRound(round, "why", 3); });
      return;
    }
    Commit commit = TestCommit(round);
    commit.base_version = head_++;
    commit.ledger = Entries(round);
    Both([&](RunStore& store) { return store.CommitRound(commit, false); });
  }

  std::map<int64_t, SealedDirectory> pending_;  // by client
  std::vector<SealedDirectory> sealed_;         // all that ever were
  std::vector<ChosenUpdate> chosen_;
  std::map<Id128, std::tuple<int64_t, int64_t, std::string>> decided_;  // client, round, why it was refused
  std::map<std::string, int64_t> heard_;
  int64_t head_ = 0;
};

TEST_P(Verdicts, AreTheSameWithoutTheRowsOfOldRounds) {
  Both([](RunStore& store) { return store.RegisterClient("newcomer", 1).status(); });
  constexpr int64_t kRounds = 40;
  // A look asks for every update that ever was, which takes longer over a socket.
  const int64_t every = std::get<0>(GetParam()) == SqlEngine::kSqlite ? 1 : 8;
  for (int64_t round = 1; round <= kRounds; ++round) {
    Both([&](RunStore& store) { return store.OpenRound(round, head_, 1); });
    Train(round);
    Close(round);
    if (round % every == 0) Compare("closed");
    Settle(round);
    if (round % every == 0) Compare("settled");
    if (HasFatalFailure()) return;
  }
  ExpectSameSums();
  EXPECT_EQ(heard_.size(), 6u) << "every verdict was heard";
  // Those of the rounds that are kept, and a row for the first update of every client that had one applied.
  EXPECT_LT(few_place_.Count("updates"), all_place_.Count("updates") / 3);
  EXPECT_EQ(few_place_.Count("updates u CROSS JOIN retention r WHERE u.round <= r.folded_round"), 0);
  const std::string firsts =
      "first_updates f JOIN rounds r ON r.id = f.round CROSS JOIN retention t WHERE f.round <= t.folded_round";
  EXPECT_EQ(few_place_.Count(firsts), 4);
  EXPECT_EQ(few_place_.Count(firsts + " AND r.state = 'committed'"), 4);
  EXPECT_EQ(few_place_.Count("refused"), all_place_.Count("refused"));
}

INSTANTIATE_TEST_SUITE_P(OfRuns, Verdicts,
                         ::testing::Combine(::testing::Values(SqlEngine::kSqlite, SqlEngine::kPostgres),
                                            ::testing::Bool()),
                         [](const auto& info) {
                           return absl::StrCat(std::get<0>(info.param) == SqlEngine::kSqlite ? "Sqlite" : "Postgres",
                                               std::get<1>(info.param) ? "Buffered" : "Synchronous");
                         });

}  // namespace
}  // namespace terse
