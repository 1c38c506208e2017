#include "bench/long_store.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "storage/client_sums.h"
#include "storage/ledger_rows.h"
#include "storage/sqlite_db.h"

namespace terse {
namespace {

constexpr int64_t kUp = 100, kDown = 2800, kDense = 4000, kWire = 50;  // kWire: bytes of the envelope
constexpr int64_t kTrainUs = 1000;
constexpr int64_t kRowsOfTransaction = 100'000;

std::string NameOf(int64_t client) { return absl::StrCat("client-", client); }

Id128 UpdateId(int64_t round, int64_t client) {
  return round == 0 ? Id128{} : HashBytes(absl::StrCat(round, " ", client));
}

ChosenUpdate UpdateOf(int64_t round, int64_t client) {
  return {client, UpdateId(round, client), UpdateId(round - 1, client), Id128{1, 2}, kUp, kTrainUs, 0, 0};
}

EventRecord EventOf(int64_t number) { return {number, "client_joined", 0, -1, absl::StrCat("client-", number % 1000)}; }

int64_t OpenedUs(int64_t round) { return 1000 * round; }
int64_t ClosedUs(int64_t round) { return 1000 * round + 2; }
int64_t SettledUs(int64_t round) { return 1000 * round + 3; }

std::string Message() { return std::string(kDown, 'd'); }

// Returns version 0 of a run without rounds. Later versions take its weights: nothing that is measured depends on it.
absl::StatusOr<Checkpoint> ReadFirst(RunStore& store) {
  TERSE_ASSIGN_OR_RETURN(Checkpoint first, store.ReadNewestCheckpoint());
  if (first.version == 0) return first;
  return absl::FailedPreconditionError("the run has rounds already; take a new one");
}

absl::Status Prepare(RunStore& store, const LongRun& run) {
  TERSE_RETURN_IF_ERROR(store.SetRetention(run.retention));
  for (int64_t client = 0; client < run.clients; ++client) {
    TERSE_RETURN_IF_ERROR(store.RegisterClient(NameOf(client), 1).status());
  }
  return absl::OkStatus();
}

// The first of the newest `kept` of 1 to `count`.
int64_t FirstKept(int64_t count, int64_t kept) { return kept == 0 ? 1 : std::max<int64_t>(1, count - kept + 1); }

// Calls `insert` for first to last, in transactions of bounded size.
template <typename Insert>
absl::Status InsertAll(SqliteDb& db, int64_t first, int64_t last, int64_t rows_each, Insert insert) {
  const int64_t step = std::max<int64_t>(1, kRowsOfTransaction / rows_each);
  for (int64_t begin = first; begin <= last; begin += step) {
    TERSE_RETURN_IF_ERROR(db.InTransaction([&]() -> absl::Status {
      for (int64_t i = begin; i < std::min(begin + step, last + 1); ++i) TERSE_RETURN_IF_ERROR(insert(i));
      return absl::OkStatus();
    }));
  }
  return absl::OkStatus();
}

absl::Status FillRound(SqliteDb& db, const LongRun& run, int64_t round) {
  const int64_t n = run.clients;
  TERSE_RETURN_IF_ERROR(db.Prepare("INSERT INTO rounds VALUES (?, 'committed', ?, ?, ?, ?, ?, ?, 0.0, NULL, NULL)")
                            .Int(round)
                            .Int(round - 1)
                            .Int(OpenedUs(round))
                            .Int(ClosedUs(round))
                            .Int(SettledUs(round))
                            .Int(n)
                            .Int(kTrainUs)
                            .Run());
  return db.Prepare("INSERT INTO round_totals VALUES (?, ?, ?, ?, ?, ?, ?, ?)")
      .Int(round)
      .Int(n * kUp)
      .Int(n * kDense)
      .Int(n * kUp)
      .Int(n * (kUp + kWire))
      .Int(n * kDense)
      .Int(n * kDown)
      .Int(n * (kDown + kWire))
      .Run();
}

absl::Status FillFirstUpdates(SqliteDb& db, const LongRun& run) {
  for (int64_t client = 0; client < run.clients; ++client) {
    TERSE_RETURN_IF_ERROR(
        db.Prepare("INSERT INTO first_updates VALUES (?, 1, ?)").Id(UpdateId(1, client)).Int(client).Run());
  }
  return absl::OkStatus();
}

absl::Status FillUpdates(SqliteDb& db, const LongRun& run, int64_t round) {
  for (int64_t client = 0; client < run.clients; ++client) {
    const ChosenUpdate update = UpdateOf(round, client);
    TERSE_RETURN_IF_ERROR(db.Prepare("INSERT INTO updates VALUES (?, ?, ?, ?, ?, ?, ?, 0.0, 0)")
                              .Int(round)
                              .Int(client)
                              .Id(update.update_id)
                              .Id(update.prev_applied)
                              .Id(update.content_hash)
                              .Int(update.payload_bytes)
                              .Int(update.train_us)
                              .Run());
  }
  return absl::OkStatus();
}

// The bytes of `rounds` rounds of one client.
ByteSums SumsOf(int64_t rounds) {
  return {rounds * kDense, rounds * kUp,   rounds * (kUp + kWire),
          rounds * kDense, rounds * kDown, rounds * (kDown + kWire)};
}

absl::Status FillLedger(SqliteDb& db, const LongRun& run, int64_t round) {
  ClientSums sums;
  for (int64_t client = 0; client < run.clients; ++client) sums[client] = SumsOf(1);
  const std::string bytes = SerializeSums(sums);
  return db.Prepare("INSERT INTO ledger (id, round, sums) VALUES (?1, ?1, ?2)").Int(round).Blob(bytes).Run();
}

absl::Status FillTotals(SqliteDb& db, const LongRun& run) {
  ClientSums sums;
  for (int64_t client = 0; client < run.clients; ++client) sums[client] = SumsOf(run.rounds);
  return run_store_internal::AddClientTotals(db, sums);
}

absl::Status FillClient(SqliteDb& db, const LongRun& run, int64_t client) {
  const int64_t n = run.rounds;
  return db.Prepare("UPDATE clients SET last_applied = ?, updates_applied = ?, last_seen_us = ? WHERE id = ?")
      .Id(UpdateId(n, client))
      .Int(n)
      .Int(SettledUs(n))
      .Int(client)
      .Run();
}

absl::Status FillEvent(SqliteDb& db, int64_t number) {
  const EventRecord event = EventOf(number);
  return db.Prepare("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)")
      .Int(number)
      .Int(event.time_us)
      .Text(event.kind)
      .Int(event.round)
      .Int(event.client)
      .Text(event.detail)
      .Run();
}

absl::Status FillLog(SqliteDb& db, const Id128& hash, int64_t version) {
  const std::string message = Message();
  return db.Prepare("INSERT INTO downstream_log (version, model_hash, message) VALUES (?, ?, ?)")
      .Int(version)
      .Id(hash)
      .Blob(message)
      .Run();
}

absl::Status FillTables(SqliteDb& db, const LongRun& run, const Checkpoint& first) {
  const int64_t kept = FirstKept(run.rounds, run.retention.rounds);
  // As many messages as have the bytes of the checkpoint stay in the log; WriteCheckpoint drops the rest of these.
  const int64_t messages = static_cast<int64_t>(first.weights.size() * sizeof(float)) / kDown + 2;
  TERSE_RETURN_IF_ERROR(InsertAll(db, 1, run.rounds, 2, [&](int64_t i) { return FillRound(db, run, i); }));
  TERSE_RETURN_IF_ERROR(
      InsertAll(db, kept, run.rounds, run.clients, [&](int64_t i) { return FillUpdates(db, run, i); }));
  TERSE_RETURN_IF_ERROR(
      InsertAll(db, kept, run.rounds, run.clients, [&](int64_t i) { return FillLedger(db, run, i); }));
  TERSE_RETURN_IF_ERROR(InsertAll(db, 0, run.clients - 1, 1, [&](int64_t i) { return FillClient(db, run, i); }));
  TERSE_RETURN_IF_ERROR(InsertAll(db, FirstKept(run.events, run.retention.events), run.events, 1,
                                  [&](int64_t i) { return FillEvent(db, i); }));
  return db.InTransaction([&]() -> absl::Status {
    TERSE_RETURN_IF_ERROR(FillFirstUpdates(db, run));
    TERSE_RETURN_IF_ERROR(FillTotals(db, run));
    for (int64_t i = FirstKept(run.rounds, messages); i <= run.rounds; ++i) {
      TERSE_RETURN_IF_ERROR(FillLog(db, first.model_hash, i));
    }
    TERSE_RETURN_IF_ERROR(db.Prepare("UPDATE retention SET folded_round = ?").Int(kept - 1).Run());
    return db.Prepare("UPDATE head SET version = ?").Int(run.rounds).Run();
  });
}

}  // namespace

absl::Status PlayRounds(RunStore& store, const LongRun& run) {
  TERSE_ASSIGN_OR_RETURN(Checkpoint first, ReadFirst(store));
  TERSE_RETURN_IF_ERROR(Prepare(store, run));
  for (int64_t i = 1; i <= run.events; ++i) TERSE_RETURN_IF_ERROR(store.AddEvent(EventOf(i)));
  for (int64_t round = 1; round <= run.rounds; ++round) {
    std::vector<ChosenUpdate> chosen;
    Commit commit;
    commit.round = round;
    commit.base_version = round - 1;
    commit.model_hash = first.model_hash;
    commit.downstream = Message();
    commit.committed_us = SettledUs(round);
    for (int64_t client = 0; client < run.clients; ++client) {
      chosen.push_back(UpdateOf(round, client));
      commit.ledger.push_back({round, client, Direction::kUp, kDense, kUp, kUp + kWire});
      commit.ledger.push_back({round, client, Direction::kDown, kDense, kDown, kDown + kWire});
    }
    TERSE_RETURN_IF_ERROR(store.OpenRound(round, round - 1, OpenedUs(round)));
    TERSE_RETURN_IF_ERROR(store.CloseRound(round, chosen, ClosedUs(round)));
    TERSE_RETURN_IF_ERROR(store.CommitRound(commit, /*open_next=*/false));
  }
  first.version = run.rounds;
  return store.WriteCheckpoint(first, 1);
}

absl::Status FillRounds(const std::string& directory, const LongRun& run) {
  Checkpoint first;
  {
    TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<RunStore> store, RunStore::Open(directory));
    TERSE_ASSIGN_OR_RETURN(first, ReadFirst(*store));
    TERSE_RETURN_IF_ERROR(Prepare(*store, run));
  }
  {
    TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<SqliteDb> db,
                           SqliteDb::Open(absl::StrCat(directory, "/run.sqlite"), SqliteDb::Mode::kWriter));
    TERSE_RETURN_IF_ERROR(FillTables(*db, run, first));
    TERSE_RETURN_IF_ERROR(db->FlushLog());
  }
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<RunStore> store, RunStore::Open(directory));
  first.version = run.rounds;
  return store->WriteCheckpoint(first, 1);
}

}  // namespace terse
